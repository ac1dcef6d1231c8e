"""What a schedule is: its definition, its status, and what its versions record."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from scheduler.preconditions import tag_of
from scheduler.store.connection import Row
from scheduler.timing import Timing
from scheduler.webhook.retry import DEFAULT, RetryPolicy
from scheduler.webhook.retry_document import parse_retry


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
    description: str | None = None
    # Sorted by their names.
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """Why a tenant paused a schedule, and until when; without an end until it is resumed."""

    until: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """A stored schedule. A `pause` with an end leaves it active from then on; it may be over by now."""

    id: UUID
    tenant_id: UUID
    definition: Definition
    status: Status
    version: int
    calendar_id: int
    active_from: datetime
    pause: Pause | None
    runs_left: int | None
    created_at: datetime
    updated_at: datetime

    @property
    def tag(self) -> str:
        """Names its state, as far as that is for callers to change."""
        return tag_of_version(self.id, self.version)

    def status_at(self, now: datetime) -> Status:
        """What it may do at `now`: a pause with an end ends by itself."""
        held = self.pause is not None and self.pause.until is not None and self.pause.until > now
        return Status.PAUSED if held else self.status

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
                description=row["description"],
                labels=tuple(sorted(row["labels"].items())),
            ),
            status=Status(row["status"]),
            version=row["version"],
            calendar_id=row["calendar_id"],
            active_from=row["active_from"],
            pause=_pause(row),
            runs_left=row["runs_left"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )


def tag_of_version(schedule_id: UUID, version: int) -> str:
    """`Schedule.tag`. With the id, since a name may come to stand for another schedule in the same version."""
    return tag_of(schedule_id, version)


def _pause(row: Row) -> Pause | None:
    paused = row["status"] == Status.PAUSED or row["held_until"] is not None
    return Pause(until=row["held_until"], reason=row["pause_reason"]) if paused else None
