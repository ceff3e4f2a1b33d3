"""Which engine is taken: Docker's, Podman's socket, or a service of its command; and what Podman is asked for."""

import json
import os
import shlex
import socketserver
import subprocess
import sys
import textwrap
import threading
from itertools import pairwise

import pytest
from refusals import refused

from kit.engine import connection
from kit.engine.connection import PODMAN_SOCKET, connect, engine_for_line, podman_socket, podman_version
from kit.engine.container import explained, with_devices
from kit.engine.container_options import ContainerOptions, for_kind

# What is asked of it, in one body: its version, its information, and Podman's own.
ROOTLESS_PODMAN = {
    "ApiVersion": "1.41", "Version": "4.3.1", "Components": [{"Name": "Podman Engine"}], "Rootless": True,
    "MemoryLimit": True, "Runtimes": {}, "host": {"cgroupControllers": ["cpu"]},
}  # fmt: skip
DOCKER = {
    "ApiVersion": "1.44", "Version": "25.0.3", "Components": [{"Name": "Engine"}], "MemoryLimit": True,
    "SecurityOptions": ["name=seccomp"],
}  # fmt: skip
SERVICE = """\
#!{python}
import os, sys
sys.path[:0] = {path}
from pathlib import Path
from test_podman import ROOTLESS_PODMAN, serving
Path(__file__).with_name("pid").write_text(str(os.getpid()))
assert sys.argv[1:3] == ["system", "service"], sys.argv
serving(sys.argv[-1].removeprefix("unix://"), ROOTLESS_PODMAN).serve_forever()
"""
OPTIONS = ContainerOptions(image="x", command=["run"], entrypoint=("kit",), user="12:34", cpuset="0,1", gpus="0,2")


def serving(path, body):
    """A server of one body on a unix socket."""
    text = json.dumps(body).encode()

    class Answer(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
            self.request.sendall(head.encode() + text)

    return socketserver.UnixStreamServer(str(path), Answer)


@pytest.fixture
def served():
    """Serve a body in this process: `served(path, body) -> URL`."""
    servers = []

    def serve(path, body):
        path.parent.mkdir(parents=True, exist_ok=True)
        servers.append(serving(path, body))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"unix://{path}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch):
    """A machine with neither engine: nothing on PATH, no socket, no choice."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "KIT_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(connection, "DEFAULT_SOCKET", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setattr("docker.context.ContextAPI.kwargs_from_context", lambda: {})
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
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        threading.Event().wait(0.1)
    pytest.fail("the service goes on")


def test_without_the_command_or_where_its_service_fails_it_is_one_line(install, monkeypatch):
    monkeypatch.setattr("kit.engine.connection.PODMAN_SOCKET", "none.sock")
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


def client_at(url):
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DOCKER_HOST", url)
        return connect()


def test_a_rootless_engine_gets_what_it_can_give(served, tmp_path):
    client = client_at(served(tmp_path / "podman.sock", ROOTLESS_PODMAN))
    given = for_kind(client, OPTIONS).for_engine()
    assert (given["user"], given["cpuset_cpus"]) == ("0:0", None)
    assert given["entrypoint"] == ["taskset", "-c", "0,1", "kit"]
    assert for_kind(client, OPTIONS._replace(user=None)).for_engine()["user"] is None, "the image's stays"
    assert "no memory controller" in refused(for_kind, client, OPTIONS._replace(memory="1g"))


def test_a_delegated_controller_limits_memory_and_docker_is_asked_as_ever(served, tmp_path):
    delegated = ROOTLESS_PODMAN | {"host": {"cgroupControllers": ["memory"]}}
    client = client_at(served(tmp_path / "podman.sock", delegated))
    assert for_kind(client, OPTIONS._replace(memory="1g")).for_engine()["mem_limit"] == "1g"
    client = client_at(served(tmp_path / "engine.sock", DOCKER))
    given = for_kind(client, OPTIONS).for_engine()
    assert (given["user"], given["cpuset_cpus"], given["entrypoint"]) == ("12:34", "0,1", ["kit"])
    rootless = client_at(
        served(tmp_path / "own.sock", DOCKER | {"SecurityOptions": ["name=rootless"], "MemoryLimit": False})
    )
    assert for_kind(rootless, OPTIONS).for_engine()["user"] == "0:0"
    assert "no memory controller" in refused(for_kind, rootless, OPTIONS._replace(memory="1g"))


def test_gpus_are_devices_of_podman_and_refused_where_it_would_leave_them_out(served, tmp_path):
    old = client_at(served(tmp_path / "old.sock", ROOTLESS_PODMAN))
    assert "install Podman 5.4" in refused(with_devices, old, "gpu", OPTIONS)
    new = client_at(served(tmp_path / "new.sock", ROOTLESS_PODMAN | {"Version": "5.4.0-rc1"}))
    (request,) = with_devices(new, "gpu", for_kind(new, OPTIONS)).for_engine()["device_requests"]
    assert (request["Driver"], request["DeviceIDs"]) == ("cdi", ["nvidia.com/gpu=0", "nvidia.com/gpu=2"])
    assert "nvidia-ctk cdi generate" in explained(RuntimeError("unresolvable CDI devices nvidia.com/gpu=all"))


def test_podmans_line_says_all_that_its_api_is_told():
    words = shlex.split(OPTIONS._replace(engine="podman", is_rootless=True).as_line())
    assert words[:3] == ["podman", "run", "--rm"]
    assert {("--user", "0:0"), ("--entrypoint", "taskset"), ("--device", "nvidia.com/gpu=2")} <= set(pairwise(words))
    assert words[-5:] == ["x", "-c", "0,1", "kit-entrypoint", "run"]
    assert not {"--gpus", "--cpuset-cpus", "--init"} & {*words}
