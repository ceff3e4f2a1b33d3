"""What an interpreter answers when it is asked for a framework, without importing one."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kit.version import __version__
from kit.worker.probe import Probe


def probed(backend, *code, **environment):
    """The answer, after `code` has run in the same interpreter."""
    run = f"{';'.join(code)};import sys;from kit.worker.probe import print_probe;sys.exit(print_probe({backend!r}))"
    answer = subprocess.run(
        [sys.executable, "-c", run], capture_output=True, env={**os.environ, **environment}, check=True, timeout=200
    )
    return msgspec.json.decode(answer.stdout, type=Probe)


@pytest.mark.frameworks
def test_a_framework_that_is_there_has_its_version_and_is_not_imported():
    command = [sys.executable, "-X", "importtime", "-m", "kit.worker", "--probe", "torch"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    probe = msgspec.json.decode(answer.stdout, type=Probe)
    assert probe.version
    assert (probe.backend, probe.kit, probe.not_preloaded) == ("torch", __version__, [])
    imported = {line.rpartition("|")[2].strip() for line in answer.stderr.splitlines()}
    assert "msgspec" in imported
    assert "torch" not in imported


def test_a_framework_that_is_missing_has_no_version():
    hidden = "import importlib.util as u; find = u.find_spec"
    hide = "u.find_spec = lambda name: None if name == 'jax' else find(name)"
    assert probed("jax", hidden, hide).version is None


def some_library():
    """A real one that no Python loads by itself."""
    (libc, *_) = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line]
    libraries = [*Path(libc).parent.glob("libanl*.so.*"), *Path(libc).parent.glob("libSegFault*.so.*")]
    if not libraries:
        pytest.skip("no small library beside libc")
    return libraries[0]


def test_libraries_that_were_preloaded_are_seen_by_name_path_and_link(tmp_path):
    library = some_library()
    link = tmp_path / "liblink.so"
    link.symlink_to(library)
    for preload in (str(library), library.name, str(link), f"{library}:{link}"):
        assert probed("jax", "pass", LD_PRELOAD=preload).not_preloaded == []
