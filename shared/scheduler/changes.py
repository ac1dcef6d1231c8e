"""One change to a schedule, at one instant: what becomes of its runs, its row and its versions.

The instant t is the database's, read under the locks of the old and the new calendar, which keep the planner out. What the old
timing owed up to t is planned; its unclaimed runs later than t are dropped; the new timing is planned from t up to where its
calendar's cursor already stands. The planner does the rest.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from scheduler import schedule_rows
from scheduler.calendars import Calendar, lock_calendars
from scheduler.errors import InvalidInput, Problem
from scheduler.look_ahead import LOOK_AHEAD
from scheduler.materialising import advance, materialise, span
from scheduler.schedules import Change, Definition, Pause, Schedule, Status
from scheduler.skipped import SkipReason, Standing, record_hold, record_idleness, take_back_later
from scheduler.store.clock import Clock
from scheduler.store.connection import Transaction
from scheduler.timing import TICK

# What lies inside a pause is counted at its beginning.
LONGEST_PAUSE = timedelta(days=366)
_IDLE = {Status.PAUSED: SkipReason.PAUSED, Status.DISABLED: SkipReason.DISABLED}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What a change makes of a schedule."""

    definition: Definition
    status: Status
    pause: Pause | None

    @classmethod
    def of(cls, old: Schedule) -> Self:
        """What it is already."""
        return cls(definition=old.definition, status=old.status, pause=old.pause)

    @property
    def until(self) -> datetime | None:
        """The end of its pause, if it has one that ends by itself."""
        return self.pause.until if self.pause else None

    def moves(self, old: Schedule) -> bool:
        """Whether it changes when the schedule fires."""
        was = Wanted.of(old)
        return (self.definition.timing, self.status, self.until) != (was.definition.timing, was.status, was.until)


class Overtaken(Exception):
    """Another change came between our look at the schedule and our locks."""


def carry_out(
    transaction: Transaction,
    clock: Clock,
    old: Schedule,
    wanted: Wanted,
    change: Change,
    *,
    changed_by: str,
    retention: timedelta,
) -> Schedule:
    """Makes of `old` what is wanted, and returns it; Overtaken, NotFound, Conflict, InvalidInput."""
    timing, was = wanted.definition.timing, (old.definition.timing, old.calendar_id)
    new_calendar, old_calendar = lock_calendars(transaction, old.tenant_id, timing, clock(transaction), old=was)
    if schedule_rows.lock(transaction, old.tenant_id, old.id) != old.version:
        raise Overtaken
    # Never before its last change, even where a failover put the database's clock back.
    now = max(clock(transaction), old.updated_at + TICK)
    moves, active_from = wanted.moves(old), old.active_from
    wanted = _current(wanted, old, now)
    if moves:
        # What a calendar owes that can't be computed keeps nobody from leaving.
        if not (old_calendar.set_aside and wanted.status is Status.DELETED):
            _settle(transaction, _standing(old), old_calendar, now=now, retention=retention)
        active_from = _active_from(old, wanted, new_calendar, now)
    _store(transaction, old, wanted, calendar_id=new_calendar.id, active_from=active_from, now=now)
    schedule_rows.add_version(transaction, old.id, change, changed_by, now, wanted.definition.payload)
    if change is Change.DISABLED:
        transaction.run("disabling.announce", id=old.id, now=now)
    if wanted.status is Status.DELETED:
        transaction.run("schedules.cancel_owed_runs", id=old.id, now=now)
        return old
    changed = schedule_rows.read(transaction, old.tenant_id, old.id)
    if not moves or wanted.status is not Status.ACTIVE:
        return changed
    record_hold(transaction, _standing(changed), new_calendar.spec, now=now)
    plan_ahead(transaction, old.id, new_calendar, active_from, now=now, retention=retention)
    # Its runs are counted against its limit.
    return schedule_rows.read(transaction, old.tenant_id, old.id)


def plan_ahead(
    transaction: Transaction,
    schedule_id: UUID,
    calendar: Calendar,
    active_from: datetime,
    *,
    now: datetime,
    retention: timedelta,
) -> None:
    """Plans what lies between the window's beginning and the calendar's cursor: no tick will look there again.

    A calendar of our own making has its cursor moved to the look-ahead, so that a first run within the next minute does not
    wait for a tick.
    """
    cursor = max(calendar.planned_through, now + LOOK_AHEAD) if calendar.made else calendar.planned_through
    ahead = span(calendar.spec, calendar.id, active_from - TICK, max(cursor, active_from - TICK))
    materialise(transaction, [ahead], now=now, retention=retention, schedule_id=schedule_id)
    if calendar.made:
        advance(transaction, [span(calendar.spec, calendar.id, cursor, cursor)])


def _settle(
    transaction: Transaction, old: Standing, calendar: Calendar, *, now: datetime, retention: timedelta
) -> None:
    """Plans what a late tick still owes up to `now`, accounts for idle times, and takes back what was decided for later."""
    if old.idle is not None:
        record_idleness(transaction, old, calendar.spec, now=now)
    elif calendar.planned_through < now:
        owed = span(calendar.spec, calendar.id, calendar.planned_through, now)
        materialise(transaction, [owed], now=now, retention=retention, schedule_id=old.id)
    transaction.run("schedules.drop_future_runs", id=old.id, now=now)
    take_back_later(transaction, old.id, calendar.spec, now)


def _store(
    transaction: Transaction,
    old: Schedule,
    wanted: Wanted,
    *,
    calendar_id: int,
    active_from: datetime,
    now: datetime,
) -> None:
    with schedule_rows.name_in_use(wanted.definition.name):
        transaction.run(
            "schedules.update",
            id=old.id,
            version=old.version,
            status=wanted.status.value,
            payload_changed=wanted.definition.payload != old.definition.payload,
            calendar_id=calendar_id,
            active_from=active_from,
            held_until=wanted.until,
            pause_reason=wanted.pause.reason if wanted.pause else None,
            now=now,
            **schedule_rows.columns(wanted.definition),
        )


def _current(wanted: Wanted, old: Schedule, now: datetime) -> Wanted:
    """The change as it is at `now`, when an old pause may be over. InvalidInput for a new one that ends at no time to come."""
    if wanted.until is None or now < wanted.until <= now + LONGEST_PAUSE:
        return wanted
    if wanted.pause == old.pause:
        return replace(wanted, pause=None)
    detail = f"must be later than now, by {LONGEST_PAUSE.days} days at most"
    raise InvalidInput(Problem(pointer="/until", detail=detail))


def _standing(schedule: Schedule) -> Standing:
    timing = schedule.definition.timing
    return Standing(
        id=schedule.id,
        idle=_IDLE.get(schedule.status),
        active_from=schedule.active_from,
        start_at=timing.start_at,
        end_at=timing.end_at,
        held_until=schedule.pause.until if schedule.pause else None,
        complete=schedule.runs_left is not None and schedule.runs_left <= 0,
    )


def _active_from(old: Schedule, wanted: Wanted, calendar: Calendar, now: datetime) -> datetime:
    timing = wanted.definition.timing
    same = timing.same_calendar(old.definition.timing)
    first = timing.from_now(now) if same else timing.first_moment(calendar.spec, now)
    return max(first, wanted.until or first)
