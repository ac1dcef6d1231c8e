"""Labels: small words that tenants put on schedules, to find and change many of them together."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from scheduler.errors import Conflict, InvalidInput, NotFound, Problem
from scheduler.schedules import Pause, Schedule
from scheduler.scheduling import Scheduling

# Of one call: the rest is the next call's.
MOST_AT_ONCE = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Bulk:
    """How many schedules a call found to change, how many of them it did, and how many are left for another call."""

    matched: int
    changed: int
    remaining: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelled:
    """All schedules that carry some labels. Each is changed by itself, under its own locks: one that fails stops no other."""

    scheduling: Scheduling
    tenant_id: UUID
    labels: Mapping[str, str]
    changed_by: str
    more_time: Callable[[], bool]

    def pause(self, pause: Pause) -> Bulk:
        """Pauses those that fire."""

        def one(schedule_id: UUID) -> Schedule:
            return self.scheduling.pause(self.tenant_id, schedule_id, changed_by=self.changed_by, pause=pause)

        return self._each("labels.active", one)

    def resume(self) -> Bulk:
        """Resumes those that are paused or disabled."""

        def one(schedule_id: UUID) -> Schedule:
            return self.scheduling.resume(self.tenant_id, schedule_id, changed_by=self.changed_by)

        return self._each("labels.at_rest", one)

    def _each(self, block: str, change: Callable[[UUID], Schedule]) -> Bulk:
        if not self.labels:
            raise InvalidInput(Problem(pointer="/labels", detail="must give one label at least"))
        with self.scheduling.database.transaction() as transaction:
            rows = transaction.run(
                block,
                tenant_id=self.tenant_id,
                labels=to_json(self.labels),
                now=self.scheduling.clock(transaction),
                most=MOST_AT_ONCE,
            )
        matched, changed = rows[0]["matched"] if rows else 0, 0
        for row in rows:
            if not self.more_time():
                break
            # Deleted since, or just being changed by others.
            with suppress(NotFound, Conflict):
                change(row["id"])
                changed += 1
        return Bulk(matched=matched, changed=changed, remaining=matched - changed)


def to_json(labels: Mapping[str, str]) -> str:
    """As the table keeps them."""
    return json.dumps(dict(labels))
