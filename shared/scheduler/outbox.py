"""The outbox: events that were decided in a transaction reach the bus after it, at least once.

Whoever recorded an event publishes it, or, where that one does not live to do so, the planner.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from scheduler.aws.bus import Bus, Event
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row

_PAGE = 100


def publish_own(database: Database, bus: Bus, events: Sequence[Event]) -> None:
    """Publishes events that the caller has recorded, and committed. What the bus refuses is published by others, later."""
    if taken := bus.publish(events):
        with database.transaction() as transaction:
            transaction.change("outbox.forget", ids=taken)


def publish(database: Database, clock: Clock, bus: Bus, *, more_time: Callable[[], bool]) -> int:
    """Publishes what is in the outbox, and not left to who recorded it, and returns how many events the bus took.

    The rows are locked while the bus is asked, so that two publishers share the work, and deleted after it said yes. What it
    refuses stays for the next one.
    """
    total = 0
    while more_time():
        with database.transaction() as transaction:
            rows = transaction.run("outbox.take", now=clock(transaction), most=_PAGE)
            taken = bus.publish([_event(row) for row in rows])
            if taken:
                transaction.change("outbox.forget", ids=taken)
        total += len(taken)
        if len(taken) < _PAGE:
            break
    return total


def _event(row: Row) -> Event:
    return Event(id=row["id"], type=row["type"], tenant_id=row["tenant_id"], detail=row["detail"], at=row["created_at"])


def events_in(stored: Sequence[dict[str, Any]] | None, *, at: datetime) -> tuple[Event, ...]:
    """The events that a statement has stored, as it returns them."""
    return tuple(
        Event(id=UUID(each["id"]), type=each["type"], tenant_id=UUID(each["tenant_id"]), detail=each["detail"], at=at)
        for each in stored or ()
    )
