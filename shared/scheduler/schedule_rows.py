"""Schedule rows: read and written, and what each change made of them kept as a version."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from scheduler.errors import Conflict, NotFound
from scheduler.schedules import Change, Definition, Schedule
from scheduler.store.connection import StatementRefused, Transaction
from scheduler.webhook.retry_document import retry_document


def read(transaction: Transaction, tenant_id: UUID, schedule_id: UUID) -> Schedule:
    """One schedule that is not deleted; NotFound."""
    rows = transaction.run("schedules.get", tenant_id=tenant_id, id=schedule_id)
    if not rows:
        raise _no_schedule(schedule_id)
    return Schedule.from_row(rows[0])


def lock(transaction: Transaction, tenant_id: UUID, schedule_id: UUID) -> int:
    """Holds its row for a change, behind its calendars; returns the version that it is in. NotFound."""
    rows = transaction.run("schedules.lock", tenant_id=tenant_id, id=schedule_id)
    if not rows:
        raise _no_schedule(schedule_id)
    version: int = rows[0]["version"]
    return version


def columns(definition: Definition) -> dict[str, object]:
    """A definition as the parameters of `schedules.insert` and `schedules.update`."""
    return {
        "name": definition.name,
        "timing": definition.timing.to_json(),
        "end_at": definition.timing.end_at,
        "max_runs": definition.timing.max_runs,
        "jitter_seconds": definition.timing.jitter_seconds,
        "misfire": definition.timing.misfire.policy.value,
        "misfire_grace_seconds": definition.timing.misfire.grace_seconds,
        "misfire_cap": definition.timing.misfire.cap,
        "url": definition.url,
        "headers": json.dumps(dict(definition.headers)),
        "retry": json.dumps(retry_document(definition.retry)),
        "retry_client_errors": definition.retry_client_errors,
        "overlap_policy": definition.overlap.value,
        "after_outage": definition.after_outage.value,
        "description": definition.description,
        "labels": json.dumps(dict(definition.labels)),
    }


def add_version(
    transaction: Transaction, schedule_id: UUID, change: Change, changed_by: str, now: datetime, payload: bytes | None
) -> None:
    """What the row says now, under its new number."""
    transaction.run(
        "schedules.add_version",
        id=schedule_id,
        change=change.value,
        changed_by=changed_by,
        now=now,
        payload=payload,
    )


@contextmanager
def name_in_use(name: str | None) -> Iterator[None]:
    """Conflict where a statement inside gives a second schedule of a tenant the same name."""
    try:
        yield
    except StatementRefused as refused:
        if refused.constraint != "schedule_name_once":
            raise
        raise Conflict(f"another schedule is called {name!r}") from refused


def _no_schedule(schedule_id: UUID) -> NotFound:
    return NotFound(f"no schedule {schedule_id}")
