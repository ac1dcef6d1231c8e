"""The routes that put a schedule under its name, ask for runs by hand, and change all schedules of a label."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import fields
from answers import answer
from bodies import read_object
from documents import PAUSE, SCHEDULE_NAME, definition_of, labels
from fields import refused
from parts import Parts, Request
from replies import run_reply, schedule_reply
from response import Response
from scheduler import by_name
from scheduler.by_hand import MOST_BACKFILLED, ByHand
from scheduler.errors import InvalidInput, NotFound
from scheduler.labels import Labelled
from scheduler.schedules import Pause
from sending import send_soon


@dataclass(frozen=True, kw_only=True, slots=True)
class _Backfill:
    """The stretch of the past that is asked for, [since, until)."""

    since: datetime
    until: datetime
    most: int
    dry_run: bool


def _backfill_of(document: Mapping[str, Any]) -> _Backfill:
    """What is asked for; InvalidInput."""
    judges = {
        "from": fields.instant,
        "until": fields.instant,
        "most": fields.whole(1, MOST_BACKFILLED),
        "dry_run": fields.boolean,
    }
    read = fields.read(document, judges, required=["from", "until"])
    return _Backfill(
        since=read["from"],
        until=read["until"],
        most=read.get("most", MOST_BACKFILLED),
        dry_run=read.get("dry_run", False),
    )


def get_schedule_by_name(parts: Parts, request: Request) -> Response:
    return schedule_reply(parts, by_name.find(parts.scheduling, request.tenant_id, _name(request)))


def put_schedule(parts: Parts, request: Request) -> Response:
    name, document = _name(request), read_object(request.event)
    if document.get("name") not in (None, name):
        raise refused("/name", "must be the name in the path, or left out")
    definition = definition_of(document | {"name": name}, parts.policy)
    request.limits.check(definition.timing, definition.payload)
    put, created = by_name.put(
        parts.scheduling,
        request.tenant_id,
        uuid4(),
        definition,
        changed_by=request.key_id,
        only=request.only,
    )
    send_soon(parts, request, put.id)
    if not created:
        return schedule_reply(parts, put)
    stage = request.path.partition("/v1/")[0]
    return schedule_reply(parts, put, 201, Location=f"{stage}/v1/schedules/{put.id}")


def trigger(parts: Parts, request: Request) -> Response:
    schedule_id = request.schedule_id
    run_id = _by_hand(parts).trigger(request.tenant_id, schedule_id, only=request.only)
    send_soon(parts, request, schedule_id)
    stage = request.path.partition("/v1/")[0]
    return run_reply(parts, request, run_id, 201, Location=f"{stage}/v1/runs/{run_id}")


def backfill(parts: Parts, request: Request) -> Response:
    schedule_id, wanted = request.schedule_id, _backfill_of(read_object(request.event))
    done = _by_hand(parts).backfill(
        request.tenant_id,
        schedule_id,
        wanted.since,
        wanted.until,
        most=wanted.most,
        dry_run=wanted.dry_run,
        only=request.only,
    )
    send_soon(parts, request, schedule_id)
    return answer(200, {"occurrences": done.occurrences, "created": done.made, "dry_run": wanted.dry_run})


def pause_labelled(parts: Parts, request: Request) -> Response:
    labels, pause = _paused_labels_of(read_object(request.event))
    return answer(200, asdict(_labelled(parts, request, labels).pause(pause)))


def resume_labelled(parts: Parts, request: Request) -> Response:
    return answer(200, asdict(_labelled(parts, request, _labels_of(read_object(request.event))).resume()))


def _labelled(parts: Parts, request: Request, labels: dict[str, str]) -> Labelled:
    return Labelled(
        scheduling=parts.scheduling,
        tenant_id=request.tenant_id,
        labels=labels,
        changed_by=request.key_id,
        more_time=request.more_time,
    )


def _name(request: Request) -> str:
    # API Gateway may hand the path on as it was written; a name with a percent sign in it can't be told, and is not found.
    name = unquote(request.ids["name"])
    try:
        called: str = SCHEDULE_NAME(name, "")
    except InvalidInput:
        called = "%"
    if "%" in called:
        raise NotFound(f"{name[:64]!a} is no name")
    return called


def _labels_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Which schedules are meant; InvalidInput."""
    return dict(fields.read(document, {"labels": labels}, required=["labels"])["labels"])


def _paused_labels_of(document: Mapping[str, Any]) -> tuple[dict[str, str], Pause]:
    """Which schedules are meant, how long and why; InvalidInput."""
    read = fields.read(document, {"labels": labels, **PAUSE}, required=["labels"])
    return dict(read["labels"]), Pause(until=read.get("until"), reason=read.get("reason"))


def _by_hand(parts: Parts) -> ByHand:
    return ByHand(database=parts.database, clock=parts.clock, retention=parts.scheduling.retention)
