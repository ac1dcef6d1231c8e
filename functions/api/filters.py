"""What a tenant writes to have many runs delivered again, judged field by field, and the Filter that it means."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import fields
from fields import Judge, refused
from scheduler.redelivery import Ended, Filter
from scheduler.runs import Reason

_REASONS = (Reason.EXHAUSTED, Reason.REJECTED, Reason.POISONED, Reason.EXPIRED)
_FIRST, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9900, 1, 1, tzinfo=UTC)
_FILTER: dict[str, Judge] = {
    "state": fields.choice(Ended),
    "reason": fields.choice(_REASONS),
    "schedule_id": fields.identifier,
    "scheduled_from": fields.instant,
    "scheduled_until": fields.instant,
}


def redeliveries(document: Mapping[str, Any]) -> tuple[Filter, bool]:
    """The filter, and whether it is a dry run; InvalidInput with every bad field at once."""
    read = fields.read(document, {"filter": _filter, "dry_run": fields.boolean}, required=["filter"])
    return read["filter"], read.get("dry_run", False)


def _filter(value: object, pointer: str) -> Filter:
    if value == {}:
        raise refused(pointer, f"must give one or more of {', '.join(_FILTER)}")
    read = fields.read(value, _FILTER, at=pointer)
    state, since, until = read.get("state", Ended.FAILED), read.get("scheduled_from"), read.get("scheduled_until")
    if state is Ended.SUCCEEDED and "schedule_id" not in read:
        raise refused(f"{pointer}/schedule_id", "is required where the state is succeeded")
    if state is Ended.SUCCEEDED and "reason" in read:
        raise refused(f"{pointer}/reason", "is for failed runs; those that succeeded have none")
    if since and until and since >= until:
        raise refused(f"{pointer}/scheduled_until", "must be later than scheduled_from")
    return Filter(
        state=state,
        since=since or _FIRST,
        until=until or _END,
        schedule_id=read.get("schedule_id"),
        reason=read.get("reason"),
    )
