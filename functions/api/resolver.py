"""Joins the routes to API Gateway's events: who calls, whether it may, once or again, and a problem for whatever is raised."""

import time
from dataclasses import replace
from typing import Any
from uuid import UUID

import conditions
import queries
from answers import digest
from aws_lambda_powertools.utilities.typing import LambdaContext
from parts import Parts, Request
from problems import Forbidden, kind_of, problem
from response import Response
from routes import ROUTES, Route
from scheduler.errors import NotFound
from scheduler.idempotency import Answered
from scheduler.limits import Admission, Admitted, TooManyRequests

# What is kept for the answer itself; dispatch stops before.
_RESERVE_MS = 8_000
_ROUTES = {(route.method, route.path): route for route in ROUTES}


class Api:
    """The routes over their parts. `respond` answers one REST event, and raises nothing."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._admission = Admission(parts.database, parts.clock, time.monotonic)

    def respond(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """The answer, the request's id among its headers; one log line."""
        request_id = event["requestContext"]["requestId"]
        response = self._answer(event, context, request_id)
        caller = event["requestContext"].get("authorizer") or {}
        self._parts.logger.info(
            "request.answered",
            request_id=request_id,
            method=event["httpMethod"],
            route=event["resource"],
            status=response.status,
            tenant_id=caller.get("tenant_id"),
            key_id=caller.get("key_id"),
        )
        return response.encoded(X_Request_Id=request_id)

    def close(self) -> None:
        """Drops the database connection."""
        self._parts.database.close()

    def _answer(self, event: dict[str, Any], context: LambdaContext, request_id: str) -> Response:
        admitted: Admitted | None = None
        try:
            route = _route(event)
            tenant_id = UUID(event["requestContext"]["authorizer"]["tenant_id"])
            with self._parts.database.acting_for(tenant_id):
                admitted = self._admission.admit(tenant_id)
                request = _request(route, event, context, tenant_id, admitted)
                response = _unless_seen(route, event, self._carry_out(route, request))
                for work in request.later:
                    work()
        except Exception as error:  # the last resort: whatever a route raises has an answer
            if kind_of(error).status >= 500:
                self._parts.logger.error("request.failed", request_id=request_id, exc_info=error)
            response = problem(error, request_id)
            if isinstance(error, TooManyRequests):
                admitted = Admitted(limits=error.limits, remaining=0)
        return _measured(response, admitted) if admitted else response

    def _carry_out(self, route: Route, request: Request) -> Response:
        if not route.conditional:
            conditions.refuse_any(request.event)
        if route.method != "GET":
            queries.refuse_any(request.query)
        key = conditions.idempotency_key(request.event) if route.method == "POST" else None
        if key is None:
            return route.carry_out(self._parts, request)

        def work() -> Answered:
            return _kept(route.carry_out(self._parts, request))

        idempotency, fingerprint = self._parts.idempotency, conditions.fingerprint(request.event)
        return _restored(idempotency.once(request.tenant_id, key, fingerprint, work, sealed=route.sealed))


def _route(event: dict[str, Any]) -> Route:
    """The route that API Gateway found by the template's events."""
    route = _ROUTES.get((event["httpMethod"], event["resource"]))
    if route is None:
        raise NotFound("There is no such route.")
    return route


def _request(
    route: Route, event: dict[str, Any], context: LambdaContext, tenant_id: UUID, admitted: Admitted
) -> Request:
    caller = event["requestContext"]["authorizer"]
    if route.scope not in caller["scopes"].split():
        raise Forbidden(f"The API key lacks the scope {route.scope}.")
    return Request(
        tenant_id=tenant_id,
        key_id=caller["key_id"],
        ids=event["pathParameters"] or {},
        path=event["requestContext"]["path"],
        event=event,
        limits=admitted.limits,
        more_time=lambda: context.get_remaining_time_in_millis() > _RESERVE_MS,
    )


def _kept(response: Response) -> Answered:
    headers = dict(response.headers) | ({"Content-Type": response.content_type} if response.content_type else {})
    return Answered(status=response.status, headers=headers, body=response.body)


def _restored(answered: Answered) -> Response:
    headers = dict(answered.headers)
    content_type = headers.pop("Content-Type", None)
    if answered.replayed:
        headers["Idempotent-Replayed"] = "true"
    return Response(status=answered.status, content_type=content_type, body=answered.body, headers=headers)


def _unless_seen(route: Route, event: dict[str, Any], response: Response) -> Response:
    """A read under its ETag: a weak one, of its content, where it has no other; 304 where the caller has it already."""
    if route.method != "GET":
        return response
    etag = response.headers.get("ETag") or f'W/"{digest(response.body)}"'
    if conditions.was_seen(event, etag):
        return Response(status=304, headers={"ETag": etag})
    return replace(response, headers={**response.headers, "ETag": etag})


def _measured(response: Response, admitted: Admitted) -> Response:
    """With the fields of draft-ietf-httpapi-ratelimit-headers: the requests of a second, and how many are left."""
    policy = f'"second";q={admitted.limits.requests_per_second};w=1'
    left = f'"second";r={admitted.remaining};t=1'
    return replace(response, headers={**response.headers, "RateLimit-Policy": policy, "RateLimit": left})
