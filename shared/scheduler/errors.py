"""The one tree of exceptions that callers may see.

CarillonError
├── InvalidInput            what the caller sent can't be taken; carries one Problem a bad field
│   └── InvalidExpression   a cron, rate, at or time zone text; one Problem with its position
├── NotFound                no such thing for this tenant
│   └── NoTenant            the tenant itself is gone, or being deleted
├── Conflict                the thing is in a state that does not allow this
├── PreconditionFailed      the thing is not in the version that the caller had seen
├── KeyReused               an idempotency key came back with another request
├── LimitExceeded           the tenant has, or asked for, as much as it may
├── MisconfiguredError      an environment variable is missing or wrong; raised at cold start
└── DatabaseUnavailable     no connection, or it broke: nothing is known to be committed
"""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One bad field: a JSON pointer (RFC 6901) into the caller's document and a sentence for a person."""

    pointer: str
    detail: str


class CarillonError(Exception):
    """The root; never raised itself."""


class InvalidInput(CarillonError):
    """One or more fields can't be taken. Nothing was stored."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(f"{p.pointer or '/'}: {p.detail}" for p in problems))
        self.problems = problems


class InvalidExpression(InvalidInput):
    """A cron, rate, at or time zone text that the grammar refuses.

    `field` is the part at fault ("minute", "day-of-week", "rate", "timezone", …), `position` the 0-based offset in the text,
    or None where the whole text is meant. `detail` says what is wrong and how to write it.
    """

    def __init__(self, field: str, detail: str, *, position: int | None = None, pointer: str = "") -> None:
        super().__init__(Problem(pointer=pointer, detail=detail))
        self.field = field
        self.detail = detail
        self.position = position

    def __str__(self) -> str:
        where = "" if self.position is None else f" at position {self.position}"
        return f"{self.field}{where}: {self.detail}"


class NotFound(CarillonError):
    """No such thing for this tenant; another tenant's thing looks the same."""


class NoTenant(NotFound):
    """The tenant is gone, or its deletion has begun: a key of its may still be in API Gateway's cache."""

    def __init__(self, tenant_id: UUID) -> None:
        super().__init__(f"the tenant {tenant_id} is no more")


class Conflict(CarillonError):
    """The thing exists, in a state that does not allow what was asked."""


class PreconditionFailed(CarillonError):
    """The thing was changed since the caller read it; nothing was done."""


class KeyReused(CarillonError):
    """An idempotency key was sent before with another request; nothing was done."""


class LimitExceeded(CarillonError):
    """As much as the tenant may have or do at this moment; worth another try after so many seconds."""

    def __init__(self, detail: str, *, retry_seconds: int) -> None:
        super().__init__(detail)
        self.retry_seconds = retry_seconds


class MisconfiguredError(CarillonError):
    """An environment variable is missing or has a value that can't be used; the text names it."""


class DatabaseUnavailable(CarillonError):
    """The database can't be reached, or the connection broke; whatever was not committed is not there."""
