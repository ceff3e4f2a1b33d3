"""An engine that gives one answer to everything it is asked."""

import json
import socketserver

# What is asked of it, in one body: its version, its information, and Podman's own.
ROOTLESS_PODMAN = {
    "ApiVersion": "1.41", "Version": "4.3.1", "Components": [{"Name": "Podman Engine"}], "Rootless": True,
    "MemoryLimit": True, "Runtimes": {}, "host": {"cgroupControllers": ["cpu"]},
}  # fmt: skip
DOCKER = {
    "ApiVersion": "1.44", "Version": "25.0.3", "Components": [{"Name": "Engine"}], "MemoryLimit": True,
    "SecurityOptions": ["name=seccomp"],
}  # fmt: skip


def serving(path, body):
    """A server of one body on a unix socket."""
    text = json.dumps(body).encode()

    class Answer(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
            self.request.sendall(head.encode() + text)

    return socketserver.UnixStreamServer(str(path), Answer)
