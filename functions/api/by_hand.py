"""The routes by which a person steps in: runs are made, delivered again and cancelled.

They are asked for seldom, and imported when they are, as those of `times`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import fields
from answers import answer
from bodies import read_object
from filters import redeliveries
from parts import Parts, Request
from replies import run_reply
from response import Response
from scheduler.by_hand import MOST_BACKFILLED, ByHand
from scheduler.redelivery import Redelivery
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


def redeliver_run(parts: Parts, request: Request) -> Response:
    schedule_id = _redelivery(parts).redeliver(request.tenant_id, request.run_id, only=request.only)
    send_soon(parts, request, schedule_id)
    return run_reply(parts, request, request.run_id)


def cancel_run(parts: Parts, request: Request) -> Response:
    _redelivery(parts).cancel(request.tenant_id, request.run_id, only=request.only)
    return run_reply(parts, request, request.run_id)


def redeliver_runs(parts: Parts, request: Request) -> Response:
    wanted, dry_run = redeliveries(read_object(request.event))
    done = _redelivery(parts).redeliver_many(request.tenant_id, wanted, dry_run=dry_run)
    return answer(200, {"matched": done.matched, "redelivered": done.redelivered, "dry_run": dry_run})


def _redelivery(parts: Parts) -> Redelivery:
    return Redelivery(database=parts.database, clock=parts.clock)


def _by_hand(parts: Parts) -> ByHand:
    return ByHand(database=parts.database, clock=parts.clock, retention=parts.scheduling.retention)
