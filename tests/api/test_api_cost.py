"""What a request costs beside its own statements: the api function in process against the same statements, bare."""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from scheduler.store.connection import Database, Transaction

from tests.api.client import EVENT, Client, Context
from tests.world import World

_MOST = 3.0
_ROUNDS = 100

type Statement = tuple[str, dict[str, object]]


@contextmanager
def recorded(statements: list[Statement]) -> Iterator[None]:
    """Notes each statement that the function runs, with its parameters."""
    original = Transaction._execute

    def execute(self: Transaction, name: str, parameters: dict[str, object]) -> object:
        statements.append((name, parameters))
        return original(self, name, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transaction, "_execute", execute)
        yield


def event(client: Client, method: str, path: str, body: str | None) -> dict[str, object]:
    made = json.loads(json.dumps(EVENT))
    made |= {"httpMethod": method, "path": path, "resource": client.contract.route_of(path), "body": body}
    made["pathParameters"] = client.contract.parameters_of(path)
    made["requestContext"]["authorizer"]["tenant_id"] = str(client.tenant_id)
    return dict(made)


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def bare(database: Database, statements: list[Statement]) -> None:
    """The statements in one transaction; ids that must be new are."""
    new = uuid4()
    old = next((words["id"] for name, words in statements if name == "schedules.insert"), None)
    with database.transaction() as transaction:
        for name, words in statements:
            renewed = {key: new if old is not None and value == old else value for key, value in words.items()}
            transaction.run(name, **renewed)


@pytest.mark.bench
@pytest.mark.parametrize("kind", ["create", "get"])
def test_a_request_costs_less_than_three_times_its_statements(
    client: Client, world: World, connect: Callable[[], Database], kind: str
) -> None:
    made = client.create(cron="0 0 1 1 *")
    body = json.dumps({"cron": "0 0 1 1 *", "url": "https://hook.example/path"}) if kind == "create" else None
    path = "/v1/schedules" if kind == "create" else f"/v1/schedules/{made['id']}"
    request = event(client, "POST" if kind == "create" else "GET", path, body)
    statements: list[Statement] = []
    with recorded(statements):
        assert client.api.respond(request, Context())["statusCode"] < 300
    database = connect()
    # Turn by turn, so that what else the machine does slows both.
    pairs = [
        (seconds(lambda: client.api.respond(request, Context())), seconds(lambda: bare(database, statements)))
        for _ in range(_ROUNDS)
    ]
    through, alone = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{kind} over its statements: ratio={through / alone:.2f} (below {_MOST})")  # noqa: T201 - the figure is the result
    assert through < _MOST * alone
