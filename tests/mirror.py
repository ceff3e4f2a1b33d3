"""A mirror on this machine: an HTTP server that sends what a test tells it to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kit.workloads.workload_catalog import DATASETS

NOBODY_LISTENS = "http://127.0.0.1:1/"


class Mirror:
    """Serves `files` by name. `claimed` adds to the Content-Length of each, so that its transfer breaks off."""

    def __init__(self, files: dict[str, bytes], claimed: int = 0) -> None:
        self.files = files
        self.claimed = claimed
        self.asked: list[str] = []
        self.url = ""


@contextmanager
def _serving(mirror: Mirror) -> Iterator[Mirror]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.removeprefix("/")
            mirror.asked.append(name)
            if name not in mirror.files:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(mirror.files[name]) + mirror.claimed))
            self.end_headers()
            self.wfile.write(mirror.files[name])

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    mirror.url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield mirror
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in DATASETS.items():
        monkeypatch.setitem(DATASETS, name, replace(data, mirrors=(NOBODY_LISTENS,)))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def serve() -> Iterator[Callable[..., Mirror]]:
    with ExitStack() as stack:
        yield lambda files, claimed=0: stack.enter_context(_serving(Mirror(files, claimed)))
