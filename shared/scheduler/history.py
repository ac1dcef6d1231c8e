"""What tenants may look back on, and forward to: a schedule's runs, a run's attempts, when a schedule fires next."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from scheduler.calendar.occurrences import next_occurrence
from scheduler.calendar.spec import CalendarSpec
from scheduler.calendars import calendar_spec
from scheduler.errors import NotFound
from scheduler.preconditions import tag_of
from scheduler.runs import Reason, State, scheduled_for_of
from scheduler.schedules import Pause, Schedule, Status
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row
from scheduler.timing import TICK

_ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})


class Trigger(StrEnum):
    """What made a run."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    BACKFILL = "backfill"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A stored run. `attempt` counts claims, `failures` recorded failed attempts; `next_attempt_at` is None once it ended."""

    id: UUID
    schedule_id: UUID
    scheduled_for: datetime
    due_at: datetime
    state: State
    reason: Reason | None
    attempt: int
    failures: int
    next_attempt_at: datetime | None
    ended_at: datetime | None
    trigger: Trigger

    @property
    def tag(self) -> str:
        """Names its state."""
        return tag_of(*astuple(self))

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The run of a row."""
        state = State(row["state"])
        return cls(
            id=row["id"],
            schedule_id=row["schedule_id"],
            scheduled_for=row["scheduled_for"],
            due_at=row["due_at"],
            state=state,
            reason=Reason(row["reason"]) if row["reason"] else None,
            attempt=row["attempt"],
            failures=row["failures"],
            next_attempt_at=None if state in _ENDED else row["next_attempt_at"],
            ended_at=row["ended_at"],
            trigger=Trigger(row["trigger"]),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedAttempt:
    """One POST that was tried. `status`, headers and body are the receiver's, where it answered; times in milliseconds."""

    attempt: int
    started_at: datetime
    lateness_ms: int
    outcome: str
    stage: str | None
    status: int | None
    detail: str | None
    response_headers: tuple[tuple[str, str], ...]
    response_body: str
    dns_ms: float | None
    connect_ms: float | None
    tls_ms: float | None
    first_byte_ms: float | None
    total_ms: float

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The attempt of a row, whose columns are its fields."""
        headers = tuple((name, value) for name, value in row["response_headers"])
        return cls(**(row | {"response_headers": headers}))


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """A schedule at this moment: a pause that is over is none.

    `next_run_at`: un-jittered; None while nothing is to come, or while its calendar is set aside.
    """

    status: Status
    pause: Pause | None
    next_run_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """The reads, over one database and clock."""

    database: Database
    clock: Clock

    def run(self, tenant_id: UUID, run_id: UUID) -> tuple[Run, list[LoggedAttempt]]:
        """One run with its attempts, oldest first; NotFound."""
        scheduled_for = scheduled_for_of(run_id)
        if scheduled_for is None:
            raise NotFound(f"no run {run_id}")
        with self.database.transaction() as transaction:
            rows = transaction.run("history.run", tenant_id=tenant_id, id=run_id, scheduled_for=scheduled_for)
            if not rows:
                raise NotFound(f"no run {run_id}")
            attempts = transaction.run("history.attempts", run_id=run_id, scheduled_for=scheduled_for)
        return Run.from_row(rows[0]), [LoggedAttempt.from_row(row) for row in attempts]

    def outlooks(self, schedules: Iterable[Schedule]) -> dict[UUID, Outlook]:
        """What each schedule does now and does next."""
        listed = list(schedules)
        if not listed:
            return {}
        with self.database.transaction() as transaction:
            now = self.clock(transaction)
            ids = sorted({schedule.calendar_id for schedule in listed if schedule.status is Status.ACTIVE})
            calendars = transaction.run("history.calendars", ids=ids) if ids else []
            complete = [
                schedule.id for schedule in listed if schedule.runs_left is not None and schedule.runs_left <= 0
            ]
            planned = transaction.run("history.next_planned", schedule_ids=complete, now=now) if complete else []
        specs = {row["id"]: calendar_spec(row) for row in calendars if row["set_aside_at"] is None}
        last: dict[UUID, datetime | None] = dict.fromkeys(complete) | {
            row["schedule_id"]: row["scheduled_for"] for row in planned
        }
        return {each.id: _outlook(each, specs.get(each.calendar_id), last, now) for each in listed}


def _outlook(
    schedule: Schedule, spec: CalendarSpec | None, last: dict[UUID, datetime | None], now: datetime
) -> Outlook:
    over = schedule.pause is not None and schedule.pause.until is not None and schedule.pause.until <= now
    if schedule.id in last and schedule.status is Status.ACTIVE:
        following = last[schedule.id]
    else:
        following = _next_run(schedule, spec, now)
    return Outlook(status=schedule.status_at(now), pause=None if over else schedule.pause, next_run_at=following)


def _next_run(schedule: Schedule, spec: CalendarSpec | None, now: datetime) -> datetime | None:
    if schedule.status is not Status.ACTIVE or spec is None:
        return None
    following = next_occurrence(spec, max(now, schedule.active_from - TICK))
    end_at = schedule.definition.timing.end_at
    return following if following and (end_at is None or following < end_at) else None
