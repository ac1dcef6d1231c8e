"""Disabling: a schedule whose receiver is gone or fails for days is stopped, as an outcome's record has ordered.

The order is stored with the outcome, in one statement; it is carried out after it under the schedule's own locks, by whoever
recorded or, if that one died, by the planner.
"""

from collections.abc import Callable

from scheduler.errors import CarillonError
from scheduler.schedules import DisablingOrder, DisablingReason
from scheduler.scheduling import Scheduling
from scheduler.store.connection import StatementRefused

_PAGE = 100


def carry_out(scheduling: Scheduling, *, more_time: Callable[[], bool]) -> int:
    """Disables what is ordered, while `more_time()`, and returns how many orders are done with.

    An order that can't be carried out now, as where its schedule's calendar waits for a person, stays for the next who
    comes by, and stops no other.
    """
    with scheduling.database.transaction() as transaction:
        rows = transaction.run("disabling.orders", most=_PAGE)
    done = 0
    for row in rows:
        order = DisablingOrder(
            schedule_id=row["schedule_id"],
            tenant_id=row["tenant_id"],
            reason=DisablingReason(row["reason"]),
            decided_at=row["decided_at"],
        )
        if not more_time():
            break
        try:
            scheduling.disable(order)
        except (CarillonError, StatementRefused):
            continue
        done += 1
    return done
