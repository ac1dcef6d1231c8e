"""What several routes answer alike."""

from uuid import UUID

from answers import run_with_attempts, schedule_document, state
from parts import Parts, Request
from response import Response
from scheduler.schedules import Schedule


def schedule_reply(parts: Parts, schedule: Schedule, status: int = 200, **headers: str) -> Response:
    """A schedule under its entity tag."""
    document = schedule_document(schedule, parts.history.outlooks([schedule])[schedule.id])
    return state(status, document, schedule.tag, **headers)


def run_reply(parts: Parts, request: Request, run_id: UUID, status: int = 200, **headers: str) -> Response:
    """A run with its attempts."""
    run, attempts = parts.history.run(request.tenant_id, run_id)
    return state(status, run_with_attempts(run, attempts), run.tag, **headers)
