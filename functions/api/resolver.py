"""Joins the routes to API Gateway's events: who calls, whether it may, and a problem document for whatever is raised."""

from typing import Any
from uuid import UUID

from aws_lambda_powertools.utilities.typing import LambdaContext
from problems import Forbidden, kind_of, problem
from response import Response
from routes import ROUTES, Parts, Request, Route
from scheduler.errors import NotFound

# What is kept for the answer itself; dispatch stops before.
_RESERVE_MS = 8_000
_ROUTES = {(route.method, route.path): route for route in ROUTES}


class Api:
    """The routes over their parts. `respond` answers one REST event, and raises nothing."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

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
        try:
            route = _route(event)
            return route.carry_out(self._parts, _request(route, event, context))
        except Exception as error:  # the last resort: whatever a route raises has an answer
            if kind_of(error).status >= 500:
                self._parts.logger.error("request.failed", request_id=request_id, exc_info=error)
            return problem(error, request_id)


def _route(event: dict[str, Any]) -> Route:
    """The route that API Gateway found by the template's events."""
    route = _ROUTES.get((event["httpMethod"], event["resource"]))
    if route is None:
        raise NotFound("There is no such route.")
    return route


def _request(route: Route, event: dict[str, Any], context: LambdaContext) -> Request:
    caller = event["requestContext"]["authorizer"]
    if route.scope not in caller["scopes"].split():
        raise Forbidden(f"The API key lacks the scope {route.scope}.")
    return Request(
        tenant_id=UUID(caller["tenant_id"]),
        key_id=caller["key_id"],
        ids=event["pathParameters"] or {},
        path=event["requestContext"]["path"],
        event=event,
        more_time=lambda: context.get_remaining_time_in_millis() > _RESERVE_MS,
    )
