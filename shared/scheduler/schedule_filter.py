"""Which of a tenant's schedules are meant: what a list asks for."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from scheduler.schedules import Status

# A deleted schedule is in no list.
LISTED = tuple(status for status in Status if status is not Status.DELETED)
_FIRST, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleFilter:
    """Which schedules are meant: all conditions together. `next_run` in [from, until); None is any."""

    statuses: Collection[Status] = LISTED
    labels: Mapping[str, str] = field(default_factory=dict)
    name_prefix: str | None = None
    next_run_from: datetime | None = None
    next_run_until: datetime | None = None

    def columns(self) -> dict[str, object]:
        """The parameters of `schedules.list`."""
        return {
            "statuses": [status.value for status in self.statuses],
            "labels": json.dumps(dict(self.labels)),
            "name_prefix": self.name_prefix,
            "has_next_run": self.next_run_from is not None or self.next_run_until is not None,
            "next_run_from": self.next_run_from or _FIRST,
            "next_run_until": self.next_run_until or _END,
        }

    def holds(self, next_run_at: datetime | None) -> bool:
        """Whether one that fires next at this moment is meant."""
        if self.next_run_from is None and self.next_run_until is None:
            return True
        return next_run_at is not None and (self.next_run_from or _FIRST) <= next_run_at < (self.next_run_until or _END)


EVERY_SCHEDULE = ScheduleFilter()
