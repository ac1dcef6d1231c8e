"""The routes that list schedules and runs, with their filters."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import fields
import queries
from answers import answer, run_document, schedule_document
from fields import Judge
from parts import Parts, Request
from response import Response
from scheduler.history import Trigger
from scheduler.listing import RunFilter, find_runs, find_schedules
from scheduler.runs import State
from scheduler.schedule_filter import LISTED, ScheduleFilter

_SCHEDULES: dict[str, Judge] = queries.page("schedules") | {
    "status": queries.choices(LISTED),
    "label": queries.labels,
    "name_prefix": fields.text(0, 200),
    "next_run_from": fields.instant,
    "next_run_until": fields.instant,
}
_RUNS_OF_SCHEDULE: dict[str, Judge] = queries.page("runs") | {
    "status": queries.choices(State),
    "trigger": queries.choices(Trigger),
    "scheduled_from": fields.instant,
    "scheduled_until": fields.instant,
}
_RUNS = _RUNS_OF_SCHEDULE | {"schedule_id": fields.identifier}


def list_schedules(parts: Parts, request: Request) -> Response:
    asked = queries.read(request.query, _SCHEDULES)
    wanted = ScheduleFilter(
        statuses=asked.get("status", LISTED),
        labels=asked.get("label", {}),
        name_prefix=asked.get("name_prefix"),
        next_run_from=asked.get("next_run_from"),
        next_run_until=asked.get("next_run_until"),
    )
    found = find_schedules(
        parts.scheduling,
        parts.history,
        request.tenant_id,
        wanted,
        after=asked.get("cursor", queries.OLDEST),
        most=asked.get("limit", queries.DEFAULT_LIMIT),
        more_time=request.more_time,
    )
    documents = [schedule_document(schedule, outlook) for schedule, outlook in found.schedules]
    last = found.last and queries.cursor("schedules", *found.last)
    return answer(200, {"schedules": documents, "next_cursor": last})


def list_runs(parts: Parts, request: Request) -> Response:
    asked = queries.read(request.query, _RUNS)
    return _runs(parts, request, asked.get("schedule_id"), asked)


def list_runs_of_schedule(parts: Parts, request: Request) -> Response:
    # Also says that there is no such schedule.
    schedule = parts.scheduling.get(request.tenant_id, request.schedule_id)
    return _runs(parts, request, schedule.id, queries.read(request.query, _RUNS_OF_SCHEDULE))


def _runs(parts: Parts, request: Request, schedule_id: UUID | None, asked: Mapping[str, Any]) -> Response:
    limit = asked.get("limit", queries.DEFAULT_LIMIT)
    wanted = RunFilter(
        schedule_id=schedule_id,
        states=asked.get("status", tuple(State)),
        triggers=asked.get("trigger", tuple(Trigger)),
        since=asked.get("scheduled_from", queries.OLDEST[0]),
        until=asked.get("scheduled_until", queries.NEWEST[0]),
    )
    before = asked.get("cursor", queries.NEWEST)
    found = find_runs(parts.database, request.tenant_id, wanted, before=before, most=limit + 1)
    shown = found[:limit]
    last = queries.cursor("runs", shown[-1].scheduled_for, shown[-1].id) if len(found) > limit else None
    return answer(200, {"runs": [run_document(each) for each in shown], "next_cursor": last})
