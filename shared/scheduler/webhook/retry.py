"""When a failed run is tried again: exponential back-off with full jitter, or an explicit ladder, with two ends.

Full jitter is the uniform draw from zero to the exponential ceiling. The draw is a function of the run and its count of
failures, so that every worker that computes it gets the same delay.
"""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never
from uuid import UUID

MIN_DELAY = timedelta(seconds=1)
MAX_DELAY = timedelta(days=1)
MAX_ATTEMPTS = 100
MAX_AGE = timedelta(days=7)
RETRY_AFTER_CAP = timedelta(hours=6)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exponential:
    """After failure n (from 1) a delay drawn from zero to min(cap, base x factor^(n-1)), never under a second."""

    base: timedelta
    factor: float
    cap: timedelta

    def __post_init__(self) -> None:
        _require(MIN_DELAY <= self.base <= self.cap <= MAX_DELAY, "1 s <= base <= cap <= 1 day")
        _require(1 <= self.factor <= 10, "1 <= factor <= 10")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ladder:
    """After failure n the n-th delay, exactly; after the last one the run is exhausted."""

    delays: tuple[timedelta, ...]

    def __post_init__(self) -> None:
        _require(1 <= len(self.delays) < MAX_ATTEMPTS, f"1 to {MAX_ATTEMPTS - 1} delays")
        _require(all(MIN_DELAY <= delay <= MAX_DELAY for delay in self.delays), "1 s <= each delay <= 1 day")


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """`max_attempts` recorded failures, or `max_age` since the run was due, end it, whichever comes first.

    A ladder's attempts are its delays and one.
    """

    backoff: Exponential | Ladder
    max_attempts: int
    max_age: timedelta

    def __post_init__(self) -> None:
        _require(1 <= self.max_attempts <= MAX_ATTEMPTS, f"1 <= max attempts <= {MAX_ATTEMPTS}")
        _require(MIN_DELAY <= self.max_age <= MAX_AGE, "1 s <= max age <= 7 days")
        rungs = len(self.backoff.delays) if isinstance(self.backoff, Ladder) else self.max_attempts - 1
        _require(self.max_attempts == rungs + 1, "as many attempts as its ladder has delays, and one")


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(f"a retry policy needs {rule}")


# Ceilings of 15 s, 45 s, 2 min 15 s, 6 min 45 s, 20 min, 1 h, then 3 h: quick over a restart, patient over a night.
DEFAULT = RetryPolicy(
    backoff=Exponential(base=timedelta(seconds=15), factor=3.0, cap=timedelta(hours=3)),
    max_attempts=12,
    max_age=timedelta(hours=24),
)


def next_delay(
    policy: RetryPolicy,
    *,
    failures: int,
    age: timedelta,
    seed: UUID,
    retry_after: timedelta | None = None,
) -> timedelta | None:
    """How long to wait after recorded failure number `failures` (from 1), or None where the policy is exhausted.

    `age` is the time since the run was due, `seed` the run's id. A Retry-After lengthens the policy's own delay, up to
    six hours, and never shortens it. A delay that reaches past the maximum age is cut to it: the last attempt is then.
    """
    own = _own_delay(policy.backoff, failures, seed)
    left = policy.max_age - age
    if own is None or failures >= policy.max_attempts or left < MIN_DELAY:
        return None
    asked = min(retry_after or MIN_DELAY, RETRY_AFTER_CAP)
    return min(max(own, asked, MIN_DELAY), left)


def _own_delay(backoff: Exponential | Ladder, failures: int, seed: UUID) -> timedelta | None:
    if failures < 1:
        raise ValueError("failures are counted from 1")
    match backoff:
        case Exponential():
            return _ceiling(backoff, failures) * _draw(seed, failures)
        case Ladder():
            return backoff.delays[failures - 1] if failures <= len(backoff.delays) else None
    assert_never(backoff)


def _ceiling(backoff: Exponential, failures: int) -> timedelta:
    # The exponent is bounded before it is raised: 10^99 fits a float, 10^400 would not.
    seconds = backoff.base.total_seconds() * backoff.factor ** min(failures - 1, MAX_ATTEMPTS)
    return min(backoff.cap, timedelta(seconds=min(seconds, MAX_DELAY.total_seconds())))


def _draw(seed: UUID, failures: int) -> float:
    """A uniform number in [0, 1) that is the same wherever it is computed."""
    digest = hashlib.sha256(seed.bytes + failures.to_bytes(4)).digest()
    return int.from_bytes(digest[:6]) / 2**48
