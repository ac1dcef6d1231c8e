"""Dead letters: what the queue gave up on is planned again. The dead-letter queue decides nothing."""

from collections.abc import Sequence
from uuid import UUID

from scheduler.leases import put_back
from scheduler.report import Report
from scheduler.runs import parse_run_id
from scheduler.store.clock import Clock
from scheduler.store.connection import Database


def put_all_back(database: Database, clock: Clock, bodies: Sequence[str], report: Report) -> set[UUID]:
    """Puts the unfinished runs among these message bodies back to planned, and returns them.

    Raises DatabaseUnavailable, and the messages stay where they are.
    """
    run_ids = [run_id for body in bodies if (run_id := parse_run_id(body)) is not None]
    returned = put_back(database, clock, run_ids)
    for run_id in run_ids:
        report("run.put_back" if run_id in returned else "run.settled", run_id=str(run_id))
    return returned
