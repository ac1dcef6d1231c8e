"""Sockets whose every operation is armed with what is left of the attempt's total time.

A per-receive timeout does not bound a receiver that sends one byte at a time. Armed anew before each operation it does,
with no thread that watches and no half-read answer that looks whole.
"""

import socket
import ssl
from typing import Any

from scheduler.http.exchange import Exchange


class ArmedSocket(socket.socket):
    """A TCP socket that before each operation takes the exchange's remaining seconds as its timeout."""

    exchange: Exchange | None = None

    def _arm(self) -> None:
        if self.exchange is not None:
            self.settimeout(self.exchange.left())

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self._arm()
        count: int = super().recv_into(*args, **kwargs)
        if self.exchange is not None:
            self.exchange.received(count)
        return count

    def send(self, *args: Any, **kwargs: Any) -> int:
        self._arm()
        sent: int = super().send(*args, **kwargs)
        return sent

    def sendall(self, *args: Any, **kwargs: Any) -> None:
        # A plain sendall takes the timeout as its total; the TLS one is a loop over send above.
        self._arm()
        try:
            super().sendall(*args, **kwargs)
        except OSError:
            # urllib3 goes on to read, because a peer may answer before it has read all; remembered for the stage.
            if self.exchange is not None:
                self.exchange.write_broke = True
            raise


class ArmedTlsSocket(ArmedSocket, ssl.SSLSocket):
    """A TLS socket under an exchange's deadline; its handshake takes the wrapped socket's timeout as its total."""


def tls_context(ca_file: str) -> ssl.SSLContext:
    """A context that verifies the peer's chain and name against this bundle (a path), with TLS 1.2 at least."""
    context = ssl.create_default_context(cafile=ca_file)
    context.sslsocket_class = ArmedTlsSocket
    return context
