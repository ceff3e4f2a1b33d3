"""Which engine is taken: Docker's, Podman's socket, or a service of its command; what is none is one line."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import threading

import psutil
import pytest
from docker.context import ContextAPI
from engine_server import DOCKER, ROOTLESS_PODMAN
from refusals import refused

from kit.engine import connection
from kit.engine.connection import (
    PODMAN_SOCKET,
    connect,
    engine_address,
    engine_for_line,
    local_engine,
    podman_socket,
    podman_version,
)

OF_CONTEXT = ContextAPI.kwargs_from_context
SERVICE = """\
#!{python}
import os, sys
sys.path[:0] = {path}
from pathlib import Path
from engine_server import ROOTLESS_PODMAN, serving
Path(__file__).with_name("pid").write_text(str(os.getpid()))
assert sys.argv[1:3] == ["system", "service"], sys.argv
serving(sys.argv[-1].removeprefix("unix://"), ROOTLESS_PODMAN).serve_forever()
"""


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch):
    """A machine with neither engine: nothing on PATH, no socket, no choice."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "KIT_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(connection, "DEFAULT_SOCKET", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setattr(ContextAPI, "kwargs_from_context", dict)
    (tmp_path / "bin").mkdir()
    podman_socket.cache_clear()
    yield
    podman_socket.cache_clear()


@pytest.fixture
def install(tmp_path):
    """Put a command on PATH: `install(name, script)`."""

    def put(name, script):
        program = tmp_path / "bin" / name
        program.write_text(script)
        program.chmod(0o755)

    return put


def test_podmans_socket_is_taken_when_it_is_chosen_and_where_docker_is_not(served, install, tmp_path, monkeypatch):
    url = served(tmp_path / "run" / PODMAN_SOCKET, ROOTLESS_PODMAN)
    assert "no Docker engine answers" in refused(connect), "without the command it is not looked for"
    assert podman_version(connect(engine="podman")) == (4, 3, 1)
    install("podman", "#!/bin/false")
    assert podman_version(connect()) == (4, 3, 1)
    served(tmp_path / "docker.sock", DOCKER)
    assert podman_version(connect()) is None, "Docker comes first where it answers"
    monkeypatch.setenv("KIT_ENGINE", "podman")
    assert podman_version(connect()) == (4, 3, 1)
    assert connection.engine_address()["base_url"] == url
    assert podman_version(connect(engine="docker")) is None, "the option comes before the variable"


@pytest.mark.parametrize("chosen", [{"DOCKER_HOST": "unix:///nowhere.sock"}, {"KIT_ENGINE": "docker"}])
def test_another_engine_than_the_chosen_one_is_never_taken(served, install, tmp_path, monkeypatch, chosen):
    served(tmp_path / "run" / PODMAN_SOCKET, ROOTLESS_PODMAN)
    install("podman", "#!/bin/false")
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    assert "no Docker engine answers" in refused(connect)


def test_the_command_serves_where_no_socket_answers_and_ends_with_us(install, tmp_path):
    path = [os.path.dirname(__file__), *sys.path]  # noqa: PTH120
    install("podman", SERVICE.format(python=sys.executable, path=path))
    program = textwrap.dedent("""
        import docker
        from kit.engine import connection
        connection.PODMAN_SOCKET = "none.sock"  # this machine's own
        print(docker.DockerClient(base_url=connection.podman_socket()).version()["Version"])
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.stdout, ended.returncode) == ("4.3.1\n", 0), ended.stderr
    pid = int((tmp_path / "bin" / "pid").read_text())
    for _ in range(100):
        try:
            # One that has ended stays a zombie until its new parent, in a container perhaps nobody, asks for it.
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.NoSuchProcess:
            return
        threading.Event().wait(0.1)
    pytest.fail("the service goes on")


def test_without_the_command_or_where_its_service_fails_it_is_one_line(install, monkeypatch):
    monkeypatch.setattr(connection, "PODMAN_SOCKET", "none.sock")
    assert "install it" in refused(connect, engine="podman")
    install("podman", "#!/bin/sh\necho 'cannot set up namespace' >&2\nexit 125\n")
    line = refused(connect, engine="podman")
    assert "cannot set up namespace" in line
    assert "`podman info` must succeed" in line
    monkeypatch.setenv("KIT_ENGINE", "lxc")
    assert "give docker or podman" in refused(connect)


def test_the_printed_line_is_of_the_engine_that_is_chosen_else_installed(install):
    assert engine_for_line(None) == "docker"
    install("podman", "")
    assert engine_for_line(None) == "podman"
    install("docker", "")
    assert engine_for_line(None) == "docker"
    assert engine_for_line("podman") == "podman"


def test_what_is_no_engine_or_another_machines_is_one_line(served, tmp_path, monkeypatch):
    for index, body in enumerate(("<html>", {}, [], {"ApiVersion": "1.20", "Version": "1.8"})):
        monkeypatch.setenv("DOCKER_HOST", served(tmp_path / f"{index}.sock", body))
        assert "no Docker engine answers; start it" in refused(connect)
    monkeypatch.setenv("DOCKER_HOST", "node")
    assert "not an engine's address" in refused(connect)
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@node")
    assert "image variants need an engine on this machine" in refused(local_engine)
    assert "`ssh me@node kit launch …`" in refused(connect), "it shares no folder"


def test_a_context_is_followed_as_the_docker_command_does(monkeypatch, tmp_path):
    monkeypatch.setattr(ContextAPI, "kwargs_from_context", OF_CONTEXT)
    (tmp_path / "config.json").write_text("{}")
    meta = tmp_path / "contexts" / "meta" / hashlib.sha256(b"far").hexdigest()
    meta.mkdir(parents=True)
    endpoint = {"Host": "tcp://far:2376", "SkipTLSVerify": False}
    (meta / "meta.json").write_text(json.dumps({"Name": "far", "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    assert engine_address()["base_url"] == "tcp://far:2376"
    monkeypatch.setenv("DOCKER_CONTEXT", "nowhere")
    assert "DOCKER_CONTEXT=nowhere does not exist" in refused(engine_address)
