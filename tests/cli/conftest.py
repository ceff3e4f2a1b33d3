import venv
from pathlib import Path

import msgspec
import pytest

import kit


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory):
    """A real interpreter in which the kit runs and no framework is installed."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True, with_pip=False)
    site_packages = next(folder.glob("lib/python*/site-packages"))
    for package in (kit, msgspec):
        source = Path(package.__file__).parent
        (site_packages / source.name).symlink_to(source)
    return folder / "bin" / "python"
