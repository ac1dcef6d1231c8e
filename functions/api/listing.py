"""The routes that list schedules and runs, with their filters."""

from uuid import UUID

import queries
from answers import answer, run_document, schedule_document
from parts import Parts, Request
from response import Response
from scheduler.history import Trigger
from scheduler.listing import RunFilter, find_runs, find_schedules
from scheduler.runs import State
from scheduler.schedule_filter import LISTED, ScheduleFilter

_SCHEDULE_FILTERS = ("status", "label", "name_prefix", "next_run_from", "next_run_until")
_RUN_FILTERS = ("status", "trigger", "scheduled_from", "scheduled_until")


def list_schedules(parts: Parts, request: Request) -> Response:
    query = request.query
    limit, after = queries.page(query, queries.OLDEST, also=_SCHEDULE_FILTERS)
    wanted = ScheduleFilter(
        statuses=queries.choices(query, "status", LISTED),
        labels=queries.labels(query),
        name_prefix=query.get("name_prefix"),
        next_run_from=queries.instant(query, "next_run_from"),
        next_run_until=queries.instant(query, "next_run_until"),
    )
    found = find_schedules(
        parts.scheduling,
        parts.history,
        request.tenant_id,
        wanted,
        after=after,
        most=limit,
        more_time=request.more_time,
    )
    documents = [schedule_document(schedule, outlook) for schedule, outlook in found.schedules]
    return answer(200, {"schedules": documents, "next_cursor": found.last and queries.cursor(*found.last)})


def list_runs(parts: Parts, request: Request) -> Response:
    return _runs(parts, request, queries.identifier(request.query, "schedule_id"), ("schedule_id", *_RUN_FILTERS))


def list_runs_of_schedule(parts: Parts, request: Request) -> Response:
    # Also says that there is no such schedule.
    schedule = parts.scheduling.get(request.tenant_id, request.schedule_id)
    return _runs(parts, request, schedule.id, _RUN_FILTERS)


def _runs(parts: Parts, request: Request, schedule_id: UUID | None, filters: tuple[str, ...]) -> Response:
    query = request.query
    limit, before = queries.page(query, queries.NEWEST, also=filters)
    since, until = queries.instant(query, "scheduled_from"), queries.instant(query, "scheduled_until")
    wanted = RunFilter(
        schedule_id=schedule_id,
        states=queries.choices(query, "status", tuple(State)),
        triggers=queries.choices(query, "trigger", tuple(Trigger)),
        since=since or queries.OLDEST[0],
        until=until or queries.NEWEST[0],
    )
    found = find_runs(parts.database, request.tenant_id, wanted, before=before, most=limit + 1)
    shown = found[:limit]
    last = queries.cursor(shown[-1].scheduled_for, shown[-1].id) if len(found) > limit else None
    return answer(200, {"runs": [run_document(each) for each in shown], "next_cursor": last})
