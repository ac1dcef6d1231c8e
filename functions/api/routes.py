"""The routes: each decodes its request, calls one use case and encodes what came of it."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

import conditions
import queries
from answers import answer, no_content, run_document, run_with_attempts, schedule_document
from bodies import read_object
from documents import definition_of, edited, pause_of
from parts import Parts, Request
from response import Response
from scheduler.schedules import Definition, Schedule
from sending import send_soon


def create_schedule(parts: Parts, request: Request) -> Response:
    definition = definition_of(read_object(request.event), parts.policy)
    request.limits.check(definition.timing, definition.payload)
    made = parts.scheduling.create(request.tenant_id, uuid4(), definition, changed_by=request.key_id)
    send_soon(parts, request, made.id)
    return _schedule(parts, made, 201, Location=f"{request.path}/{made.id}")


def list_schedules(parts: Parts, request: Request) -> Response:
    limit, after = queries.page(request.query, queries.OLDEST)
    found = parts.scheduling.list(request.tenant_id, after=after, most=limit + 1)
    shown = found[:limit]
    outlooks = parts.history.outlooks(shown)
    last = queries.cursor(shown[-1].created_at, shown[-1].id) if len(found) > limit else None
    documents = [schedule_document(each, outlooks[each.id]) for each in shown]
    return answer(200, {"schedules": documents, "next_cursor": last})


def get_schedule(parts: Parts, request: Request) -> Response:
    return _schedule(parts, parts.scheduling.get(request.tenant_id, request.schedule_id))


def edit_schedule(parts: Parts, request: Request) -> Response:
    schedule_id, changes = request.schedule_id, read_object(request.event)

    def edit(old: Definition) -> Definition:
        new = edited(old, changes, parts.policy)
        # What a tenant had before a limit was lowered, it may keep.
        if (new.timing, new.payload) != (old.timing, old.payload):
            request.limits.check(new.timing, new.payload)
        return new

    changed = parts.scheduling.edit(
        request.tenant_id, schedule_id, edit, changed_by=request.key_id, only=conditions.if_match(request.event)
    )
    send_soon(parts, request, changed.id)
    return _schedule(parts, changed)


def delete_schedule(parts: Parts, request: Request) -> Response:
    parts.scheduling.delete(
        request.tenant_id, request.schedule_id, changed_by=request.key_id, only=conditions.if_match(request.event)
    )
    return no_content()


def pause_schedule(parts: Parts, request: Request) -> Response:
    pause = pause_of(read_object(request.event) if request.event.get("body") else {})
    paused = parts.scheduling.pause(
        request.tenant_id,
        request.schedule_id,
        changed_by=request.key_id,
        only=conditions.if_match(request.event),
        pause=pause,
    )
    return _schedule(parts, paused)


def resume_schedule(parts: Parts, request: Request) -> Response:
    resumed = parts.scheduling.resume(
        request.tenant_id, request.schedule_id, changed_by=request.key_id, only=conditions.if_match(request.event)
    )
    send_soon(parts, request, resumed.id)
    return _schedule(parts, resumed)


def list_runs(parts: Parts, request: Request) -> Response:
    schedule_id = request.schedule_id
    limit, (before, _) = queries.page(request.query, queries.NEWEST)
    found = parts.history.runs(request.tenant_id, schedule_id, before=before, most=limit + 1)
    shown = found[:limit]
    last = queries.cursor(shown[-1].scheduled_for, shown[-1].id) if len(found) > limit else None
    return answer(200, {"runs": [run_document(each) for each in shown], "next_cursor": last})


def get_run(parts: Parts, request: Request) -> Response:
    return answer(200, run_with_attempts(*parts.history.run(request.tenant_id, request.run_id)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """A method and a path as in the template and the contract, and the scope that a key needs for it."""

    method: str
    path: str
    scope: Literal["read", "write", "admin"]
    carry_out: Callable[[Parts, Request], Response]
    # The answer shows a credential: it is stored encrypted, where it is stored.
    sealed: bool = False
    # It is too much for one transaction, and does no harm when it is done twice.
    in_parts: bool = False


def _reads(path: str, carry_out: Callable[[Parts, Request], Response]) -> Route:
    return Route(method="GET", path=path, scope="read", carry_out=carry_out)


def _seldom(module: str, name: str) -> Callable[[Parts, Request], Response]:
    """A route of a module that is imported at the first request for one of its routes."""

    def carry_out(parts: Parts, request: Request) -> Response:
        response: Response = getattr(importlib.import_module(module), name)(parts, request)
        return response

    return carry_out


def _asks(path: str, carry_out: Callable[[Parts, Request], Response]) -> Route:
    """A question that needs a body."""
    return Route(method="POST", path=path, scope="read", carry_out=carry_out)


def _changes(method: str, path: str, carry_out: Callable[[Parts, Request], Response]) -> Route:
    return Route(method=method, path=path, scope="write", carry_out=carry_out)


ROUTES = (
    _changes("POST", "/v1/schedules", create_schedule),
    _reads("/v1/schedules", list_schedules),
    _reads("/v1/schedules/{schedule_id}", get_schedule),
    _changes("PATCH", "/v1/schedules/{schedule_id}", edit_schedule),
    _changes("DELETE", "/v1/schedules/{schedule_id}", delete_schedule),
    _changes("POST", "/v1/schedules/{schedule_id}/pause", pause_schedule),
    _changes("POST", "/v1/schedules/{schedule_id}/resume", resume_schedule),
    _reads("/v1/schedules/{schedule_id}/runs", list_runs),
    _reads("/v1/schedules/{schedule_id}/skipped", _seldom("times", "list_skipped_ranges")),
    _reads("/v1/schedules/{schedule_id}/preview", _seldom("times", "preview_schedule")),
    _asks("/v1/schedules/preview", _seldom("times", "preview_new_schedule")),
    _reads("/v1/exclusion-lists", _seldom("times", "list_exclusion_lists")),
    _reads("/v1/exclusion-lists/{name}", _seldom("times", "get_exclusion_list")),
    _changes("PUT", "/v1/exclusion-lists/{name}", _seldom("times", "put_exclusion_list")),
    _changes("DELETE", "/v1/exclusion-lists/{name}", _seldom("times", "delete_exclusion_list")),
    _reads("/v1/runs/{run_id}", get_run),
    _changes("POST", "/v1/runs/{run_id}/redeliver", _seldom("by_hand", "redeliver_run")),
    _changes("POST", "/v1/runs/{run_id}/cancel", _seldom("by_hand", "cancel_run")),
    _changes("POST", "/v1/redeliveries", _seldom("by_hand", "redeliver_runs")),
)


def _schedule(parts: Parts, schedule: Schedule, status: int = 200, **headers: str) -> Response:
    document = schedule_document(schedule, parts.history.outlooks([schedule])[schedule.id])
    return answer(status, document, ETag=conditions.entity_tag(schedule.version), **headers)
