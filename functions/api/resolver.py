"""Joins the routes to API Gateway's events: who calls, whether it may, and a problem document for whatever is raised."""

from typing import Any
from uuid import UUID

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.utilities.typing import LambdaContext
from problems import Forbidden, kind_of, problem
from routes import ROUTES, Parts, Request, Route

# What is kept for the answer itself; dispatch stops before.
_RESERVE_MS = 8_000


class Api:
    """The routes over their parts. `respond` answers one REST event, and raises nothing."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._resolver = APIGatewayRestResolver()
        for route in ROUTES:
            self._add(route)
        self._resolver.exception_handler(Exception)(self._problem)

    def respond(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """The answer, the request's id among its headers; one log line."""
        request_id = event["requestContext"]["requestId"]
        answered = self._resolver.resolve(event, context)
        answered["multiValueHeaders"]["X-Request-Id"] = [request_id]
        caller = event["requestContext"].get("authorizer") or {}
        self._parts.logger.info(
            "request.answered",
            request_id=request_id,
            method=event["httpMethod"],
            route=event["resource"],
            status=answered["statusCode"],
            tenant_id=caller.get("tenant_id"),
            key_id=caller.get("key_id"),
        )
        return answered

    def close(self) -> None:
        """Drops the database connection."""
        self._parts.database.close()

    def _add(self, route: Route) -> None:
        def carry_out(**ids: str) -> Response[str]:
            return route.carry_out(self._parts, self._request(route, ids))

        rule = route.path.replace("{", "<").replace("}", ">")
        self._resolver.route(rule, method=route.method)(carry_out)

    def _request(self, route: Route, ids: dict[str, str]) -> Request:
        event = self._resolver.current_event.raw_event
        caller = event["requestContext"]["authorizer"]
        if route.scope not in caller["scopes"].split():
            raise Forbidden(f"The API key lacks the scope {route.scope}.")
        context: LambdaContext = self._resolver.lambda_context
        return Request(
            tenant_id=UUID(caller["tenant_id"]),
            key_id=caller["key_id"],
            ids=ids,
            path=event["requestContext"]["path"],
            event=event,
            more_time=lambda: context.get_remaining_time_in_millis() > _RESERVE_MS,
        )

    def _problem(self, error: Exception) -> Response[str]:
        request_id = self._resolver.current_event.raw_event["requestContext"]["requestId"]
        if kind_of(error).status >= 500:
            self._parts.logger.error("request.failed", request_id=request_id, exc_info=error)
        return problem(error, request_id)
