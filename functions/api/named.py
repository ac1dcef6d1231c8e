"""The routes of a schedule by the name that its tenant chose; imported when they are asked for, as those of `times`."""

from urllib.parse import unquote
from uuid import uuid4

from bodies import read_object
from documents import SCHEDULE_NAME, definition_of
from fields import refused
from parts import Parts, Request
from replies import schedule_reply
from response import Response
from scheduler import by_name
from scheduler.errors import InvalidInput, NotFound
from scheduler.schedules import Definition
from sending import send_soon


def get_schedule_by_name(parts: Parts, request: Request) -> Response:
    return schedule_reply(parts, by_name.find(parts.scheduling, request.tenant_id, _name(request)))


def put_schedule(parts: Parts, request: Request) -> Response:
    name, document = _name(request), read_object(request.event)
    if document.get("name") not in (None, name):
        raise refused("/name", "must be the name in the path, or left out")
    definition = definition_of(document | {"name": name}, parts.policy)

    def put_over(old: Definition | None) -> Definition:
        request.check_limits(old, definition)
        return definition

    put, created = by_name.put(
        parts.scheduling,
        request.tenant_id,
        uuid4(),
        name,
        put_over,
        changed_by=request.key_id,
        only=request.only,
    )
    send_soon(parts, request, put.id)
    if not created:
        return schedule_reply(parts, put)
    stage = request.path.partition("/v1/")[0]
    return schedule_reply(parts, put, 201, Location=f"{stage}/v1/schedules/{put.id}")


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
