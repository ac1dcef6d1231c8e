"""What the API answers: the documents of schedules, runs and attempts, and the responses that carry them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from documents import fields_of
from instants import written
from response import Response
from scheduler.history import LoggedAttempt, Outlook, Run
from scheduler.schedules import Pause, Schedule
from scheduler.webhook.request import idempotency_key

CONTENT_TYPE = "application/json"


def answer(status: int, document: Mapping[str, Any], **headers: str) -> Response:
    """A JSON answer; a header's name is written with underscores."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status=status, content_type=CONTENT_TYPE, body=body, headers=named)


def state(status: int, document: Mapping[str, Any], tag: str, **headers: str) -> Response:
    """A thing in its state under a strong ETag: the tag, by which If-Match goes, and a digest of all that was answered."""
    plain = answer(status, document, **headers)
    etag = f'"{tag}-{digest(plain.body)}"'
    return replace(plain, headers={**plain.headers, "ETag": etag})


def digest(body: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def no_content() -> Response:
    """204."""
    return Response(status=204)


def schedule_document(schedule: Schedule, outlook: Outlook) -> dict[str, Any]:
    """A schedule as its tenant sees it."""
    return {
        "id": str(schedule.id),
        **fields_of(schedule.definition),
        "status": outlook.status.value,
        "pause": _pause(outlook.pause),
        "runs_left": None if schedule.runs_left is None else max(schedule.runs_left, 0),
        "next_run_at": outlook.next_run_at and written(outlook.next_run_at),
        "version": schedule.version,
        "created_at": written(schedule.created_at),
        "updated_at": written(schedule.updated_at),
    }


def _pause(pause: Pause | None) -> dict[str, Any] | None:
    return pause and {"until": pause.until and written(pause.until), "reason": pause.reason}


def run_document(run: Run) -> dict[str, Any]:
    """A run as its tenant sees it."""
    return {
        "id": str(run.id),
        "schedule_id": str(run.schedule_id),
        "scheduled_for": written(run.scheduled_for),
        "due_at": written(run.due_at),
        "trigger": run.trigger.value,
        "state": run.state.value,
        "reason": run.reason and run.reason.value,
        "attempt": run.attempt,
        "failures": run.failures,
        "next_attempt_at": run.next_attempt_at and written(run.next_attempt_at),
        "ended_at": run.ended_at and written(run.ended_at),
        "idempotency_key": idempotency_key(run.schedule_id, run.scheduled_for),
    }


def run_with_attempts(run: Run, attempts: list[LoggedAttempt]) -> dict[str, Any]:
    """A run with its POSTs, oldest first."""
    return run_document(run) | {"attempts": [attempt_document(each) for each in attempts]}


def attempt_document(attempt: LoggedAttempt) -> dict[str, Any]:
    """One POST of a run; `response` is null where no whole answer came."""
    headers = [{"name": name, "value": value} for name, value in attempt.response_headers]
    answered = attempt.status is not None
    return {
        "attempt": attempt.attempt,
        "started_at": written(attempt.started_at),
        "lateness_ms": attempt.lateness_ms,
        "outcome": attempt.outcome,
        "stage": attempt.stage,
        "status": attempt.status,
        "detail": attempt.detail,
        "timings": {
            "dns_ms": _whole(attempt.dns_ms),
            "connect_ms": _whole(attempt.connect_ms),
            "tls_ms": _whole(attempt.tls_ms),
            "first_byte_ms": _whole(attempt.first_byte_ms),
            "total_ms": _whole(attempt.total_ms),
        },
        "response": {"headers": headers, "body": attempt.response_body} if answered else None,
    }


def _whole(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)
