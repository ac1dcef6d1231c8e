"""Calendars that no schedule uses any more: retired, so that ticks do not move them for ever."""

from collections.abc import Callable

from scheduler.store.clock import Clock
from scheduler.store.connection import Database

_PAGE = 5_000


def retire_unused(database: Database, clock: Clock, *, more_time: Callable[[], bool]) -> int:
    """Retires the calendars whose schedules are all deleted or have moved to another one; returns how many.

    A retired row stays for the versions that name it. Whoever means the same from then on makes a new one.
    """
    total = 0
    while more_time():
        with database.transaction() as transaction:
            held = [row["id"] for row in transaction.run("unused_calendars.hold", most=_PAGE)]
            retired = transaction.change("unused_calendars.retire", ids=held, now=clock(transaction))
        total += retired
        if not retired or len(held) < _PAGE:
            break
    return total
