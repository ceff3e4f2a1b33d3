import threading

import pytest
from engine_server import serving


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
