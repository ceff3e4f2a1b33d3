import signal
import venv
from pathlib import Path

import msgspec
import pytest

import kit


@pytest.fixture(autouse=True)
def signals_of_the_tests():
    """`main` in this process leaves it to end as its signals say."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


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
