"""Lists of a tenant's schedules and runs, filtered, a page at a time."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from uuid import UUID

from scheduler.history import History, Outlook, Run, Trigger
from scheduler.runs import State
from scheduler.schedule_filter import ScheduleFilter
from scheduler.schedules import Schedule
from scheduler.scheduling import Scheduling
from scheduler.store.connection import Database

# Bytes of payloads in one page: an answer of the function has room for 6 MB, in which each quotation mark counts twice.
_ROOM = 2**20

type Keyset = tuple[datetime, UUID]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A page of schedules. `last` is where the next page begins; None where there is nothing behind."""

    schedules: list[tuple[Schedule, Outlook]]
    last: Keyset | None


def find_schedules(
    scheduling: Scheduling,
    history: History,
    tenant_id: UUID,
    wanted: ScheduleFilter,
    *,
    after: Keyset,
    most: int,
    more_time: Callable[[], bool],
) -> Found:
    """At most `most` schedules behind the keyset, oldest first; fewer before the last page where there is no room or time."""
    found: list[tuple[Schedule, Outlook]] = []
    while True:
        some = scheduling.list(tenant_id, after=after, most=most + 1, wanted=wanted)
        outlooks = history.outlooks(some)
        found += [(each, outlooks[each.id]) for each in some if wanted.holds(outlooks[each.id].next_run_at)]
        page = _page(found, most)
        if len(page) < len(found):
            return Found(schedules=page, last=_key(page[-1][0]))
        if len(some) <= most:
            return Found(schedules=page, last=None)
        after = _key(some[-1])
        if not more_time():
            return Found(schedules=page, last=after)


def _page(found: list[tuple[Schedule, Outlook]], most: int) -> list[tuple[Schedule, Outlook]]:
    sizes = accumulate(len(schedule.definition.payload or b"") for schedule, _ in found)
    return [each for each, size in zip(found, sizes, strict=True) if size <= _ROOM][:most]


def _key(schedule: Schedule) -> Keyset:
    return schedule.created_at, schedule.id


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
