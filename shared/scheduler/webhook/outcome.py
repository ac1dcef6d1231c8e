"""What came of an attempt, as types, and the one function that decides what becomes of the run.

Stages, answers and failures are defined here, beside the decision, so that the pure rooms need no HTTP library.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum

# A receiver that can tell that no retry will help says so with this header, on any answer that is not a 2xx.
NO_RETRY_HEADER = "x-no-retry"
RETRIED_CLIENT_ERRORS = frozenset({408, 425, 429})


class Stage(StrEnum):
    """How far a failed attempt came."""

    BLOCKED = "blocked"  # the target policy refused the URL or an address; nothing was sent
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    WRITE = "write"  # from here on the receiver may have processed the request
    TIMEOUT = "timeout"  # the attempt's total deadline, wherever it struck
    READ = "read"  # no whole response: reset, cut short, or not HTTP
    REDIRECT = "redirect"  # a 3xx, never followed
    STATUS = "status"  # any other answer that is not a 2xx


class Outcome(StrEnum):
    """What the record does with the run."""

    SUCCEEDED = "succeeded"  # we saw a 2xx
    RETRY = "retry"  # a failed attempt; the retry policy says when, or that it is exhausted
    REJECTED = "rejected"  # failed for good: the receiver, or the schedule's own setting, wants no retry
    GONE = "gone"  # 410: failed for good, and the schedule is disabled


@dataclass(frozen=True, kw_only=True, slots=True)
class Timings:
    """Whole milliseconds by phase; None where it did not happen (a kept-alive connection has no dns, connect, tls).

    `first_byte` counts from the moment the request was written; `total` from the call to its end.
    """

    dns: int | None = None
    connect: int | None = None
    tls: int | None = None
    first_byte: int | None = None
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A whole HTTP response within the deadline: final status, its headers, at most the first KiB of body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body_excerpt: bytes
    timings: Timings

    def header(self, name: str) -> str | None:
        """The first value of this header (its name in lower case, however it came), or None."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """No whole response: where it broke and a sentence for the attempt log.

    `reused` says that the request went out on a kept-alive connection, which a peer may close at any moment.
    """

    stage: Stage
    detail: str
    timings: Timings
    reused: bool = False


def classify(result: Answer | Failure, *, retry_client_errors: bool = True) -> Outcome:
    """What becomes of the run. `retry_client_errors` False is a schedule that wants no retry after an ordinary 4xx.

    Source: design §5; 408, 425, 429 and 5xx are always worth a retry (RFC 9110 §15, RFC 8470, RFC 6585). The last line
    is the safe default: what is not understood is tried again.
    """
    if isinstance(result, Failure):
        return Outcome.RETRY
    if 200 <= result.status <= 299:
        return Outcome.SUCCEEDED
    if result.status == 410:
        return Outcome.GONE
    if _asks_to_stop(result):
        return Outcome.REJECTED
    ordinary_client_error = 400 <= result.status <= 499 and result.status not in RETRIED_CLIENT_ERRORS
    if ordinary_client_error and not retry_client_errors:
        return Outcome.REJECTED
    return Outcome.RETRY


def endpoint_failed(result: Answer | Failure) -> bool:
    """Whether the result is a sign of trouble at the endpoint, and not of one request: no whole answer, 5xx, 408 or 429."""
    return isinstance(result, Failure) or result.status >= 500 or result.status in (408, 429)


def stage_of(result: Answer | Failure) -> Stage | None:
    """The stage to log: a failure's own, `redirect` or `status` for an answer that is not a 2xx, None for a success."""
    if isinstance(result, Failure):
        return result.stage
    if 200 <= result.status <= 299:
        return None
    return Stage.REDIRECT if 300 <= result.status <= 399 else Stage.STATUS


def retry_after(result: Answer | Failure, *, now: datetime) -> timedelta | None:
    """How long a failed answer asks us to wait, or None where it says nothing that can be read."""
    if isinstance(result, Failure) or 200 <= result.status <= 299:
        return None
    value = result.header("retry-after")
    return None if value is None else parse_retry_after(value, now=now)


def parse_retry_after(value: str, *, now: datetime) -> timedelta | None:
    """The wait that a Retry-After value (RFC 9110 §10.2.3: seconds, or an HTTP date) asks for, from `now` (aware).

    Junk, a negative number and a moment that is past give None, which is the ordinary back-off. Nothing is clamped to a
    policy here, but the answer always fits a timedelta.
    """
    text = value.strip()
    if text.isascii() and text.isdecimal():
        # Ten digits are three centuries: more would overflow a timedelta and says the same.
        digits = text.lstrip("0") or "0"
        return timedelta(seconds=int(digits if len(digits) <= 10 else "9" * 10))
    moment = _http_date(text)
    if moment is None or moment <= now:
        return None
    return moment - now


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _asks_to_stop(answer: Answer) -> bool:
    return (answer.header(NO_RETRY_HEADER) or "").strip().lower() in {"true", "1"}
