"""The routes by which a person steps in: a run is delivered again or cancelled, many are delivered again by a filter.

They are asked for seldom, and imported when they are, as those of `times`.
"""

from answers import answer
from bodies import read_object
from filters import redeliveries
from parts import Parts, Request
from replies import run_reply
from response import Response
from scheduler.redelivery import Redelivery
from sending import send_soon


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
