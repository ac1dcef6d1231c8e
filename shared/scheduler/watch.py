"""What alarms stand on: how far behind the system is, read from the database as it is now."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from scheduler.store.clock import Clock
from scheduler.store.connection import Database


@dataclass(frozen=True, kw_only=True, slots=True)
class Watch:
    """How far behind; nothing is zero."""

    # How long the due run waits that waits longest for its attempt, of those whose tenant has not used up its share.
    oldest_due: timedelta
    # How long ago the calendar was due that should have been planned first, one under another's lock included.
    planner_lag: timedelta
    # Calendars that could not be computed and wait for a person.
    set_aside: int
    # From today to the last day whose runs have a place.
    partition_days_ahead: int
    # Tenants' endpoints whose breaker is not closed.
    endpoints_open: int


def watch(database: Database, clock: Clock, *, tenant_queued: int, tenant_concurrency: int) -> Watch:
    """Reads all of it in one transaction; raises as Database.transaction does. The two limits are those of the dispatch."""
    with database.transaction() as transaction:
        now = clock(transaction)
        due = transaction.run(
            "watch.oldest_due", now=now, tenant_queued=tenant_queued, tenant_concurrency=tenant_concurrency
        )[0]
        calendars = transaction.run("watch.calendars_behind", now=now)[0]
        last = transaction.run("watch.last_day")[0]
        breakers = transaction.run("watch.endpoints_open")[0]
    return Watch(
        oldest_due=_since(due["since"], now),
        planner_lag=_since(calendars["since"], now),
        set_aside=calendars["set_aside"],
        partition_days_ahead=_days(last["day"], now),
        endpoints_open=breakers["endpoints"],
    )


def _since(moment: datetime | None, now: datetime) -> timedelta:
    return now - moment if moment else timedelta(0)


def _days(last: date | None, now: datetime) -> int:
    return (last - now.date()).days if last else 0
