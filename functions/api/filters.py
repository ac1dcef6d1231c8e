"""What a tenant writes to have many runs delivered again, judged field by field, and the Filter that it means."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import instants
from scheduler.errors import InvalidInput, Problem
from scheduler.redelivery import Ended, Filter
from scheduler.runs import Reason
from scheduler.webhook.pointer import reference_token

_FIELDS = ("filter", "dry_run")
_FILTER = ("state", "reason", "schedule_id", "scheduled_from", "scheduled_until")
_REASONS = (Reason.EXHAUSTED, Reason.REJECTED, Reason.POISONED, Reason.EXPIRED)
_FIRST, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9900, 1, 1, tzinfo=UTC)
# Of an unknown field's name as it is shown.
_LONGEST_NAME = 200


def redeliveries(document: Mapping[str, Any]) -> tuple[Filter, bool]:
    """The filter, and whether it is a dry run; InvalidInput with every bad field at once."""
    reader = _Reader()
    reader.only(document, _FIELDS, "")
    dry_run = document.get("dry_run")
    if not isinstance(dry_run, bool | None):
        reader.refuse("/dry_run", "must be true or false")
    given = document.get("filter")
    if not isinstance(given, dict) or not given:
        reader.refuse("/filter", f"must be an object that gives one or more of {', '.join(_FILTER)}")
        given = {}
    wanted = _filter(reader, given)
    if reader.problems or wanted is None:
        raise InvalidInput(*reader.problems)
    return wanted, bool(dry_run)


def _filter(reader: "_Reader", given: Mapping[str, Any]) -> Filter | None:
    reader.only(given, _FILTER, "/filter")
    state = reader.choice(given, "state", tuple(Ended))
    reason = reader.choice(given, "reason", _REASONS)
    schedule_id = reader.id(given, "schedule_id")
    since, until = reader.instant(given, "scheduled_from"), reader.instant(given, "scheduled_until")
    succeeded = state == Ended.SUCCEEDED
    if succeeded and schedule_id is None and given.get("schedule_id") is None:
        reader.refuse("/filter/schedule_id", "is required where the state is succeeded")
    if succeeded and reason is not None:
        reader.refuse("/filter/reason", "is for failed runs; those that succeeded have none")
    if since and until and since >= until:
        reader.refuse("/filter/scheduled_until", "must be later than scheduled_from")
    if reader.problems:
        return None
    return Filter(
        state=Ended(state or Ended.FAILED),
        since=since or _FIRST,
        until=until or _END,
        schedule_id=schedule_id,
        reason=Reason(reason) if reason else None,
    )


class _Reader:
    """Typed fields of the filter; what can't be taken is gathered in `problems`."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def refuse(self, pointer: str, detail: str) -> None:
        self.problems.append(Problem(pointer=pointer, detail=detail))

    def only(self, document: Mapping[str, Any], names: tuple[str, ...], pointer: str) -> None:
        for name in document:
            if name not in names:
                shown = reference_token(name[:_LONGEST_NAME])
                self.refuse(f"{pointer}/{shown}", f"is not a field here; the fields are {', '.join(names)}")

    def choice(self, given: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str | None:
        value = given.get(name)
        if value is None or (isinstance(value, str) and value in choices):
            return value
        self.refuse(f"/filter/{name}", f"must be one of {', '.join(choices)}")
        return None

    def id(self, given: Mapping[str, Any], name: str) -> UUID | None:
        value = given.get(name)
        try:
            found = UUID(value) if isinstance(value, str) else None
        except ValueError:
            found = None
        if value is not None and (found is None or str(found) != value.lower()):
            self.refuse(f"/filter/{name}", "must be a UUID in its usual form")
            return None
        return found

    def instant(self, given: Mapping[str, Any], name: str) -> datetime | None:
        if given.get(name) is None:
            return None
        try:
            return instants.read(given[name], f"/filter/{name}")
        except InvalidInput as error:
            self.problems.extend(error.problems)
            return None
