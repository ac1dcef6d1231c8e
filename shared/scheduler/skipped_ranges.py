"""Skipped ranges as they are read: what a schedule was expected to do and did not, and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from scheduler import schedule_rows
from scheduler.skipped import SkipReason
from scheduler.store.connection import Database, Row


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedRange:
    """`occurrences` of them, from the first to the last, both included."""

    id: int
    first_scheduled_for: datetime
    last_scheduled_for: datetime
    occurrences: int
    reason: SkipReason
    recorded_at: datetime

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The range of a row, whose columns are its fields."""
        return cls(**(row | {"reason": SkipReason(row["reason"])}))


def list_skipped(
    database: Database, tenant_id: UUID, schedule_id: UUID, *, before: tuple[datetime, int], most: int
) -> list[SkippedRange]:
    """At most `most` ranges of a schedule before the keyset (last_scheduled_for, id), newest first. NotFound."""
    with database.transaction() as transaction:
        schedule_rows.read(transaction, tenant_id, schedule_id)
        rows = transaction.run(
            "skipped.list",
            tenant_id=tenant_id,
            schedule_id=schedule_id,
            before_at=before[0],
            before_id=before[1],
            most=most,
        )
    return [SkippedRange.from_row(row) for row in rows]
