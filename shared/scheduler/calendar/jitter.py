"""Jitter: spreads deliveries over a few seconds, the same for the same occurrence for ever."""

import hashlib
from datetime import datetime
from uuid import UUID

from scheduler.calendar.occurrences import next_occurrence
from scheduler.calendar.spec import CalendarSpec, epoch_seconds


def jitter_limit(spec: CalendarSpec, scheduled_for: datetime, wanted: int) -> int:
    """`wanted` seconds, or as many as keep the effective time before the calendar's next occurrence."""
    following = next_occurrence(spec, scheduled_for)
    if following is None:
        return wanted
    return min(wanted, epoch_seconds(following) - epoch_seconds(scheduled_for) - 1)


def jitter_seconds(schedule_id: UUID, scheduled_for: datetime, max_seconds: int) -> int:
    """Whole seconds from 0 to `max_seconds`, decided by the schedule and the occurrence alone.

    The first 32 bits of SHA-256 over `jitter <schedule id> <seconds since the epoch>`, modulo `max_seconds` + 1: few
    enough bits that SQL can say the same.
    `jitter_limit` keeps `max_seconds` below the time to the next occurrence. ValueError for a negative limit.
    """
    if max_seconds < 0:
        raise ValueError(f"a jitter of {max_seconds} seconds would fire early")
    text = f"jitter {schedule_id} {epoch_seconds(scheduled_for)}"
    digest = hashlib.sha256(text.encode("ascii")).digest()
    return int.from_bytes(digest[:4], "big") % (max_seconds + 1)
