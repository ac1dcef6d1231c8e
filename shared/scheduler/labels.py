"""Labels: small words that tenants put on schedules, to find and change many of them together."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from scheduler.errors import Conflict, InvalidInput, Problem
from scheduler.schedules import Pause, Schedule
from scheduler.scheduling import Scheduling
from scheduler.store.connection import Transaction

# Of one call, which holds them all until it is through; the rest is the next call's.
MOST_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Bulk:
    """How many schedules a call found to change, how many of them it did, and how many are left for another call."""

    matched: int
    changed: int
    remaining: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelled:
    """All schedules that carry some labels, changed in one transaction: an idempotency key is stored with what it did."""

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
        with self.scheduling.database.joined() as transaction:
            matched, held = self._hold(transaction, block)
            changed = 0
            for schedule_id in held:
                if not self.more_time():
                    break
                change(schedule_id)
                changed += 1
        return Bulk(matched=matched, changed=changed, remaining=matched - changed)

    def _hold(self, transaction: Transaction, block: str) -> tuple[int, list[UUID]]:
        """How many there are, and the first of them: held as each change holds its own, all calendars before any schedule.

        One that was deleted meanwhile, or given another calendar, is left out.
        """
        if not transaction.run("labels.try_alone", tenant_id=self.tenant_id)[0]["alone"]:
            raise Conflict("another change of many schedules is being made; try again when it is through")
        now, labels = self.scheduling.clock(transaction), to_json(self.labels)
        rows = transaction.run(block, tenant_id=self.tenant_id, labels=labels, now=now, most=MOST_AT_ONCE)
        if not rows:
            return 0, []
        calendars = sorted({row["calendar_id"] for row in rows})
        transaction.run("schedules.lock_calendars", ids=calendars)
        held = transaction.run("labels.hold", ids=[row["id"] for row in rows], calendar_ids=calendars)
        return rows[0]["matched"], [row["id"] for row in held]


def to_json(labels: Mapping[str, str]) -> str:
    """As the table keeps them."""
    return json.dumps(dict(labels))
