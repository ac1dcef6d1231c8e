"""What alarms stand on: how far behind the system is, read from the database as it is now."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from scheduler.store.clock import Clock
from scheduler.store.connection import Database


@dataclass(frozen=True, kw_only=True, slots=True)
class Watch:
    """How far behind; nothing is zero."""

    # How long the due run waits that waits longest for its attempt.
    oldest_due: timedelta
    # How long ago the calendar was due that should have been planned first, one under another's lock included.
    planner_lag: timedelta
    # Calendars that could not be computed and wait for a person.
    set_aside: int
    # From today to the last day whose runs have a place.
    partition_days_ahead: int


def watch(database: Database, clock: Clock) -> Watch:
    """Reads all of it in one transaction; raises as Database.transaction does."""
    with database.transaction() as transaction:
        now = clock(transaction)
        due = transaction.run("watch.oldest_due", now=now)[0]
        calendars = transaction.run("watch.calendars_behind", now=now)[0]
        last = transaction.run("watch.last_day")[0]
    return Watch(
        oldest_due=_since(due["since"], now),
        planner_lag=_since(calendars["since"], now),
        set_aside=calendars["set_aside"],
        partition_days_ahead=_days(last["day"], now),
    )


def _since(moment: datetime | None, now: datetime) -> timedelta:
    return now - moment if moment else timedelta(0)


def _days(last: date | None, now: datetime) -> int:
    return (last - now.date()).days if last else 0
