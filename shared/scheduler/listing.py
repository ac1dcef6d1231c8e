"""Lists of a tenant's schedules and runs, filtered, a page at a time."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from scheduler.history import History, Outlook, Run, Trigger
from scheduler.runs import State
from scheduler.schedules import Schedule, Status
from scheduler.scheduling import Scheduling
from scheduler.store.connection import Database

# Schedules that one call looks at: when each fires next is computed, not stored.
_LOOKED_AT = 1_000

type Keyset = tuple[datetime, UUID]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleFilter:
    """Which schedules are meant: all conditions together. `next_run` in [from, until); None is any."""

    statuses: Collection[Status]
    labels: Mapping[str, str]
    name_prefix: str | None = None
    next_run_from: datetime | None = None
    next_run_until: datetime | None = None

    def holds(self, outlook: Outlook) -> bool:
        """Whether a schedule that does this is meant, as far as that is not the database's to say."""
        if outlook.status not in self.statuses:
            return False
        if self.next_run_from is None and self.next_run_until is None:
            return True
        upcoming = outlook.next_run_at
        return (
            upcoming is not None
            and (self.next_run_from is None or upcoming >= self.next_run_from)
            and (self.next_run_until is None or upcoming < self.next_run_until)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A page of schedules. `last` is where the next page begins; None where there is nothing behind."""

    schedules: list[tuple[Schedule, Outlook]]
    last: Keyset | None


def find_schedules(
    scheduling: Scheduling, history: History, tenant_id: UUID, wanted: ScheduleFilter, *, after: Keyset, most: int
) -> Found:
    """At most `most` schedules behind the keyset, oldest first.

    A thousand are looked at: a page may hold fewer than `most`, even none, and yet not be the last.
    """
    found: list[tuple[Schedule, Outlook]] = []
    seen = 0
    while True:
        some = scheduling.list(
            tenant_id,
            after=after,
            most=most + 1,
            labels=json.dumps(dict(wanted.labels)),
            name_prefix=wanted.name_prefix,
        )
        outlooks = history.outlooks(some[:most])
        for schedule in some[:most]:
            if wanted.holds(outlooks[schedule.id]):
                found.append((schedule, outlooks[schedule.id]))
            after = schedule.created_at, schedule.id
            if len(found) == most:
                more = schedule.id != some[-1].id
                return Found(schedules=found, last=after if more else None)
        seen += len(some)
        if len(some) <= most:
            return Found(schedules=found, last=None)
        if seen >= _LOOKED_AT:
            return Found(schedules=found, last=after)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFilter:
    """Which runs are meant: all conditions together; scheduled in [since, until)."""

    schedule_id: UUID | None
    states: Collection[State]
    triggers: Collection[Trigger]
    since: datetime
    until: datetime


def find_runs(database: Database, tenant_id: UUID, wanted: RunFilter, *, before: Keyset, most: int) -> list[Run]:
    """At most `most` runs before the keyset, newest first."""
    with database.transaction() as transaction:
        rows = transaction.run(
            "history.find_runs",
            tenant_id=tenant_id,
            schedule_id=wanted.schedule_id,
            states=list(wanted.states),
            triggers=list(wanted.triggers),
            since=wanted.since,
            until=wanted.until,
            before_at=before[0],
            before_id=before[1],
            most=most,
        )
    return [Run.from_row(row) for row in rows]
