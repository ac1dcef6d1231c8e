"""What a change does to a schedule's runs, between the locks and the new row: the steps that scheduling.py takes in turn."""

from datetime import datetime, timedelta
from uuid import UUID

from scheduler.calendars import Calendar
from scheduler.look_ahead import LOOK_AHEAD
from scheduler.materialising import advance, materialise, span
from scheduler.skipped import Standing, account_for_pause, take_back_later
from scheduler.store.connection import Transaction
from scheduler.timing import TICK


def settle(transaction: Transaction, old: Standing, calendar: Calendar, *, now: datetime, retention: timedelta) -> None:
    """Plans what a late tick still owes up to `now`, accounts for a pause, and takes back what was decided for later."""
    if not old.fires:
        account_for_pause(transaction, old, calendar.spec, old.active_from - TICK, now, now)
    elif calendar.planned_through < now:
        owed = span(calendar.spec, calendar.id, calendar.planned_through, now)
        materialise(transaction, [owed], now=now, retention=retention, schedule_id=old.id)
    transaction.run("schedules.drop_future_runs", id=old.id, now=now)
    take_back_later(transaction, old.id, calendar.spec, now)


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
