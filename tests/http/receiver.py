"""A receiver on a real socket that answers with exactly the bytes a test wants, as slowly or as rudely as it wants."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from scheduler.webhook.addresses import TargetPolicy
from scheduler.webhook.request import OutboundRequest

LOCAL = TargetPolicy(local_targets=True)
PUBLIC = TargetPolicy(local_targets=False)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def loopback(host: str, port: int) -> tuple[str, ...]:
    """A resolver to which every name is this machine."""
    return ("127.0.0.1",)


def post_to(url: str, body: bytes = b"{}") -> OutboundRequest:
    """A request without the signature's headers, which these tests are not about."""
    headers = (("Content-Type", "application/json"), ("User-Agent", "t"), ("Accept-Encoding", "identity"))
    return OutboundRequest(url=url, headers=headers, body=body)


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """One request as it came, and the number of the connection that it came on."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass(kw_only=True)
class Peer:
    """The receiver's end of one connection, as a test's script sees it."""

    socket: socket.socket
    stopped: threading.Event
    number: int
    over: bool = False

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def drip(self, data: bytes, every: float = 0.02) -> None:
        """One byte at a time, until the data, the receiver or the client's patience ends."""
        for byte in data:
            if self.stopped.wait(every):
                return
            self.send(bytes([byte]))

    def stay_silent(self) -> None:
        """Keeps the connection open and says nothing until the test is over."""
        self.stopped.wait()

    def reset(self) -> None:
        """Ends the connection with RST instead of FIN when the script ends."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.hang_up()

    def hang_up(self) -> None:
        """Ends the connection when the script ends."""
        self.over = True


type Script = Callable[[Peer, Received], None]


def says(data: bytes) -> Script:
    """Sends the bytes and waits for the next request on the connection."""
    return lambda peer, _: peer.send(data)


def says_ok(peer: Peer, _: Received) -> None:
    peer.send(OK)


def says_and_hangs_up(data: bytes) -> Script:
    """Sends the bytes and closes."""

    def script(peer: Peer, _: Received) -> None:
        peer.send(data)
        peer.hang_up()

    return script


@dataclass
class Receiver:
    """Listens on 127.0.0.1; runs the script for each request, in a thread a connection."""

    script: Script = says_ok
    tls: ssl.SSLContext | None = None
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    ended: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __enter__(self) -> Self:
        self._stopped = threading.Event()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(5)

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.connections += 1
                self._open.append(accepted)
                self._start(self._serve, accepted, self.connections)

    def _serve(self, accepted: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError):
            if self.tls is not None:
                accepted = self.tls.wrap_socket(accepted, server_side=True)
                self._open.append(accepted)
            with accepted, accepted.makefile("rb") as stream:
                peer = Peer(socket=accepted, stopped=self._stopped, number=number)
                while not peer.over and (line := stream.readline()):
                    headers = _headers(stream.readline)
                    body = stream.read(int(headers["content-length"]))
                    received = Received(line=line.decode().strip(), headers=headers, body=body, connection=number)
                    self.requests.append(received)
                    self.script(peer, received)
        self.ended.release()


def _headers(readline: Callable[[], bytes]) -> dict[str, str]:
    headers = {}
    while line := readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    return headers
