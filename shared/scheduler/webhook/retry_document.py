"""The retry policy as the JSON document that tenants send and the store keeps, both ways.

`{"backoff": "exponential", "base_seconds", "factor", "cap_seconds", "max_attempts", "max_age_seconds"}` or
`{"backoff": "ladder", "delays_seconds": […], "max_age_seconds"}`; what is left out takes the default policy's value.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import assert_never

from scheduler.errors import InvalidInput, Problem
from scheduler.webhook.pointer import reference_token
from scheduler.webhook.retry import DEFAULT, MAX_AGE, MAX_ATTEMPTS, MAX_DELAY, Exponential, Ladder, RetryPolicy

_EXPONENTIAL = {"backoff", "base_seconds", "factor", "cap_seconds", "max_attempts", "max_age_seconds"}
_LADDER = {"backoff", "delays_seconds", "max_age_seconds"}
_LONGEST = int(MAX_DELAY.total_seconds())


def parse_retry(document: object, pointer: str = "/retry") -> RetryPolicy:
    """The policy of a decoded JSON value; None is the default policy. InvalidInput names every field at fault."""
    if document is None:
        return DEFAULT
    if not isinstance(document, Mapping):
        raise _invalid(pointer, "must be an object")
    reader = _Reader(document, pointer)
    match document.get("backoff", "exponential"):
        case "exponential":
            return _exponential(reader)
        case "ladder":
            return _ladder(reader)
        case _:
            raise _invalid(f"{pointer}/backoff", "must be exponential or ladder")


def retry_document(policy: RetryPolicy) -> dict[str, object]:
    """The document that `parse_retry` reads back as the same policy, with every field written."""
    age = int(policy.max_age.total_seconds())
    match policy.backoff:
        case Exponential(base=base, factor=factor, cap=cap):
            return {
                "backoff": "exponential",
                "base_seconds": int(base.total_seconds()),
                "factor": factor,
                "cap_seconds": int(cap.total_seconds()),
                "max_attempts": policy.max_attempts,
                "max_age_seconds": age,
            }
        case Ladder(delays=delays):
            seconds = [int(delay.total_seconds()) for delay in delays]
            return {"backoff": "ladder", "delays_seconds": seconds, "max_age_seconds": age}
    assert_never(policy.backoff)


def _exponential(reader: "_Reader") -> RetryPolicy:
    reader.only(_EXPONENTIAL)
    default = DEFAULT.backoff
    if not isinstance(default, Exponential):
        raise TypeError("the default policy is exponential")
    base = reader.seconds("base_seconds", default.base, _LONGEST)
    cap = reader.seconds("cap_seconds", max(default.cap, base), _LONGEST)
    if cap < base and not reader.problems:
        reader.note("cap_seconds", "must not be less than base_seconds")
    factor = reader.factor("factor", default.factor)
    attempts = reader.integer("max_attempts", DEFAULT.max_attempts, MAX_ATTEMPTS)
    age = _max_age(reader)
    reader.check()
    return RetryPolicy(backoff=Exponential(base=base, factor=factor, cap=cap), max_attempts=attempts, max_age=age)


def _ladder(reader: "_Reader") -> RetryPolicy:
    reader.only(_LADDER)
    delays, age = reader.delays("delays_seconds"), _max_age(reader)
    reader.check()
    return RetryPolicy(backoff=Ladder(delays=delays), max_attempts=len(delays) + 1, max_age=age)


def _max_age(reader: "_Reader") -> timedelta:
    return reader.seconds("max_age_seconds", DEFAULT.max_age, int(MAX_AGE.total_seconds()))


def _invalid(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(Problem(pointer=pointer, detail=detail))


def _is_integer(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


class _Reader:
    """Typed fields of one JSON object, with problems that point into it; a field at fault reads as its default."""

    def __init__(self, document: Mapping[str, object], pointer: str) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._pointer = pointer

    def note(self, name: str, detail: str) -> None:
        self.problems.append(Problem(pointer=f"{self._pointer}/{reference_token(name)}", detail=detail))

    def check(self) -> None:
        """InvalidInput with all that was noted."""
        if self.problems:
            raise InvalidInput(*self.problems)

    def only(self, names: set[str]) -> None:
        for name in self._document:
            if name not in names:
                self.note(name, "is not a field of this back-off")

    def integer(self, name: str, default: int, most: int) -> int:
        value = self._document.get(name, default)
        if not isinstance(value, int) or not _is_integer(value, most):
            self.note(name, f"must be a whole number from 1 to {most}")
            return default
        return value

    def seconds(self, name: str, default: timedelta, most: int) -> timedelta:
        return timedelta(seconds=self.integer(name, int(default.total_seconds()), most))

    def factor(self, name: str, default: float) -> float:
        value = self._document.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 10:
            self.note(name, "must be a number from 1 to 10")
            return default
        return float(value)

    def delays(self, name: str) -> tuple[timedelta, ...]:
        value = self._document.get(name)
        if not isinstance(value, list) or not 1 <= len(value) < MAX_ATTEMPTS:
            self.note(name, f"must be a list of 1 to {MAX_ATTEMPTS - 1} delays")
            return ()
        bad = [index for index, delay in enumerate(value) if not _is_integer(delay, _LONGEST)]
        detail = f"must be whole seconds from 1 to {_LONGEST}"
        self.problems += [Problem(pointer=f"{self._pointer}/{name}/{index}", detail=detail) for index in bad]
        return () if bad else tuple(timedelta(seconds=delay) for delay in value)
