"""urllib3's connections and pools, changed to dial judged addresses and to tell an exchange how far it came."""

import http.client
import re
import socket
import time
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import HTTPResponse

from scheduler.http.exchange import BODY_WIRE_BYTES, Exchange, current
from scheduler.http.sockets import ArmedSocket
from scheduler.webhook.outcome import Stage

_LENGTH = re.compile(r"[0-9]{1,18}")
# A connection that is never idle would else keep an address that DNS has long moved away from.
LIFE_SECONDS = 300.0


def _is_length(value: str) -> bool:
    """Whether each of the field's values is a number of bytes; http.client passes over others, and takes 1_0 for ten."""
    return all(_LENGTH.fullmatch(part.strip()) for part in value.split(","))


class _FinalResponse(http.client.HTTPResponse):
    """A response that passes over every interim answer (RFC 9110 §15.2), not over 100 alone; 101 is final."""

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if not 100 <= status < 200 or status == http.HTTPStatus.SWITCHING_PROTOCOLS:
                return version, status, reason
            http.client.parse_headers(self.fp)


class JudgedConnection(HTTPConnection):
    """HTTP to a judged address: one exchange at a time, opened by that exchange's dial, at rest between two."""

    response_class = _FinalResponse
    _exchange: Exchange | None = None
    _opened_at = 0.0
    _rested_at = 0.0

    def begin(self, exchange: Exchange) -> None:
        """Takes the exchange on; where the connection is open it is used again."""
        self._exchange = exchange
        if self.sock is not None:
            exchange.reused = True
            self._hand_over(exchange)

    def rest(self) -> None:
        """Lets the exchange go; the connection may wait for another."""
        self._exchange = None
        self._rested_at = time.monotonic()
        if isinstance(self.sock, ArmedSocket):
            self.sock.exchange = None

    @property
    def is_connected(self) -> bool:
        """False also for a connection that rested or lived too long: urllib3 then opens a new one."""
        now = time.monotonic()
        fresh = now - self._rested_at < current().idle_seconds and now - self._opened_at < LIFE_SECONDS
        return fresh and super().is_connected

    def connect(self) -> None:
        exchange = self._running()
        super().connect()
        self._opened_at = time.monotonic()
        self._hand_over(exchange)

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own
        exchange = self._running()
        exchange.stage = Stage.READ
        exchange.written_at = time.monotonic()
        response = super().getresponse()
        if exchange.stream_ended:
            # http.client takes the end of the stream for the end of the head: half a head would be a whole 200.
            response.close()
            raise ConnectionError("the stream ended inside the response's head")
        if not response.chunked and not all(map(_is_length, response.headers.getlist("Content-Length"))):
            # Its end can't be known (RFC 9112 §6.3): waiting for the stream's would take the whole deadline.
            response.close()
            raise ConnectionError("the answer's Content-Length is no length")
        exchange.budget = BODY_WIRE_BYTES
        return response

    def _new_conn(self) -> socket.socket:
        exchange = self._running()
        return exchange.dial(self.host, self.port or self.default_port, exchange)

    def _running(self) -> Exchange:
        if self._exchange is None:
            raise RuntimeError("a connection is used only inside an exchange")
        return self._exchange

    def _hand_over(self, exchange: Exchange) -> None:
        exchange.stage = Stage.WRITE
        if isinstance(self.sock, ArmedSocket):
            self.sock.exchange = exchange


class JudgedTlsConnection(JudgedConnection, HTTPSConnection):
    """HTTPS to a judged address; SNI, Host and the certificate's name stay the URL's."""

    def _new_conn(self) -> socket.socket:
        opened = super()._new_conn()
        exchange = self._running()
        exchange.stage = Stage.TLS
        opened.settimeout(exchange.left())
        return opened

    def connect(self) -> None:
        begun = time.monotonic()
        super().connect()
        exchange = self._running()
        exchange.tls = time.monotonic() - begun - (exchange.dns or 0.0) - (exchange.connect or 0.0)


class JudgedPool(HTTPConnectionPool):
    """Kept-alive connections of one host and port; each belongs to its thread's exchange until it is put back."""

    ConnectionCls = JudgedConnection

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection = super()._get_conn(timeout)
        if isinstance(connection, JudgedConnection):
            connection.begin(current())
        return connection

    def _put_conn(self, conn: Any) -> None:
        if isinstance(conn, JudgedConnection):
            conn.rest()
        super()._put_conn(conn)


class JudgedTlsPool(JudgedPool, HTTPSConnectionPool):
    """Kept-alive HTTPS connections of one host and port; never shared between two names."""

    ConnectionCls = JudgedTlsConnection


POOL_CLASSES: dict[str, type[HTTPConnectionPool]] = {"http": JudgedPool, "https": JudgedTlsPool}
