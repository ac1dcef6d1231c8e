"""Schedules: what tenants create, edit, pause, resume and delete, without losing or inventing a run.

Every change happens at one instant t, the database's, in one transaction: first it locks the schedule's old and new calendar
against the planner, then it reads t. What the old timing owed up to t is planned; its unclaimed runs later than t are
dropped; the new timing is planned from t up to where its calendar's cursor already stands. The planner does the rest.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self
from uuid import UUID

from scheduler.calendar.occurrences import next_occurrence
from scheduler.calendar.spec import CalendarSpec
from scheduler.calendar.zones import tzdata_version
from scheduler.errors import Conflict, NotFound
from scheduler.planning import LOOK_AHEAD, calendar_spec, materialise, span
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row, StatementRefused, Transaction
from scheduler.timing import GRACE, TICK, Timing
from scheduler.webhook.retry import DEFAULT, RetryPolicy
from scheduler.webhook.retry_document import parse_retry, retry_document

_MISFIRE_CAP = 100
# Changes of one schedule at once that may overtake each other before one gives up.
_TRIES = 10


class Status(StrEnum):
    """What a schedule may do: fire, wait for its tenant, wait since its receiver failed for good, or nothing more."""

    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"
    DELETED = "deleted"


class Change(StrEnum):
    """What a version of a schedule records."""

    CREATED = "created"
    EDITED = "edited"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"
    DISABLED = "disabled"


class OverlapPolicy(StrEnum):
    """What becomes of a run that is due while an earlier one of its schedule is neither acknowledged nor exhausted."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"


class AfterOutage(StrEnum):
    """Which of the runs that were held while their endpoint failed are sent once it is back."""

    ALL = "all"
    LATEST = "latest"
    NONE = "none"


class DisablingReason(StrEnum):
    """Why a schedule was disabled: its receiver answered 410, or has not acknowledged anything for days."""

    GONE = "gone"
    ENDPOINT_FAILING = "endpoint_failing"


@dataclass(frozen=True, kw_only=True, slots=True)
class DisablingOrder:
    """What a recorded outcome decided about a schedule, at `decided_at`."""

    schedule_id: UUID
    tenant_id: UUID
    reason: DisablingReason
    decided_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """What a tenant decides. `payload` is the bytes to POST, or None for the default document."""

    name: str | None
    timing: Timing
    url: str
    headers: tuple[tuple[str, str], ...]
    payload: bytes | None
    retry: RetryPolicy = DEFAULT
    retry_client_errors: bool = True
    overlap: OverlapPolicy = OverlapPolicy.ALLOW
    after_outage: AfterOutage = AfterOutage.ALL


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """A stored schedule."""

    id: UUID
    tenant_id: UUID
    definition: Definition
    status: Status
    version: int
    calendar_id: int
    active_from: datetime
    created_at: datetime
    updated_at: datetime

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The schedule of a row with its payload."""
        return cls(
            id=row["id"],
            tenant_id=row["tenant_id"],
            definition=Definition(
                name=row["name"],
                timing=Timing.from_json(row["timing"]),
                url=row["url"],
                headers=tuple(row["headers"].items()),
                payload=row["payload"],
                retry=parse_retry(row["retry"]),
                retry_client_errors=row["retry_client_errors"],
                overlap=OverlapPolicy(row["overlap_policy"]),
                after_outage=AfterOutage(row["after_outage"]),
            ),
            status=Status(row["status"]),
            version=row["version"],
            calendar_id=row["calendar_id"],
            active_from=row["active_from"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Calendar:
    """A calendar row under our lock; `made` by this transaction, so that no other sees it yet."""

    id: int
    spec: CalendarSpec
    planned_through: datetime
    made: bool


class _Overtaken(Exception):
    """Another change came between our look at the schedule and our locks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduling:
    """The use cases, over one database and clock. `changed_by` is the key or the operator that the version names."""

    database: Database
    clock: Clock
    retention: timedelta

    def create(self, tenant_id: UUID, schedule_id: UUID, definition: Definition, *, changed_by: str) -> Schedule:
        """Stores it under the given new id, with its next runs planned. InvalidInput; Conflict for a name in use."""
        timing = definition.timing
        with self.database.transaction() as transaction:
            calendar, _ = self._lock_calendars(transaction, timing, None)
            now = self.clock(transaction)
            active_from = timing.first_moment(calendar.spec, now)
            columns = _columns(definition) | {"calendar_id": calendar.id, "active_from": active_from, "now": now}
            with _name_in_use(definition.name):
                transaction.run(
                    "schedules.insert",
                    id=schedule_id,
                    tenant_id=tenant_id,
                    grace_seconds=GRACE.seconds,
                    cap=_MISFIRE_CAP,
                    **columns,
                )
            _add_version(transaction, schedule_id, Change.CREATED, changed_by, now, definition.payload)
            self._plan_ahead(transaction, schedule_id, calendar, active_from, now)
            return _read(transaction, "schedules.get", tenant_id, schedule_id)

    def get(self, tenant_id: UUID, schedule_id: UUID) -> Schedule:
        """One schedule; NotFound."""
        with self.database.transaction() as transaction:
            return _read(transaction, "schedules.get", tenant_id, schedule_id)

    def list(self, tenant_id: UUID, *, after: tuple[datetime, UUID], most: int) -> list[Schedule]:
        """At most `most` schedules created after the keyset, oldest first."""
        with self.database.transaction() as transaction:
            rows = transaction.run(
                "schedules.list", tenant_id=tenant_id, after_at=after[0], after_id=after[1], most=most
            )
        return [Schedule.from_row(row) for row in rows]

    def edit(
        self, tenant_id: UUID, schedule_id: UUID, edit: Callable[[Definition], Definition], *, changed_by: str
    ) -> Schedule:
        """Replaces what `edit` returns otherwise. Runs that are due go on; later ones follow the new timing."""
        return self._change(
            tenant_id, schedule_id, lambda old: (edit(old.definition), old.status), Change.EDITED, changed_by
        )

    def pause(self, tenant_id: UUID, schedule_id: UUID, *, changed_by: str) -> Schedule:
        """No run is due while it is paused, and none becomes due; those already due are held until it is resumed."""
        return self._change(
            tenant_id, schedule_id, lambda old: (old.definition, Status.PAUSED), Change.PAUSED, changed_by
        )

    def resume(self, tenant_id: UUID, schedule_id: UUID, *, changed_by: str) -> Schedule:
        """Fires again from now on; what lay inside the pause is not missed."""
        return self._change(
            tenant_id, schedule_id, lambda old: (old.definition, Status.ACTIVE), Change.RESUMED, changed_by
        )

    def delete(self, tenant_id: UUID, schedule_id: UUID, *, changed_by: str) -> None:
        """Ends it: runs already due are cancelled, with that reason; later ones are gone."""
        self._change(tenant_id, schedule_id, lambda old: (old.definition, Status.DELETED), Change.DELETED, changed_by)

    def disable(self, order: DisablingOrder) -> None:
        """Carries out an order: nothing becomes due any more, until the tenant resumes it.

        A change that the tenant made after the outcome overrules it. Conflict as for the other changes.
        """

        def decide(old: Schedule) -> tuple[Definition, Status]:
            return old.definition, old.status if order.decided_at < old.updated_at else Status.DISABLED

        with contextlib.suppress(NotFound):
            self._change(order.tenant_id, order.schedule_id, decide, Change.DISABLED, f"outcome: {order.reason}")
        with self.database.transaction() as transaction:
            transaction.run("disabling.done", id=order.schedule_id, decided_at=order.decided_at)

    def _change(
        self,
        tenant_id: UUID,
        schedule_id: UUID,
        decide: Callable[[Schedule], tuple[Definition, Status]],
        change: Change,
        changed_by: str,
    ) -> Schedule:
        for _ in range(_TRIES):
            with contextlib.suppress(_Overtaken), self.database.transaction() as transaction:
                seen = _read(transaction, "schedules.get", tenant_id, schedule_id)
                definition, status = decide(seen)
                if (definition, status) == (seen.definition, seen.status):
                    return seen
                return self._carry_out(transaction, seen, definition, status, change, changed_by)
        raise Conflict("it is being changed by others at this moment; try again")

    def _carry_out(
        self,
        transaction: Transaction,
        old: Schedule,
        definition: Definition,
        status: Status,
        change: Change,
        changed_by: str,
    ) -> Schedule:
        new_calendar, old_calendar = self._lock_calendars(transaction, definition.timing, old)
        if _read(transaction, "schedules.lock", old.tenant_id, old.id).version != old.version:
            raise _Overtaken
        # Never before its last change, even where a failover put the database's clock back.
        now = max(self.clock(transaction), old.updated_at + TICK)
        moves = definition.timing != old.definition.timing or status is not old.status
        if moves:
            self._settle(transaction, old, old_calendar, now)
        active_from = _active_from(old, definition.timing, new_calendar, now) if moves else old.active_from
        columns = _columns(definition) | {"calendar_id": new_calendar.id, "active_from": active_from, "now": now}
        payload_changed = definition.payload != old.definition.payload
        with _name_in_use(definition.name):
            transaction.run(
                "schedules.update",
                id=old.id,
                version=old.version,
                status=status.value,
                payload_changed=payload_changed,
                **columns,
            )
        _add_version(transaction, old.id, change, changed_by, now, definition.payload)
        if change is Change.DISABLED:
            transaction.run("disabling.announce", id=old.id, now=now)
        if status is Status.DELETED:
            transaction.run("schedules.cancel_owed_runs", id=old.id, now=now)
            return old
        if moves and status is Status.ACTIVE:
            self._plan_ahead(transaction, old.id, new_calendar, active_from, now)
        return _read(transaction, "schedules.get", old.tenant_id, old.id)

    def _lock_calendars(
        self, transaction: Transaction, timing: Timing, old: Schedule | None
    ) -> tuple[_Calendar, _Calendar]:
        """The new and the old calendar, held still until the end of the transaction: the first locks it takes."""
        made, new_id = False, old.calendar_id if old else 0
        if old is None or not timing.same_calendar(old.definition.timing):
            made, new_id = _ensure_calendar(transaction, timing, self.clock(transaction))
        old_id = old.calendar_id if old else new_id
        rows = transaction.run("schedules.lock_calendars", ids=[new_id, old_id])
        locked = {
            row["id"]: _Calendar(
                id=row["id"],
                spec=calendar_spec(row),
                planned_through=row["planned_through"],
                made=made and row["id"] == new_id,
            )
            for row in rows
        }
        return locked[new_id], locked[old_id]

    def _settle(self, transaction: Transaction, old: Schedule, calendar: _Calendar, now: datetime) -> None:
        """Plans what a late tick still owes up to `now`, and drops what was planned for later."""
        if old.status is Status.ACTIVE and calendar.planned_through < now:
            owed = span(calendar.spec, calendar.id, calendar.planned_through, now)
            materialise(transaction, [owed], now=now, retention=self.retention, schedule_id=old.id)
        transaction.run("schedules.drop_future_runs", id=old.id, now=now)

    def _plan_ahead(
        self, transaction: Transaction, schedule_id: UUID, calendar: _Calendar, active_from: datetime, now: datetime
    ) -> None:
        """Plans what lies between the window's beginning and the calendar's cursor: no tick will look there again.

        A calendar of our own making has its cursor moved to the look-ahead, so that a first run within the next minute does
        not wait for a tick.
        """
        cursor = max(calendar.planned_through, now + LOOK_AHEAD) if calendar.made else calendar.planned_through
        ahead = span(calendar.spec, calendar.id, active_from - TICK, max(cursor, active_from - TICK))
        materialise(transaction, [ahead], now=now, retention=self.retention, schedule_id=schedule_id)
        if calendar.made:
            transaction.run(
                "planning.advance",
                ids=[calendar.id],
                next_fire_ats=[next_occurrence(calendar.spec, cursor)],
                horizon=cursor,
                tzdata_version=tzdata_version(),
            )


def _active_from(old: Schedule, timing: Timing, calendar: _Calendar, now: datetime) -> datetime:
    if timing.same_calendar(old.definition.timing):
        return timing.from_now(now)
    return timing.first_moment(calendar.spec, now)


def _ensure_calendar(transaction: Transaction, timing: Timing, now: datetime) -> tuple[bool, int]:
    """Whether this transaction made the row, and its id. Waits for another transaction that is just making it."""
    spec = timing.calendar(now)
    key = {
        "kind": spec.kind.value,
        "expression": spec.expression,
        "timezone": spec.timezone,
        "gap": spec.gap.value,
        "overlap": spec.overlap.value,
        "anchor": spec.anchor,
    }
    made = transaction.run(
        "schedules.add_calendar",
        now=now,
        next_fire_at=next_occurrence(spec, now),
        tzdata_version=tzdata_version(),
        **key,
    )
    rows = made or transaction.run("schedules.find_calendar", **key)
    return bool(made), rows[0]["id"]


def _read(transaction: Transaction, block: str, tenant_id: UUID, schedule_id: UUID) -> Schedule:
    rows = transaction.run(block, tenant_id=tenant_id, id=schedule_id)
    if not rows:
        raise NotFound(f"no schedule {schedule_id}")
    return Schedule.from_row(rows[0])


def _columns(definition: Definition) -> dict[str, object]:
    return {
        "name": definition.name,
        "timing": definition.timing.to_json(),
        "end_at": definition.timing.end_at,
        "url": definition.url,
        "headers": json.dumps(dict(definition.headers)),
        "retry": json.dumps(retry_document(definition.retry)),
        "retry_client_errors": definition.retry_client_errors,
        "overlap_policy": definition.overlap.value,
        "after_outage": definition.after_outage.value,
    }


def _add_version(
    transaction: Transaction, schedule_id: UUID, change: Change, changed_by: str, now: datetime, payload: bytes | None
) -> None:
    transaction.run(
        "schedules.add_version",
        id=schedule_id,
        change=change.value,
        changed_by=changed_by,
        now=now,
        payload=payload,
    )


@contextmanager
def _name_in_use(name: str | None) -> Iterator[None]:
    try:
        yield
    except StatementRefused as refused:
        if refused.constraint != "schedule_name_once":
            raise
        raise Conflict(f"another schedule is called {name!r}") from refused
