"""The routes: each decodes its request, calls one use case and encodes what came of it."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from answers import no_content
from bodies import read_object
from documents import definition_of, edited, pause_of
from parts import Parts, Request
from replies import run_reply, schedule_reply
from response import Response
from scheduler.schedules import Definition
from sending import send_soon


def create_schedule(parts: Parts, request: Request) -> Response:
    definition = definition_of(read_object(request.event), parts.policy)
    request.check_limits(None, definition)
    made = parts.scheduling.create(request.tenant_id, uuid4(), definition, changed_by=request.key_id)
    send_soon(parts, request, made.id)
    return schedule_reply(parts, made, 201, Location=f"{request.path}/{made.id}")


def get_schedule(parts: Parts, request: Request) -> Response:
    return schedule_reply(parts, parts.scheduling.get(request.tenant_id, request.schedule_id))


def edit_schedule(parts: Parts, request: Request) -> Response:
    schedule_id, changes = request.schedule_id, read_object(request.event)

    def edit(old: Definition) -> Definition:
        new = edited(old, changes, parts.policy)
        request.check_limits(old, new)
        return new

    changed = parts.scheduling.edit(request.tenant_id, schedule_id, edit, changed_by=request.key_id, only=request.only)
    send_soon(parts, request, changed.id)
    return schedule_reply(parts, changed)


def delete_schedule(parts: Parts, request: Request) -> Response:
    parts.scheduling.delete(request.tenant_id, request.schedule_id, changed_by=request.key_id, only=request.only)
    return no_content()


def pause_schedule(parts: Parts, request: Request) -> Response:
    pause = pause_of(read_object(request.event) if request.event.get("body") else {})
    paused = parts.scheduling.pause(
        request.tenant_id,
        request.schedule_id,
        changed_by=request.key_id,
        only=request.only,
        pause=pause,
    )
    return schedule_reply(parts, paused)


def resume_schedule(parts: Parts, request: Request) -> Response:
    resumed = parts.scheduling.resume(
        request.tenant_id, request.schedule_id, changed_by=request.key_id, only=request.only
    )
    send_soon(parts, request, resumed.id)
    return schedule_reply(parts, resumed)


def get_run(parts: Parts, request: Request) -> Response:
    return run_reply(parts, request, request.run_id)


type Carry = Callable[[Parts, Request], Response]


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """A method and a path as in the template and the contract, and the scope that a key needs for it."""

    method: str
    path: str
    scope: Literal["read", "write", "admin"]
    carry_out: Carry
    # The answer shows a credential: it is stored encrypted, where it is stored.
    sealed: bool = False
    # It concerns one thing that is there, so that a caller can say in which state it is meant.
    conditional: bool = True


def _reads(path: str, carry_out: Carry) -> Route:
    return Route(method="GET", path=path, scope="read", carry_out=carry_out)


def _seldom(module: str, name: str) -> Carry:
    """A route of a module that is imported at the first request for one of its routes, and not at each cold start."""

    def carry_out(parts: Parts, request: Request) -> Response:
        response: Response = getattr(importlib.import_module(module), name)(parts, request)
        return response

    return carry_out


def _asks(path: str, carry_out: Carry) -> Route:
    """A question that needs a body."""
    return Route(method="POST", path=path, scope="read", carry_out=carry_out, conditional=False)


def _changes(method: str, path: str, carry_out: Carry, *, conditional: bool = True) -> Route:
    return Route(method=method, path=path, scope="write", carry_out=carry_out, conditional=conditional)


def _manages(method: str, path: str, carry_out: Carry, *, sealed: bool = False, conditional: bool = True) -> Route:
    return Route(method=method, path=path, scope="admin", carry_out=carry_out, sealed=sealed, conditional=conditional)


ROUTES = (
    _changes("POST", "/v1/schedules", create_schedule, conditional=False),
    _reads("/v1/schedules", _seldom("listing", "list_schedules")),
    _changes("POST", "/v1/schedules/pause", _seldom("labelled", "pause_labelled"), conditional=False),
    _changes("POST", "/v1/schedules/resume", _seldom("labelled", "resume_labelled"), conditional=False),
    _reads("/v1/schedules/by-name/{name}", _seldom("named", "get_schedule_by_name")),
    _changes("PUT", "/v1/schedules/by-name/{name}", _seldom("named", "put_schedule")),
    _reads("/v1/schedules/{schedule_id}", get_schedule),
    _changes("PATCH", "/v1/schedules/{schedule_id}", edit_schedule),
    _changes("DELETE", "/v1/schedules/{schedule_id}", delete_schedule),
    _changes("POST", "/v1/schedules/{schedule_id}/pause", pause_schedule),
    _changes("POST", "/v1/schedules/{schedule_id}/resume", resume_schedule),
    _changes("POST", "/v1/schedules/{schedule_id}/trigger", _seldom("by_hand", "trigger")),
    _changes("POST", "/v1/schedules/{schedule_id}/backfill", _seldom("by_hand", "backfill")),
    _reads("/v1/schedules/{schedule_id}/runs", _seldom("listing", "list_runs_of_schedule")),
    _reads("/v1/schedules/{schedule_id}/skipped", _seldom("times", "list_skipped_ranges")),
    _reads("/v1/schedules/{schedule_id}/preview", _seldom("times", "preview_schedule")),
    _asks("/v1/schedules/preview", _seldom("times", "preview_new_schedule")),
    _reads("/v1/exclusion-lists", _seldom("times", "list_exclusion_lists")),
    _reads("/v1/exclusion-lists/{name}", _seldom("times", "get_exclusion_list")),
    _changes("PUT", "/v1/exclusion-lists/{name}", _seldom("times", "put_exclusion_list")),
    _changes("DELETE", "/v1/exclusion-lists/{name}", _seldom("times", "delete_exclusion_list")),
    _reads("/v1/runs", _seldom("listing", "list_runs")),
    _reads("/v1/runs/{run_id}", get_run),
    _changes("POST", "/v1/runs/{run_id}/redeliver", _seldom("by_hand", "redeliver_run")),
    _changes("POST", "/v1/runs/{run_id}/cancel", _seldom("by_hand", "cancel_run")),
    _changes("POST", "/v1/redeliveries", _seldom("by_hand", "redeliver_runs"), conditional=False),
    _reads("/v1/usage", _seldom("access", "get_usage")),
    _manages("GET", "/v1/keys", _seldom("access", "list_keys")),
    _manages("POST", "/v1/keys", _seldom("access", "issue_key"), sealed=True, conditional=False),
    _manages("GET", "/v1/keys/{key_id}", _seldom("access", "get_key")),
    _manages("DELETE", "/v1/keys/{key_id}", _seldom("access", "revoke_key")),
    _manages("GET", "/v1/signing-secrets", _seldom("access", "list_secrets")),
    _manages("POST", "/v1/signing-secrets", _seldom("access", "rotate_secret"), sealed=True),
    _manages("GET", "/v1/signing-secrets/{secret_id}", _seldom("access", "get_secret")),
    _manages("DELETE", "/v1/signing-secrets/{secret_id}", _seldom("access", "revoke_secret")),
)
