"""What a tenant runs: a real HTTP server that verifies each webhook's signature and acts once on each idempotency key."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

_LONGEST_BODY = 1 << 20
_HELD_FOR_SECONDS = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """One POST. `peer` is the sender's port on this machine; `verified` is what the standardwebhooks package says."""

    at: datetime
    path: str
    headers: dict[str, str]
    body: bytes
    peer: int
    verified: bool
    duplicate: bool

    @property
    def key(self) -> str:
        return self.headers.get("x-idempotency-key", "")

    @property
    def attempt(self) -> int:
        return int(self.headers.get("x-attempt", "0"))

    @property
    def scheduled_for(self) -> datetime:
        return datetime.fromisoformat(self.headers["x-scheduled-for"])

    @property
    def lateness(self) -> float:
        """Seconds from the occurrence to this POST."""
        return (self.at - self.scheduled_for).total_seconds()


@dataclass(kw_only=True, slots=True)
class Receiver:
    """Listens on 127.0.0.1 once started. `secret` is the tenant's signing secret, known before the first POST comes."""

    secret: str = ""
    on_received: Callable[[Received], None] = lambda _: None
    received: list[Received] = field(default_factory=list)
    _hold: set[str] = field(default_factory=set)
    _keys: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _released: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    def start(self, port: int = 0) -> None:
        """Listens on `port`, or on a free one; OSError when it is taken."""
        self._server = _Server(("127.0.0.1", port), _handler(self))
        threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True).start()

    def stop(self) -> None:
        self._released.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def url(self, path: str) -> str:
        """Where to POST so that it comes here; `path` begins with a slash."""
        if self._server is None:
            raise RuntimeError("the receiver has not been started")
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def hold_next(self, path: str) -> None:
        """The next POST to `path` gets no answer for as long as its sender lives."""
        self._hold.add(path)

    def take(self, path: str, headers: dict[str, str], body: bytes, peer: int) -> int | None:
        """Notes a POST. The status to answer with, or None for one that is held."""
        with self._lock:
            key = headers.get("x-idempotency-key", "")
            held = path in self._hold
            self._hold.discard(path)
            received = Received(
                at=datetime.now(UTC),
                path=path,
                headers=headers,
                body=body,
                peer=peer,
                verified=self._verifies(headers, body),
                duplicate=key in self._keys,
            )
            if received.verified and not held:
                self._keys.add(key)
            self.received.append(received)
        self.on_received(received)
        if held:
            return None
        return HTTPStatus.NO_CONTENT if received.verified else HTTPStatus.UNAUTHORIZED

    def wait_for_release(self) -> None:
        self._released.wait(_HELD_FOR_SECONDS)

    def _verifies(self, headers: dict[str, str], body: bytes) -> bool:
        try:
            Webhook(self.secret).verify(body, headers)
        except (WebhookVerificationError, ValueError):
            return False
        return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that was killed is part of what is shown here, not an error to print."""


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = min(int(self.headers.get("content-length", 0)), _LONGEST_BODY)
            body = self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.take(self.path, headers, body, self.client_address[1])
            if status is None:
                receiver.wait_for_release()
                self.close_connection = True
                return
            with suppress(ConnectionError):
                self.send_response(status)
                if status != HTTPStatus.NO_CONTENT:
                    self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """The live table is the log."""

    return Handler
