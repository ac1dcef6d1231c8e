"""Maintenance: the partitions that runs will need, and the end of those that have served their time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from scheduler.idempotency import forget
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, StatementRefused, Transaction

# Partitions reach this far ahead; an alarm comes long before they run out.
AHEAD = timedelta(days=62)
# Of the past, what a late clock or a one-off within its grace can still reach.
_BEHIND = timedelta(days=2)


@dataclass(frozen=True, kw_only=True, slots=True)
class Upkeep:
    """What one maintenance did: partitions made and dropped, runs that ended as expired, days that could not be dropped."""

    made: int
    dropped: int
    expired: int
    kept: tuple[str, ...]


def maintain(database: Database, clock: Clock, *, retention: timedelta, more_time: Callable[[], bool]) -> Upkeep:
    """Makes the partitions ahead, then drops the days older than the retention, each in a transaction of its own.

    Answers that idempotency keys no longer repeat go too, and what is kept of endpoints that are well.
    """
    with database.transaction() as transaction:
        today = clock(transaction).date()
        first_day = _first_day(transaction, today, retention)
        [row] = transaction.run("maintenance.make_partitions", first_day=first_day, last_day=today + AHEAD)
        made = row["made"]
        days = transaction.run("maintenance.days_before", first_kept=today - retention)
        forget(transaction, clock)
        transaction.change("maintenance.forget_endpoints", now=clock(transaction))
    dropped, expired, kept = 0, 0, list[str]()
    for row in days:
        if not more_time():
            kept.append(row["day"].isoformat())
            continue
        try:
            with database.transaction() as transaction:
                transaction.run("maintenance.bound_wait")
                expired += transaction.change("maintenance.expire_day", day=row["day"], now=clock(transaction))
                transaction.run("maintenance.drop_day", day=row["day"])
                dropped += 1
        except StatementRefused:
            # Somebody reads it at this moment: the next maintenance tries again, rather than make all others wait behind us.
            kept.append(row["day"].isoformat())
    return Upkeep(made=made, dropped=dropped, expired=expired, kept=tuple(kept))


def _first_day(transaction: Transaction, today: date, retention: timedelta) -> date:
    """From where partitions are to be without a hole: where maintenance was away for months, late runs fall into one."""
    there = transaction.run("maintenance.days_before", first_kept=today)
    oldest = there[0]["day"] if there else today
    return max(today - retention, min(oldest, today - _BEHIND))
