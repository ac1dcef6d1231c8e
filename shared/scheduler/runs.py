"""What a run is: its states, its id that embeds its time, and the words of its end."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from uuid import UUID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The first instant that no stored run can have; keeps any 48-bit number of milliseconds inside a datetime.
_END = datetime(9999, 1, 1, tzinfo=UTC)


class State(StrEnum):
    """planned -> queued -> delivering -> one of the last three, or back to planned or queued for another attempt."""

    PLANNED = "planned"
    QUEUED = "queued"
    DELIVERING = "delivering"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Reason(StrEnum):
    """Why a run failed or was cancelled."""

    EXHAUSTED = "exhausted"
    REJECTED = "rejected"
    POISONED = "poisoned"
    EXPIRED = "expired"
    DELETED = "deleted"
    BY_HAND = "by_hand"
    OVERLAP = "overlap"
    HELD = "held"


def id_prefix(scheduled_for: datetime) -> str:
    """The first 15 characters of a run's id: 48 bits of milliseconds, then the version (RFC 9562, section 5.7)."""
    digits = f"{int((scheduled_for - _EPOCH) / timedelta(milliseconds=1)):012x}"
    return f"{digits[:8]}-{digits[8:]}-7"


def scheduled_for_of(run_id: UUID) -> datetime | None:
    """The instant that the id embeds, or None for an id that can't be a run's: not version 7, or not a whole second."""
    milliseconds = run_id.int >> 80
    if run_id.version != 7 or milliseconds % 1000 or milliseconds >= (_END - _EPOCH) / timedelta(milliseconds=1):
        return None
    return _EPOCH + timedelta(milliseconds=milliseconds)


def parse_run_id(body: str) -> UUID | None:
    """The run id that a message body is, or None for any other text."""
    try:
        run_id = UUID(body)
    except ValueError:
        return None
    return None if scheduled_for_of(run_id) is None else run_id
