"""The outbox: events that were decided in a transaction reach the bus after it, at least once."""

from collections.abc import Callable

from scheduler.aws.bus import Bus, Event
from scheduler.store.connection import Database, Row

_PAGE = 100


def publish(database: Database, bus: Bus, *, more_time: Callable[[], bool]) -> int:
    """Publishes what is in the outbox and returns how many events the bus took.

    The rows are locked while the bus is asked, so that two publishers share the work, and deleted after it said yes. What it
    refuses stays for the next one.
    """
    total = 0
    while more_time():
        with database.transaction() as transaction:
            rows = transaction.run("outbox.take", most=_PAGE)
            taken = bus.publish([_event(row) for row in rows])
            if taken:
                transaction.change("outbox.forget", ids=taken)
        total += len(taken)
        if len(taken) < _PAGE:
            break
    return total


def _event(row: Row) -> Event:
    return Event(id=row["id"], type=row["type"], tenant_id=row["tenant_id"], detail=row["detail"], at=row["created_at"])
