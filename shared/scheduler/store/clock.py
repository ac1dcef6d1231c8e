"""The database's clock: the one that every use case goes by, so that workers with wrong clocks agree."""

from collections.abc import Callable
from datetime import UTC, datetime

from scheduler.store.connection import Transaction

# How a use case asks for the time; tests pass their own.
type Clock = Callable[[Transaction], datetime]


def database_clock(transaction: Transaction) -> datetime:
    """The server's time of this moment, aware UTC."""
    now: datetime = transaction.run("clock.read")[0]["now"]
    return now.astimezone(UTC)
