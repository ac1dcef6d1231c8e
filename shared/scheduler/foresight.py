"""Foresight: what a schedule will do, stored or not yet, occurrence by occurrence, and in one sentence."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

from scheduler.calendar.describe import describe
from scheduler.calendar.jitter import jitter_limit, jitter_seconds
from scheduler.calendar.preview import PreviewedOccurrence, upcoming
from scheduler.calendar.spec import CalendarSpec
from scheduler.calendars import calendar_spec, spec_of
from scheduler.schedules import Schedule, Status
from scheduler.scheduling import Scheduling
from scheduler.store.clock import Clock
from scheduler.store.connection import Database
from scheduler.timing import TICK, Timing


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeseenOccurrence:
    """One occurrence to come.

    `due_at`: when its run is sent, jitter included; None for one that does not fire, and where the jitter depends on an id that
    is not given yet.
    """

    occurrence: PreviewedOccurrence
    due_at: datetime | None
    jittered: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Foresight:
    """The next occurrences, excluded ones among them, and the calendar in one English sentence."""

    description: str
    timezone: str
    occurrences: tuple[ForeseenOccurrence, ...]


def foresee_new(database: Database, clock: Clock, tenant_id: UUID, timing: Timing, count: int) -> Foresight:
    """What a schedule would do that was created now. InvalidInput as at its creation."""
    with database.transaction() as transaction:
        now = clock(transaction)
        spec = spec_of(transaction, tenant_id, timing, now)
    after = timing.first_moment(spec, now) - TICK
    return _foresight(spec, timing, None, after, timing.max_runs, count)


def foresee(scheduling: Scheduling, tenant_id: UUID, schedule_id: UUID, count: int) -> Foresight:
    """What a stored schedule does next: nothing while it is paused without an end, or disabled. NotFound."""
    schedule = scheduling.get(tenant_id, schedule_id)
    with scheduling.database.transaction() as transaction:
        now = scheduling.clock(transaction)
        [row] = transaction.run("history.calendars", ids=[schedule.calendar_id])
        [planned] = transaction.run("history.count_planned", schedule_id=schedule_id, now=now)
    left = None if schedule.runs_left is None else max(schedule.runs_left, 0) + planned["planned"]
    if schedule.status is not Status.ACTIVE:
        left = 0
    after = max(now, schedule.active_from - TICK)
    return _foresight(calendar_spec(row), schedule.definition.timing, schedule, after, left, count)


def _foresight(
    spec: CalendarSpec, timing: Timing, schedule: Schedule | None, after: datetime, left: int | None, count: int
) -> Foresight:
    window = _in_window(spec, timing.end_at, after, left)
    return Foresight(
        description=describe(spec),
        timezone=timing.timezone,
        occurrences=tuple(_foreseen(spec, timing, schedule, each) for each in islice(window, count)),
    )


def _in_window(
    spec: CalendarSpec, end_at: datetime | None, after: datetime, left: int | None
) -> Iterator[PreviewedOccurrence]:
    """Up to the end, or to the last run of a limit."""
    if left is not None and left <= 0:
        return
    for each in upcoming(spec, after):
        if end_at is not None and each.scheduled_for >= end_at:
            return
        yield each
        if left is not None and not each.excluded:
            left -= 1
            if left == 0:
                return


def _foreseen(
    spec: CalendarSpec, timing: Timing, schedule: Schedule | None, occurrence: PreviewedOccurrence
) -> ForeseenOccurrence:
    at = occurrence.scheduled_for
    limit = 0 if occurrence.excluded else jitter_limit(spec, at, timing.jitter_seconds)
    if occurrence.excluded or (limit and schedule is None):
        due_at = None
    else:
        due_at = at + timedelta(seconds=jitter_seconds(schedule.id, at, limit) if schedule else 0)
    return ForeseenOccurrence(occurrence=occurrence, due_at=due_at, jittered=limit > 0)
