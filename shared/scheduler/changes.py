"""What a change does to a schedule's runs, between the locks and the new row: the steps that schedules.py takes in turn."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from scheduler.calendars import Calendar
from scheduler.materialising import advance, materialise, span
from scheduler.planning import LOOK_AHEAD
from scheduler.skipped import record_paused, take_back_later
from scheduler.store.connection import Transaction
from scheduler.timing import TICK


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """As much of a schedule as decides what it owes.

    `active_from`: of one that does not fire, since when nothing is accounted for. `complete`: its limit is reached.
    """

    id: UUID
    fires: bool
    active_from: datetime
    start_at: datetime | None
    end_at: datetime | None
    held_until: datetime | None
    complete: bool


def settle(transaction: Transaction, old: Standing, calendar: Calendar, *, now: datetime, retention: timedelta) -> None:
    """Plans what a late tick still owes up to `now`, accounts for a pause, and takes back what was decided for later."""
    if not old.fires:
        _account_for_pause(transaction, old, calendar, old.active_from - TICK, now, now)
    elif calendar.planned_through < now:
        owed = span(calendar.spec, calendar.id, calendar.planned_through, now)
        materialise(transaction, [owed], now=now, retention=retention, schedule_id=old.id)
    transaction.run("schedules.drop_future_runs", id=old.id, now=now)
    take_back_later(transaction, old.id, calendar.spec, now)


def record_hold(transaction: Transaction, new: Standing, calendar: Calendar, *, now: datetime) -> None:
    """Accounts at once for a pause whose end is known; a change before its end takes back the rest."""
    if new.held_until is not None:
        _account_for_pause(transaction, new, calendar, now, new.held_until - TICK, now)


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
        advance(transaction, [span(calendar.spec, calendar.id, cursor, cursor)], cursor)


def _account_for_pause(
    transaction: Transaction, schedule: Standing, calendar: Calendar, after: datetime, until: datetime, now: datetime
) -> None:
    """Records what lies in (after, until] of the tenant's own window."""
    if schedule.start_at is not None:
        after = max(after, schedule.start_at - TICK)
    if schedule.end_at is not None:
        until = min(until, schedule.end_at - TICK)
    if not schedule.complete and after < until:
        record_paused(transaction, schedule.id, calendar.spec, after, until, now)
