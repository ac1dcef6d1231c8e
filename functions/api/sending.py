"""Sends a schedule's runs as soon as a request has stored what it changed."""

from uuid import UUID

from parts import Parts, Request
from scheduler.errors import DatabaseUnavailable
from scheduler.store.connection import StatementRefused


def send_soon(parts: Parts, request: Request, schedule_id: UUID) -> None:
    """Sends the schedule's first runs once they are stored, so that one within the next minute does not wait for a tick."""

    def send() -> None:
        try:
            parts.dispatcher.dispatch(more_time=request.more_time, schedule_id=schedule_id)
        except (DatabaseUnavailable, StatementRefused) as error:
            # The change is committed, and the planner sends what is left: the caller has nothing to repeat.
            parts.logger.warning("runs.left_to_the_planner", schedule_id=str(schedule_id), error=str(error))

    request.later.append(send)
