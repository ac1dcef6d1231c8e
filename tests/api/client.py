"""A tenant's client of the api function: REST events in, answers out, each held against the contract."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from tests.api.contract import Contract

EVENT = json.loads((Path(__file__).parents[2] / "events" / "api.json").read_text())
MINUTELY = {"cron": "* * * * *", "url": "https://hook.example/path"}


class Context:
    """As much of a Lambda context as the function reads."""

    function_name = "api"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:api"
    aws_request_id = "3f0c2a4e-6b1d-4f6f-9f0a-5f1f3b1c2d3e"

    def get_remaining_time_in_millis(self) -> int:
        return 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer's parts; `document` is None where there is no body."""

    status: int
    headers: dict[str, str]
    document: Any

    @property
    def pointers(self) -> list[str]:
        """Where the problem's errors are."""
        return sorted(error.get("pointer", error.get("parameter")) for error in self.document["errors"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """Calls the API as one tenant's key."""

    api: Any
    tenant_id: UUID
    contract: Contract
    new_tenant: Callable[[], UUID]
    scopes: str = "read write"

    def stranger(self) -> "Client":
        """Another tenant's client."""
        return replace(self, tenant_id=self.new_tenant())

    def may(self, scopes: str) -> "Client":
        """The same tenant, with a key of other scopes."""
        return replace(self, scopes=scopes)

    def get(self, path: str, **query: str | list[str]) -> Answer:
        return self.call("GET", path, query=query)

    def post(self, path: str, document: Any = None, **headers: str) -> Answer:
        return self.call("POST", path, body=None if document is None else json.dumps(document), headers=headers)

    def patch(self, path: str, document: Any, **headers: str) -> Answer:
        return self.call("PATCH", path, body=json.dumps(document), headers=headers)

    def put(self, path: str, document: Any, **headers: str) -> Answer:
        return self.call("PUT", path, body=json.dumps(document), headers=headers)

    def delete(self, path: str, **headers: str) -> Answer:
        return self.call("DELETE", path, headers=headers)

    def create(self, **fields: Any) -> dict[str, Any]:
        """A new schedule, every minute unless it says otherwise."""
        kinds = {"cron": MINUTELY["cron"]} if not fields.keys() & {"cron", "rate", "at"} else {}
        made = self.post("/v1/schedules", {"url": MINUTELY["url"]} | kinds | fields)
        assert made.status == 201, made.document
        document: dict[str, Any] = made.document
        return document

    def call(
        self,
        method: str,
        path: str,
        *,
        body: str | None = None,
        query: dict[str, str | list[str]] | None = None,
        headers: dict[str, str] | None = None,
        base64_encoded: bool = False,
    ) -> Answer:
        route = self.contract.route_of(path)
        event = copy.deepcopy(EVENT)
        event |= {
            "httpMethod": method,
            "path": path,
            "resource": route,
            "body": body,
            "isBase64Encoded": base64_encoded,
        }
        given = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        event["headers"] |= given
        event["multiValueHeaders"] |= {name: [value] for name, value in given.items()}
        event["pathParameters"] = self.contract.parameters_of(path)
        several = {name: value if isinstance(value, list) else [value] for name, value in (query or {}).items()}
        # As API Gateway does: the last of several.
        event["queryStringParameters"] = {name: values[-1] for name, values in several.items()} or None
        event["multiValueQueryStringParameters"] = several or None
        event["requestContext"] |= {"path": f"/live{path}", "requestId": str(uuid4())}
        event["requestContext"]["authorizer"] |= {"tenant_id": str(self.tenant_id), "scopes": self.scopes}
        raw = json.loads(json.dumps(self.api.respond(event, Context()), ensure_ascii=False).encode())
        answer = _decoded(raw)
        assert answer.headers["X-Request-Id"] == event["requestContext"]["requestId"]
        self.contract.check(method, route, answer.status, answer.headers, answer.document)
        return answer


def _decoded(raw: dict[str, Any]) -> Answer:
    assert not raw["isBase64Encoded"]
    return Answer(
        status=raw["statusCode"],
        headers={name: values[0] for name, values in raw["multiValueHeaders"].items()},
        document=json.loads(raw["body"]) if raw["body"] else None,
    )
