"""Opens TCP connections to judged addresses only: resolve once, judge every answer, connect to what was judged."""

import socket
import time
from ipaddress import ip_address

from scheduler.http.exchange import BlockedError, Exchange
from scheduler.http.resolver import Lookups
from scheduler.http.sockets import ArmedSocket
from scheduler.webhook.addresses import TargetPolicy, refusal
from scheduler.webhook.outcome import Stage

# A name or a connection that takes longer is broken, and would eat the time of the answer.
PHASE_SECONDS = 5.0


class Dialler:
    """The only place that opens outbound connections; between judgement and connect there is no second look-up."""

    def __init__(self, policy: TargetPolicy, lookups: Lookups, phase_seconds: float = PHASE_SECONDS) -> None:
        self._policy = policy
        self._lookups = lookups
        self._phase_seconds = phase_seconds

    def open(self, host: str, port: int, exchange: Exchange) -> socket.socket:
        """A connected socket under the exchange's deadline; BlockedError or OSError, with the exchange's stage set."""
        addresses = self._resolve(host, port, exchange)
        exchange.stage = Stage.CONNECT
        begun = time.monotonic()
        opened = _connect_any(addresses, port, min(self._phase_seconds, exchange.left()))
        exchange.connect = time.monotonic() - begun
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.exchange = exchange
        return opened

    def _resolve(self, host: str, port: int, exchange: Exchange) -> tuple[str, ...]:
        exchange.stage = Stage.DNS
        begun = time.monotonic()
        addresses = self._lookups.resolve(host, port, min(self._phase_seconds, exchange.left()))
        exchange.dns = time.monotonic() - begun
        for address in addresses:
            # One bad answer among good ones refuses the name: which one is dialled must not be luck.
            if reason := refusal(address, self._policy):
                exchange.stage = Stage.BLOCKED
                raise BlockedError(f"the host's address is refused: {reason}")
        return addresses


def _connect_any(addresses: tuple[str, ...], port: int, seconds: float) -> ArmedSocket:
    """Tries the addresses in order, each with its share of the seconds; the last one's error stands for all."""
    ends = time.monotonic() + seconds
    for tried, address in enumerate(addresses):
        share = max(0.0, ends - time.monotonic()) / (len(addresses) - tried)
        try:
            return _connect(address, port, max(share, 0.001))
        except OSError:
            if tried == len(addresses) - 1:
                raise
    raise OSError("the name has no address")


def _connect(address: str, port: int, seconds: float) -> ArmedSocket:
    family = socket.AF_INET if ip_address(address).version == 4 else socket.AF_INET6
    opened = ArmedSocket(family, socket.SOCK_STREAM)
    try:
        opened.settimeout(seconds)
        opened.connect((address, port))
    except BaseException:
        opened.close()
        raise
    return opened
