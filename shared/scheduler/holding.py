"""Runs that something holds: they wait for its end, but not for ever."""

from collections.abc import Callable

from scheduler.store.clock import Clock
from scheduler.store.connection import Database
from scheduler.webhook.retry import DEFAULT

_PAGE = 1_000


def expire_held(database: Database, clock: Clock, *, more_time: Callable[[], bool]) -> int:
    """Ends what has been held for longer than its retry policy may last, whoever holds it; returns how many runs.

    Each ends as failed, expired, with its event: a pause or an outage of weeks must not end in a flood of what nobody wants
    any more.
    """
    total = 0
    while more_time():
        with database.transaction() as transaction:
            ended = transaction.change(
                "holding.expire",
                now=clock(transaction),
                default_age_seconds=DEFAULT.max_age.total_seconds(),
                most=_PAGE,
            )
        total += ended
        if ended < _PAGE:
            break
    return total
