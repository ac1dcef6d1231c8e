"""The routes: each decodes its request, calls one use case and encodes what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID, uuid4

import conditions
import queries
from answers import answer, attempt_document, no_content, run_document, schedule_document
from aws_lambda_powertools import Logger
from bodies import read_object
from documents import definition_of, edited
from filters import redeliveries
from response import Response
from scheduler.aws import keys, queue
from scheduler.aws.logins import login_of
from scheduler.dispatch import dispatch
from scheduler.errors import DatabaseUnavailable
from scheduler.history import History, LoggedAttempt, Run
from scheduler.idempotency import Idempotency
from scheduler.limits import Limits
from scheduler.redelivery import Redelivery
from scheduler.schedules import Definition, Schedule, Scheduling
from scheduler.settings import Settings
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, StatementRefused
from scheduler.webhook.addresses import TargetPolicy


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What the routes work with."""

    database: Database
    clock: Clock
    runs: queue.Queue
    scheduling: Scheduling
    history: History
    redelivery: Redelivery
    idempotency: Idempotency
    policy: TargetPolicy
    logger: Logger


def connect(settings: Settings, clock: Clock, logger: Logger) -> Parts:
    """The parts of a deployment; nothing is dialled before the first request."""
    database = Database(login_of(settings))
    return Parts(
        database=database,
        clock=clock,
        runs=queue.connect(settings.queue_url),
        scheduling=Scheduling(database=database, clock=clock, retention=timedelta(days=settings.retention_days)),
        history=History(database=database, clock=clock),
        redelivery=Redelivery(database=database, clock=clock),
        idempotency=Idempotency(database=database, clock=clock, seal=keys.connect(settings.signing_key_id)),
        policy=TargetPolicy(local_targets=settings.local_targets),
        logger=logger,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One call, its API key already judged. `ids` are the path's, as texts; `path` begins with the stage.

    What is put into `later` is done once the change is stored for good, and before the answer.
    """

    tenant_id: UUID
    key_id: str
    ids: Mapping[str, str]
    path: str
    event: dict[str, Any]
    limits: Limits
    more_time: Callable[[], bool]
    later: list[Callable[[], None]] = field(default_factory=list)

    @property
    def query(self) -> Mapping[str, str]:
        return self.event.get("queryStringParameters") or {}

    @property
    def schedule_id(self) -> UUID:
        return queries.path_id(self.ids["schedule_id"])

    @property
    def run_id(self) -> UUID:
        return queries.path_id(self.ids["run_id"])


def create_schedule(parts: Parts, request: Request) -> Response:
    definition = definition_of(read_object(request.event), parts.policy)
    request.limits.check(definition.timing, definition.payload)
    made = parts.scheduling.create(request.tenant_id, uuid4(), definition, changed_by=request.key_id)
    _send_soon(parts, request, made.id)
    return _schedule(parts, made, 201, Location=f"{request.path}/{made.id}")


def list_schedules(parts: Parts, request: Request) -> Response:
    limit, after = queries.page(request.query, queries.OLDEST)
    found = parts.scheduling.list(request.tenant_id, after=after, most=limit + 1)
    shown = found[:limit]
    upcoming = parts.history.next_runs(shown)
    last = queries.cursor(shown[-1].created_at, shown[-1].id) if len(found) > limit else None
    documents = [schedule_document(each, upcoming[each.id]) for each in shown]
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
    _send_soon(parts, request, changed.id)
    return _schedule(parts, changed)


def delete_schedule(parts: Parts, request: Request) -> Response:
    parts.scheduling.delete(
        request.tenant_id, request.schedule_id, changed_by=request.key_id, only=conditions.if_match(request.event)
    )
    return no_content()


def pause_schedule(parts: Parts, request: Request) -> Response:
    paused = parts.scheduling.pause(
        request.tenant_id, request.schedule_id, changed_by=request.key_id, only=conditions.if_match(request.event)
    )
    return _schedule(parts, paused)


def resume_schedule(parts: Parts, request: Request) -> Response:
    resumed = parts.scheduling.resume(
        request.tenant_id, request.schedule_id, changed_by=request.key_id, only=conditions.if_match(request.event)
    )
    _send_soon(parts, request, resumed.id)
    return _schedule(parts, resumed)


def list_runs(parts: Parts, request: Request) -> Response:
    schedule_id = request.schedule_id
    limit, (before, _) = queries.page(request.query, queries.NEWEST)
    found = parts.history.runs(request.tenant_id, schedule_id, before=before, most=limit + 1)
    shown = found[:limit]
    last = queries.cursor(shown[-1].scheduled_for, shown[-1].id) if len(found) > limit else None
    return answer(200, {"runs": [run_document(each) for each in shown], "next_cursor": last})


def get_run(parts: Parts, request: Request) -> Response:
    return answer(200, _run_document(*parts.history.run(request.tenant_id, request.run_id)))


def redeliver_run(parts: Parts, request: Request) -> Response:
    parts.redelivery.redeliver(request.tenant_id, request.run_id)
    run, _ = parts.history.run(request.tenant_id, request.run_id)
    _send_soon(parts, request, run.schedule_id)
    return answer(200, _run_document(*parts.history.run(request.tenant_id, request.run_id)))


def cancel_run(parts: Parts, request: Request) -> Response:
    parts.redelivery.cancel(request.tenant_id, request.run_id)
    return answer(200, _run_document(*parts.history.run(request.tenant_id, request.run_id)))


def redeliver_runs(parts: Parts, request: Request) -> Response:
    wanted, dry_run = redeliveries(read_object(request.event))
    done = parts.redelivery.redeliver_many(request.tenant_id, wanted, dry_run=dry_run)
    return answer(200, {"matched": done.matched, "redelivered": done.redelivered, "dry_run": dry_run})


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
    _reads("/v1/runs/{run_id}", get_run),
    _changes("POST", "/v1/runs/{run_id}/redeliver", redeliver_run),
    _changes("POST", "/v1/runs/{run_id}/cancel", cancel_run),
    _changes("POST", "/v1/redeliveries", redeliver_runs),
)


def _schedule(parts: Parts, schedule: Schedule, status: int = 200, **headers: str) -> Response:
    document = schedule_document(schedule, parts.history.next_runs([schedule])[schedule.id])
    return answer(status, document, ETag=conditions.entity_tag(schedule.version), **headers)


def _run_document(run: Run, attempts: list[LoggedAttempt]) -> dict[str, Any]:
    return run_document(run) | {"attempts": [attempt_document(each) for each in attempts]}


def _send_soon(parts: Parts, request: Request, schedule_id: UUID) -> None:
    """Sends the schedule's first runs once they are stored, so that one within the next minute does not wait for a tick."""

    def send() -> None:
        try:
            dispatch(parts.database, parts.runs, parts.clock, more_time=request.more_time, schedule_id=schedule_id)
        except (DatabaseUnavailable, StatementRefused) as error:
            # The change is committed, and the planner sends what is left: the caller has nothing to repeat.
            parts.logger.warning("runs.left_to_the_planner", schedule_id=str(schedule_id), error=str(error))

    request.later.append(send)
