"""`GET /health` of a worker, for liveness probes.

A thread answers, so that a probe also notices an event loop that is blocked.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import msgspec

from fairlane.core.errors import InvalidWorker

PATH: Final = "/health"
TIMEOUT_SECONDS: Final = 5.0

Report = Callable[[], tuple[bool, dict[str, Any]]]
"""Returns whether the worker is healthy, and what to tell about it."""


class Probe:
    """Answers on a port until it is closed."""

    def __init__(self, host: str, port: int, report: Report) -> None:
        try:
            self._server = _Server((host, port), _handler(report))
        except OSError as error:
            raise InvalidWorker(
                f"The worker cannot answer probes at {host}, port {port}: "
                f"{error.strerror or error}. Choose another port or address."
            ) from None
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="fairlane-probe", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """Several processes of a worker share the port: the kernel chooses one for each probe."""

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that leave early are none of the worker's business."""


def _handler(report: Report) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT_SECONDS
        server_version, sys_version = "Fairlane", ""

        def do_GET(self) -> None:
            if self.path != PATH:
                self.send_error(HTTPStatus.NOT_FOUND, explain=f"Only {PATH} is here.")
                return
            healthy, told = report()
            body = msgspec.json.encode(told)
            self.send_response(HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: probes come every few seconds."""

    return Handler
