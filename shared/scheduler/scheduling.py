"""Scheduling: tenants create, edit, pause, resume and delete schedules, without losing or inventing a run.

Every change happens at one instant, in one transaction that holds the schedule's old and new calendar still: changes.py.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from scheduler import schedule_rows
from scheduler.calendars import lock_calendars
from scheduler.changes import Overtaken, Wanted, carry_out, plan_ahead
from scheduler.errors import Conflict, NotFound
from scheduler.limits import make_room
from scheduler.preconditions import ANYHOW, Precondition
from scheduler.schedule_filter import EVERY_SCHEDULE, ScheduleFilter
from scheduler.schedules import Change, Definition, DisablingOrder, Pause, Schedule, Status
from scheduler.store.clock import Clock
from scheduler.store.connection import Database

# Changes of one schedule at once that may overtake each other before one gives up.
_TRIES = 10
_FOR_GOOD = Pause()


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduling:
    """The use cases, over one database and clock. `changed_by` is the key or the operator that the version names.

    A change is made `only` in the states that are meant: PreconditionFailed in another one.
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
            with schedule_rows.name_in_use(definition.name):
                transaction.run(
                    "schedules.insert",
                    id=schedule_id,
                    tenant_id=tenant_id,
                    calendar_id=calendar.id,
                    active_from=active_from,
                    now=now,
                    **schedule_rows.columns(definition),
                )
            schedule_rows.add_version(transaction, schedule_id, Change.CREATED, changed_by, now, definition.payload)
            plan_ahead(transaction, schedule_id, calendar, active_from, now=now, retention=self.retention)
            return schedule_rows.read(transaction, tenant_id, schedule_id)

    def get(self, tenant_id: UUID, schedule_id: UUID) -> Schedule:
        """One schedule; NotFound."""
        with self.database.transaction() as transaction:
            return schedule_rows.read(transaction, tenant_id, schedule_id)

    def list(
        self,
        tenant_id: UUID,
        *,
        after: tuple[datetime, UUID],
        most: int,
        wanted: ScheduleFilter = EVERY_SCHEDULE,
    ) -> list[Schedule]:
        """At most `most` schedules created after the keyset, oldest first.

        Where a next run in some range is wanted, some may have another: when each fires is computed, not stored.
        """
        with self.database.transaction() as transaction:
            rows = transaction.run(
                "schedules.list",
                tenant_id=tenant_id,
                after_at=after[0],
                after_id=after[1],
                most=most,
                now=self.clock(transaction),
                **wanted.columns(),
            )
        return [Schedule.from_row(row) for row in rows]

    def edit(
        self,
        tenant_id: UUID,
        schedule_id: UUID,
        edit: Callable[[Definition], Definition],
        *,
        changed_by: str,
        only: Precondition = ANYHOW,
    ) -> Schedule:
        """Replaces what `edit` returns otherwise. Runs that are due go on; later ones follow the new timing."""

        def decide(old: Schedule) -> Wanted:
            return replace(Wanted.of(old), definition=edit(old.definition))

        return self._change(tenant_id, schedule_id, decide, Change.EDITED, changed_by, only)

    def pause(
        self,
        tenant_id: UUID,
        schedule_id: UUID,
        *,
        changed_by: str,
        pause: Pause = _FOR_GOOD,
        only: Precondition = ANYHOW,
    ) -> Schedule:
        """No run is due while it is paused, and none becomes due; those already due are held until it goes on.

        With an end it goes on by itself: InvalidInput where that is past, or farther away than a year.
        """
        status = Status.ACTIVE if pause.until else Status.PAUSED

        def decide(old: Schedule) -> Wanted:
            return Wanted(definition=old.definition, status=status, pause=pause)

        return self._change(tenant_id, schedule_id, decide, Change.PAUSED, changed_by, only)

    def resume(self, tenant_id: UUID, schedule_id: UUID, *, changed_by: str, only: Precondition = ANYHOW) -> Schedule:
        """Fires again from now on; what lay inside the pause is not missed."""
        return self._change(tenant_id, schedule_id, _as(Status.ACTIVE), Change.RESUMED, changed_by, only)

    def delete(self, tenant_id: UUID, schedule_id: UUID, *, changed_by: str, only: Precondition = ANYHOW) -> None:
        """Ends it: runs already due are cancelled, with that reason; later ones are gone."""
        self._change(tenant_id, schedule_id, _as(Status.DELETED), Change.DELETED, changed_by, only)

    def disable(self, order: DisablingOrder) -> None:
        """Carries out an order: nothing becomes due any more, until the tenant resumes it.

        A change that the tenant made after the outcome overrules it. Conflict as for the other changes.
        """

        def decide(old: Schedule) -> Wanted:
            return Wanted.of(old) if order.decided_at < old.updated_at else _as(Status.DISABLED)(old)

        with contextlib.suppress(NotFound):
            self._change(order.tenant_id, order.schedule_id, decide, Change.DISABLED, f"outcome: {order.reason}")
        with self.database.transaction() as transaction:
            transaction.run("disabling.done", id=order.schedule_id, decided_at=order.decided_at)

    def _change(
        self,
        tenant_id: UUID,
        schedule_id: UUID,
        decide: Callable[[Schedule], Wanted],
        change: Change,
        changed_by: str,
        only: Precondition = ANYHOW,
    ) -> Schedule:
        for _ in range(_TRIES):
            with contextlib.suppress(Overtaken), self.database.transaction() as transaction:
                seen = schedule_rows.read(transaction, tenant_id, schedule_id)
                only.check(seen.tag)
                wanted = decide(seen)
                if wanted == Wanted.of(seen):
                    return seen
                return carry_out(
                    transaction,
                    self.clock,
                    seen,
                    wanted,
                    change,
                    changed_by=changed_by,
                    retention=self.retention,
                )
        raise Conflict("it is being changed by others at this moment; try again")


def _as(status: Status) -> Callable[[Schedule], Wanted]:
    return lambda old: Wanted(definition=old.definition, status=status, pause=None)
