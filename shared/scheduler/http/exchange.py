"""The state of one POST while it runs: its deadline, how far it came, and how long each phase took."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from scheduler.webhook.outcome import Stage, Timings


class DeadlineError(TimeoutError):
    """The attempt's total time is over."""


class OverlongError(OSError):
    """The response's head, or the framing of its body, is longer than any honest one."""


class BlockedError(Exception):
    """The target policy refused an address; the text is fit for the attempt log."""


# http.client alone would keep a hundred header lines of 64 KiB each, and read trailers without end.
HEAD_BYTES = 64 * 1024
BODY_WIRE_BYTES = 256 * 1024

# Below the 60 s that load balancers commonly keep an idle connection, and far below a NAT gateway's 350 s.
IDLE_SECONDS = 55.0

# Opens a judged TCP connection to a host and port for an exchange.
type Dial = Callable[[str, int, Exchange], socket.socket]


@dataclass(kw_only=True, slots=True)
class Exchange:
    """One attempt in one thread; moments are `time.monotonic()` seconds.

    `stage` is what a failure would be now, `idle_seconds` how long a kept connection may have rested to be used again.
    """

    started: float
    ends: float
    dial: Dial
    idle_seconds: float = IDLE_SECONDS
    stage: Stage = Stage.BLOCKED
    reused: bool = False
    write_broke: bool = False
    stream_ended: bool = False
    budget: int = HEAD_BYTES
    dns: float | None = None
    connect: float | None = None
    tls: float | None = None
    written_at: float | None = None
    first_byte: float | None = None

    def left(self) -> float:
        """Seconds to the deadline; DeadlineError where there are none."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise DeadlineError("the total deadline is over")
        return left

    @property
    def over(self) -> bool:
        """Whether the deadline is past: an answer that came together later is no success."""
        return time.monotonic() >= self.ends

    def received(self, count: int) -> None:
        """Notes that a receive gave this many bytes, 0 being the stream's end; OverlongError past the budget."""
        self.stream_ended = count == 0
        self.budget -= count
        if self.budget < 0:
            raise OverlongError("the response's head or framing is too long")
        if count and self.first_byte is None and self.written_at is not None:
            self.first_byte = time.monotonic() - self.written_at

    def failed_at(self) -> Stage:
        """The stage of a failure that happens now: the deadline outranks the phase that it struck in."""
        if self.over:
            return Stage.TIMEOUT
        if self.stage is Stage.READ and self.write_broke and self.first_byte is None:
            return Stage.WRITE
        return self.stage

    def timings(self) -> Timings:
        """The phases so far."""
        return Timings(
            dns=_milliseconds(self.dns),
            connect=_milliseconds(self.connect),
            tls=_milliseconds(self.tls),
            first_byte=_milliseconds(self.first_byte),
            total=round((time.monotonic() - self.started) * 1000),
        )


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


_CURRENT: ContextVar[Exchange] = ContextVar("exchange")


def current() -> Exchange:
    """The exchange of the POST that this thread is in: urllib3 has no argument that would carry it to a connection."""
    return _CURRENT.get()


@contextmanager
def running(exchange: Exchange) -> Iterator[None]:
    """Makes the exchange this thread's current one."""
    token = _CURRENT.set(exchange)
    try:
        yield
    finally:
        _CURRENT.reset(token)
