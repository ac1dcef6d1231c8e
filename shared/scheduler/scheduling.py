"""Scheduling: tenants create, edit, pause, resume and delete schedules, without losing or inventing a run.

Every change happens at one instant t, the database's, in one transaction: first it locks the schedule's old and new calendar
against the planner, then it reads t. What the old timing owed up to t is planned; its unclaimed runs later than t are
dropped; the new timing is planned from t up to where its calendar's cursor already stands. The planner does the rest.
"""

import contextlib
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from scheduler.calendars import Calendar, lock_calendars
from scheduler.changes import plan_ahead, settle
from scheduler.errors import Conflict, InvalidInput, NotFound, PreconditionFailed, Problem
from scheduler.limits import make_room
from scheduler.schedules import Change, Definition, DisablingOrder, Pause, Schedule, Status
from scheduler.skipped import Standing, record_hold
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, StatementRefused, Transaction
from scheduler.timing import TICK
from scheduler.webhook.retry_document import retry_document

# What lies inside a pause is counted at its beginning.
LONGEST_PAUSE = timedelta(days=366)
# Changes of one schedule at once that may overtake each other before one gives up.
_TRIES = 10
_FOR_GOOD = Pause()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """What a change makes of a schedule."""

    definition: Definition
    status: Status
    pause: Pause | None

    @classmethod
    def of(cls, old: Schedule) -> Self:
        """What it is already."""
        return cls(definition=old.definition, status=old.status, pause=old.pause)

    @property
    def until(self) -> datetime | None:
        """The end of its pause, if it has one that ends by itself."""
        return self.pause.until if self.pause else None

    def moves(self, old: Schedule) -> bool:
        """Whether it changes when the schedule fires."""
        was = _Wanted.of(old)
        return (self.definition.timing, self.status, self.until) != (was.definition.timing, was.status, was.until)


# The versions of a schedule that a change is meant for; None is any.
type Versions = Collection[int] | None


class _Overtaken(Exception):
    """Another change came between our look at the schedule and our locks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduling:
    """The use cases, over one database and clock. `changed_by` is the key or the operator that the version names.

    A change is made `only` to the given versions, where they are given: PreconditionFailed for another one.
    """

    database: Database
    clock: Clock
    retention: timedelta

    def create(self, tenant_id: UUID, schedule_id: UUID, definition: Definition, *, changed_by: str) -> Schedule:
        """Stores it under the given new id, with its next runs planned.

        InvalidInput; Conflict for a name in use; LimitExceeded where the tenant has as many as it may.
        """
        timing = definition.timing
        with self.database.transaction() as transaction:
            calendar, _ = lock_calendars(transaction, tenant_id, timing, self.clock(transaction), old=None)
            make_room(transaction, tenant_id)
            now = self.clock(transaction)
            active_from = timing.first_moment(calendar.spec, now)
            columns = _columns(definition) | {"calendar_id": calendar.id, "active_from": active_from, "now": now}
            with _name_in_use(definition.name):
                transaction.run("schedules.insert", id=schedule_id, tenant_id=tenant_id, **columns)
            _add_version(transaction, schedule_id, Change.CREATED, changed_by, now, definition.payload)
            plan_ahead(transaction, schedule_id, calendar, active_from, now=now, retention=self.retention)
            return _read(transaction, "schedules.get", tenant_id, schedule_id)

    def get(self, tenant_id: UUID, schedule_id: UUID) -> Schedule:
        """One schedule; NotFound."""
        with self.database.transaction() as transaction:
            return _read(transaction, "schedules.get", tenant_id, schedule_id)

    def list(
        self,
        tenant_id: UUID,
        *,
        after: tuple[datetime, UUID],
        most: int,
        labels: str = "{}",
        name_prefix: str | None = None,
    ) -> list[Schedule]:
        """At most `most` schedules created after the keyset, oldest first, that carry all labels of a JSON object."""
        with self.database.transaction() as transaction:
            rows = transaction.run(
                "schedules.list",
                tenant_id=tenant_id,
                after_at=after[0],
                after_id=after[1],
                most=most,
                labels=labels,
                name_prefix=name_prefix,
            )
        return [Schedule.from_row(row) for row in rows]

    def edit(
        self,
        tenant_id: UUID,
        schedule_id: UUID,
        edit: Callable[[Definition], Definition],
        *,
        changed_by: str,
        only: Versions = None,
    ) -> Schedule:
        """Replaces what `edit` returns otherwise. Runs that are due go on; later ones follow the new timing."""

        def decide(old: Schedule) -> _Wanted:
            return replace(_Wanted.of(old), definition=edit(old.definition))

        return self._change(tenant_id, schedule_id, decide, Change.EDITED, changed_by, only)

    def pause(
        self,
        tenant_id: UUID,
        schedule_id: UUID,
        *,
        changed_by: str,
        pause: Pause = _FOR_GOOD,
        only: Versions = None,
    ) -> Schedule:
        """No run is due while it is paused, and none becomes due; those already due are held until it goes on.

        With an end it goes on by itself: InvalidInput where that is past, or farther away than a year.
        """
        status = Status.ACTIVE if pause.until else Status.PAUSED

        def decide(old: Schedule) -> _Wanted:
            return _Wanted(definition=old.definition, status=status, pause=pause)

        return self._change(tenant_id, schedule_id, decide, Change.PAUSED, changed_by, only)

    def resume(self, tenant_id: UUID, schedule_id: UUID, *, changed_by: str, only: Versions = None) -> Schedule:
        """Fires again from now on; what lay inside the pause is not missed."""
        return self._change(tenant_id, schedule_id, _as(Status.ACTIVE), Change.RESUMED, changed_by, only)

    def delete(self, tenant_id: UUID, schedule_id: UUID, *, changed_by: str, only: Versions = None) -> None:
        """Ends it: runs already due are cancelled, with that reason; later ones are gone."""
        self._change(tenant_id, schedule_id, _as(Status.DELETED), Change.DELETED, changed_by, only)

    def disable(self, order: DisablingOrder) -> None:
        """Carries out an order: nothing becomes due any more, until the tenant resumes it.

        A change that the tenant made after the outcome overrules it. Conflict as for the other changes.
        """

        def decide(old: Schedule) -> _Wanted:
            return _Wanted.of(old) if order.decided_at < old.updated_at else _as(Status.DISABLED)(old)

        with contextlib.suppress(NotFound):
            self._change(order.tenant_id, order.schedule_id, decide, Change.DISABLED, f"outcome: {order.reason}")
        with self.database.transaction() as transaction:
            transaction.run("disabling.done", id=order.schedule_id, decided_at=order.decided_at)

    def _change(
        self,
        tenant_id: UUID,
        schedule_id: UUID,
        decide: Callable[[Schedule], _Wanted],
        change: Change,
        changed_by: str,
        only: Versions = None,
    ) -> Schedule:
        for _ in range(_TRIES):
            with contextlib.suppress(_Overtaken), self.database.transaction() as transaction:
                seen = _read(transaction, "schedules.get", tenant_id, schedule_id)
                if only is not None and seen.version not in only:
                    raise PreconditionFailed(f"it is in version {seen.version} by now")
                wanted = decide(seen)
                if wanted == _Wanted.of(seen):
                    return seen
                return self._carry_out(transaction, seen, wanted, change, changed_by)
        raise Conflict("it is being changed by others at this moment; try again")

    def _carry_out(
        self, transaction: Transaction, old: Schedule, wanted: _Wanted, change: Change, changed_by: str
    ) -> Schedule:
        timing = wanted.definition.timing
        new_calendar, old_calendar = lock_calendars(
            transaction,
            old.tenant_id,
            timing,
            self.clock(transaction),
            old=(old.definition.timing, old.calendar_id),
        )
        if _read(transaction, "schedules.lock", old.tenant_id, old.id).version != old.version:
            raise _Overtaken
        # Never before its last change, even where a failover put the database's clock back.
        now = max(self.clock(transaction), old.updated_at + TICK)
        moves, active_from = wanted.moves(old), old.active_from
        wanted = _current(wanted, old, now)
        if moves:
            settle(transaction, _standing(old), old_calendar, now=now, retention=self.retention)
            active_from = _active_from(old, wanted, new_calendar, now)
        columns = _columns(wanted.definition) | {"calendar_id": new_calendar.id, "active_from": active_from, "now": now}
        with _name_in_use(wanted.definition.name):
            transaction.run(
                "schedules.update",
                id=old.id,
                version=old.version,
                status=wanted.status.value,
                payload_changed=wanted.definition.payload != old.definition.payload,
                held_until=wanted.until,
                pause_reason=wanted.pause.reason if wanted.pause else None,
                **columns,
            )
        _add_version(transaction, old.id, change, changed_by, now, wanted.definition.payload)
        if change is Change.DISABLED:
            transaction.run("disabling.announce", id=old.id, now=now)
        if wanted.status is Status.DELETED:
            transaction.run("schedules.cancel_owed_runs", id=old.id, now=now)
            return old
        if moves and wanted.status is Status.ACTIVE:
            changed = _read(transaction, "schedules.get", old.tenant_id, old.id)
            record_hold(transaction, _standing(changed), new_calendar.spec, now=now)
            plan_ahead(transaction, old.id, new_calendar, active_from, now=now, retention=self.retention)
        return _read(transaction, "schedules.get", old.tenant_id, old.id)


def _as(status: Status) -> Callable[[Schedule], _Wanted]:
    return lambda old: _Wanted(definition=old.definition, status=status, pause=None)


def _current(wanted: _Wanted, old: Schedule, now: datetime) -> _Wanted:
    """The change as it is at `now`, when an old pause may be over. InvalidInput for a new one that ends at no time to come."""
    if wanted.until is None or now < wanted.until <= now + LONGEST_PAUSE:
        return wanted
    if wanted.pause == old.pause:
        return replace(wanted, pause=None)
    detail = f"must be later than now, by {LONGEST_PAUSE.days} days at most"
    raise InvalidInput(Problem(pointer="/until", detail=detail))


def _standing(schedule: Schedule) -> Standing:
    timing = schedule.definition.timing
    return Standing(
        id=schedule.id,
        fires=schedule.status is Status.ACTIVE,
        active_from=schedule.active_from,
        start_at=timing.start_at,
        end_at=timing.end_at,
        held_until=schedule.pause.until if schedule.pause else None,
        complete=schedule.runs_left is not None and schedule.runs_left <= 0,
    )


def _active_from(old: Schedule, wanted: _Wanted, calendar: Calendar, now: datetime) -> datetime:
    timing = wanted.definition.timing
    same = timing.same_calendar(old.definition.timing)
    first = timing.from_now(now) if same else timing.first_moment(calendar.spec, now)
    return max(first, wanted.until or first)


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
