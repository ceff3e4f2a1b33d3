"""An engine that is not there, may not be used, is too old, or is none: each one line that says what to do."""

import hashlib
import json
import socket
import threading

import pytest

from kit.engine.connection import EngineError, connect, engine_url, local_engine
from kit.engine.tunnel import TunnelError, forwarded


@pytest.fixture
def answering(tmp_path):
    """Serve one body to every request on a unix socket: `answering(body) -> URL`."""
    stop = []

    def serve(body):
        path = str(tmp_path / "engine.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        stop.append(listener)

        def loop():
            while True:
                try:
                    own, _ = listener.accept()
                except OSError:
                    return
                with own:
                    own.recv(65536)
                    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                    own.sendall(head.encode() + body)

        threading.Thread(target=loop, daemon=True).start()
        return f"unix://{path}"

    yield serve
    for listener in stop:
        listener.close()


def test_no_engine_says_how_to_name_another(tmp_path):
    with pytest.raises(EngineError, match="no Docker engine answers; start it"):
        connect(f"unix://{tmp_path}/none.sock")


@pytest.mark.parametrize("version", ["1.20", "1.39"])
def test_an_engine_that_is_too_old_says_what_is_needed(answering, version):
    url = answering(json.dumps({"ApiVersion": version, "Version": "18.06"}).encode())
    with pytest.raises(EngineError, match=r"1\.40.*Docker 19\.03"):
        connect(url)


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[]"])
def test_what_is_no_engine_is_one_line(answering, body):
    with pytest.raises(EngineError, match="no Docker engine answers"):
        connect(answering(body))


def test_images_take_turns_on_this_machine_only(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@node")
    with pytest.raises(EngineError, match="this machine only"):
        local_engine()


def test_what_is_named_comes_before_the_variable(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "tcp://other:2375")
    assert engine_url("unix:///mine.sock") == "unix:///mine.sock"
    assert engine_url() == "tcp://other:2375"


def test_a_context_is_followed_as_the_docker_command_does(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    (tmp_path / "config.json").write_text("{}")
    meta = tmp_path / "contexts" / "meta" / hashlib.sha256(b"far").hexdigest()
    meta.mkdir(parents=True)
    endpoint = {"Host": "tcp://far:2376", "SkipTLSVerify": False}
    (meta / "meta.json").write_text(json.dumps({"Name": "far", "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    assert engine_url() == "tcp://far:2376"
    monkeypatch.setenv("DOCKER_CONTEXT", "nowhere")
    with pytest.raises(EngineError, match="there is no context nowhere"):
        engine_url()


def test_without_ssh_a_host_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TunnelError, match="install an ssh client"):
        forwarded("ssh://nobody@nowhere")
