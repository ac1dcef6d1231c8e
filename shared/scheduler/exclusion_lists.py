"""A tenant's named lists of excluded dates: editing one retimes the schedules that use it, all at once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Self
from uuid import UUID

from scheduler.calendars import Calendar
from scheduler.errors import Conflict, NotFound
from scheduler.materialising import materialise, span
from scheduler.preconditions import ANYHOW, Precondition, tag_of
from scheduler.retiming import Revision, revise
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class ExclusionList:
    """Dates under a name, sorted."""

    id: UUID
    name: str
    dates: tuple[date, ...]
    created_at: datetime
    updated_at: datetime

    @property
    def tag(self) -> str:
        """Names its state."""
        return tag_of(self.id, self.dates, self.updated_at)

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The list of a row."""
        return cls(
            id=row["id"],
            name=row["name"],
            dates=tuple(row["dates"]),
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ExclusionLists:
    """The use cases, over one database and clock."""

    database: Database
    clock: Clock
    retention: timedelta

    def put(
        self, tenant_id: UUID, new_id: UUID, name: str, dates: Collection[date], *, only: Precondition = ANYHOW
    ) -> tuple[ExclusionList, bool]:
        """Makes the list, under the given new id, or gives it other dates; also says whether it was made.

        Its schedules fire by the new dates from now on. Locks the list, then its calendars in id order, as every change
        does. What a late tick owes up to now is planned by the former dates. PreconditionFailed.
        """
        listed = sorted(set(dates))
        with self.database.transaction() as transaction:
            words = {"tenant_id": tenant_id, "name": name}
            rows = transaction.run("exclusions.lock", **words)
            if not rows:
                only.check(None)
                now = self.clock(transaction)
                if made := transaction.run("exclusions.make", id=new_id, dates=listed, now=now, **words):
                    return ExclusionList.from_row(made[0]), True
                rows = transaction.run("exclusions.lock", **words)
            if not rows:
                raise Conflict("it is being made and deleted by others at this moment; try again")
            old = ExclusionList.from_row(rows[0])
            only.check(old.tag)
            return (old if list(old.dates) == listed else self._give(transaction, old.id, listed)), False

    def get(self, tenant_id: UUID, name: str) -> ExclusionList:
        """One list; NotFound."""
        with self.database.transaction() as transaction:
            rows = transaction.run("exclusions.get", tenant_id=tenant_id, name=name)
        if not rows:
            raise _no_list(name)
        return ExclusionList.from_row(rows[0])

    def list(self, tenant_id: UUID, *, after: tuple[datetime, UUID], most: int) -> list[ExclusionList]:
        """At most `most` lists created after the keyset, oldest first."""
        with self.database.transaction() as transaction:
            rows = transaction.run(
                "exclusions.list", tenant_id=tenant_id, after_at=after[0], after_id=after[1], most=most
            )
        return [ExclusionList.from_row(row) for row in rows]

    def delete(self, tenant_id: UUID, name: str, *, only: Precondition = ANYHOW) -> None:
        """Ends a list that no schedule uses. NotFound; PreconditionFailed; Conflict while one does."""
        with self.database.transaction() as transaction:
            rows = transaction.run("exclusions.lock", tenant_id=tenant_id, name=name)
            if not rows:
                raise _no_list(name)
            only.check(ExclusionList.from_row(rows[0]).tag)
            if transaction.run("exclusions.users", list_id=rows[0]["id"]):
                raise Conflict(f"a schedule uses the exclusion list {name!a}")
            transaction.run("exclusions.delete", id=rows[0]["id"])

    def _give(self, transaction: Transaction, list_id: UUID, dates: Sequence[date]) -> ExclusionList:
        calendars = transaction.run("exclusions.lock_calendars", list_id=list_id)
        now = self.clock(transaction)
        [changed] = transaction.run("exclusions.change", id=list_id, dates=dates, now=now)
        for calendar in calendars:
            self._retime(transaction, calendar, now)
        return ExclusionList.from_row(changed)

    def _retime(self, transaction: Transaction, row: Row, now: datetime) -> None:
        calendar = Calendar.from_row(row)
        if calendar.planned_through < now:
            owed = span(calendar.spec, calendar.id, calendar.planned_through, now)
            materialise(transaction, [owed], now=now, retention=self.retention)
        [dates] = transaction.run("exclusions.dates_of", calendar_id=calendar.id)
        revision = Revision(
            calendar=calendar,
            spec=replace(calendar.spec, excluded=tuple(dates["dates"])),
            kept_through=now,
            done_through=now,
            cursor=max(now, calendar.planned_through),
        )
        revise(transaction, revision, now=now, retention=self.retention)


def _no_list(name: str) -> NotFound:
    return NotFound(f"no exclusion list {name!a}")
