"""What several routes answer alike."""

from uuid import UUID

import conditions
from answers import answer, run_with_attempts, schedule_document
from parts import Parts, Request
from response import Response
from scheduler.schedules import Schedule


def schedule_reply(parts: Parts, schedule: Schedule, status: int = 200, **headers: str) -> Response:
    """A schedule under its entity tag."""
    document = schedule_document(schedule, parts.history.outlooks([schedule])[schedule.id])
    return answer(status, document, ETag=conditions.entity_tag(schedule.version), **headers)


def run_reply(parts: Parts, request: Request, run_id: UUID, status: int = 200, **headers: str) -> Response:
    """A run with its attempts."""
    return answer(status, run_with_attempts(*parts.history.run(request.tenant_id, run_id)), **headers)
