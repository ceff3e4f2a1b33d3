"""An engine that is not there, may not be used, or is none: each one line that says what to do."""

import hashlib
import json
import socketserver
import threading

import pytest

from kit.engine.connection import EngineError, connect, engine_address, local_engine
from kit.engine.container import explained


@pytest.fixture
def answering(tmp_path):
    """Serve one body to every request on a unix socket: `answering(body) -> URL`."""
    servers = []

    def serve(body):
        class Answer(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.recv(65536)
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                self.request.sendall(head.encode() + body)

        servers.append(socketserver.UnixStreamServer(str(tmp_path / "engine.sock"), Answer))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"unix://{tmp_path}/engine.sock"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_no_engine_says_how_to_name_another(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(EngineError, match="no Docker engine answers; start it"):
        connect()


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[]", b'{"ApiVersion": "1.20", "Version": "1.8"}'])
def test_what_is_no_engine_is_one_line(monkeypatch, answering, body):
    monkeypatch.setenv("DOCKER_HOST", answering(body))
    with pytest.raises(EngineError, match="no Docker engine answers"):
        connect()


def test_images_take_turns_on_this_machine_only(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@node")
    with pytest.raises(EngineError, match="image variants need an engine on this machine"):
        local_engine()


def test_another_machines_engine_is_refused_as_it_shares_no_folder(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@node")
    with pytest.raises(EngineError, match="`ssh me@node kit launch …`"):
        connect()


def test_a_context_is_followed_as_the_docker_command_does(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    (tmp_path / "config.json").write_text("{}")
    meta = tmp_path / "contexts" / "meta" / hashlib.sha256(b"far").hexdigest()
    meta.mkdir(parents=True)
    endpoint = {"Host": "tcp://far:2376", "SkipTLSVerify": False}
    (meta / "meta.json").write_text(json.dumps({"Name": "far", "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    assert engine_address()["base_url"] == "tcp://far:2376"
    monkeypatch.setenv("DOCKER_CONTEXT", "nowhere")
    with pytest.raises(EngineError, match="DOCKER_CONTEXT=nowhere does not exist"):
        engine_address()


@pytest.mark.parametrize(
    ("refusal", "remedy"),
    [
        ("bind source path does not exist: /sys/devices/virtual/powercap", "leave out --rapl"),
        ('could not select device driver "" with capabilities: [[gpu]]', "NVIDIA Container Toolkit"),
        ("Requested CPUs are not available - requested 99, available: 0-1", "--cpuset"),
    ],
)
def test_a_refusal_of_the_engine_says_what_would_mend_it(refusal, remedy):
    assert remedy in explained(RuntimeError(refusal))
