"""What a tenant may have and do, and what it is told when that is all."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from scheduler.schedules import Definition
from scheduler.scheduling import Scheduling
from scheduler.store.connection import Database
from scheduler.timing import Timing

from tests.api.client import Client
from tests.api.conftest import Connect
from tests.world import RETENTION, World, wait_until_blocked

URL = "https://hook.example/path"


def create_on(database: Database, world: World) -> None:
    definition = Definition(name=None, timing=Timing(cron="0 0 * * *"), url=URL, headers=(), payload=None)
    scheduling = Scheduling(database=database, clock=world.clock, retention=RETENTION)
    scheduling.create(world.tenant_id, uuid4(), definition, changed_by="test")


def limit(world: World, **limits: int) -> None:
    world.sql("update tenant set " + ", ".join(f"{name} = {value}" for name, value in limits.items()))


def test_requests_beyond_those_of_a_second_are_put_off(client: Client, world: World) -> None:
    limit(world, requests_per_second=20)
    statuses = [client.get("/v1/schedules").status for _ in range(20)]
    assert statuses == [200] * 20
    refused = client.get("/v1/schedules")
    assert (refused.status, refused.document["type"]) == (429, "urn:problem-type:carillon:limit-exceeded")
    assert refused.headers["Retry-After"] == "1"
    assert (refused.headers["RateLimit-Policy"], refused.headers["RateLimit"]) == (
        '"second";q=20;w=1',
        '"second";r=0;t=1',
    )
    world.clock.move(seconds=1)
    assert client.get("/v1/schedules").status == 200


def test_a_tenant_that_asks_too_much_puts_off_no_other(client: Client, world: World) -> None:
    limit(world, requests_per_second=1)
    client.get("/v1/schedules")
    assert client.get("/v1/schedules").status == 429
    assert client.stranger().get("/v1/schedules").status == 200


def test_each_answer_says_how_much_is_left(client: Client, world: World) -> None:
    limit(world, requests_per_second=20)
    assert [client.get("/v1/schedules").headers["RateLimit"] for _ in range(3)] == [
        f'"second";r={left};t=1' for left in (19, 18, 17)
    ]


def test_a_tenant_has_no_more_schedules_than_it_may(client: Client, world: World) -> None:
    limit(world, max_schedules=2)
    made = [client.create(), client.create()]
    refused = client.post("/v1/schedules", {"rate": "1 hour", "url": URL})
    assert (refused.status, refused.headers["Retry-After"]) == (429, "60")
    client.delete(f"/v1/schedules/{made[0]['id']}")
    client.create()


@pytest.mark.parametrize(
    ("fields", "pointers"),
    [
        ({"rate": "10 minutes"}, []),
        ({"rate": "9 minutes"}, ["/rate"]),
        ({"cron": "*/10 * * * *"}, []),
        ({"cron": "*/9 * * * *"}, ["/cron"]),
        ({"cron": "0,5 9 * * 1"}, ["/cron"]),
        ({"at": "2026-12-24T18:00:00"}, []),
        ({"rate": "1 hour", "payload": "x" * 98}, []),
        ({"rate": "1 hour", "payload": "x" * 99}, ["/payload"]),
    ],
)
def test_a_schedule_fires_and_sends_no_more_than_its_tenant_may(
    client: Client, world: World, fields: dict[str, Any], pointers: list[str]
) -> None:
    limit(world, min_interval_seconds=600, max_payload_bytes=100)
    answer = client.post("/v1/schedules", {"url": URL} | fields)
    if pointers:
        assert (answer.status, answer.pointers) == (400, pointers)
    else:
        assert answer.status == 201


def test_what_was_there_before_a_limit_may_stay(
    client: Client, world: World, connect_api: Connect, environment: dict[str, str]
) -> None:
    named, minutely = "/v1/schedules/by-name/minutely", {"cron": "* * * * *", "url": URL}
    path = f"/v1/schedules/{client.put(named, minutely).document['id']}"
    limit(world, min_interval_seconds=600)
    # Another sandbox: this one has read the limits already.
    client = connect_api(environment)
    assert client.patch(path, {"description": "kept"}).status == 200
    assert client.put(named, minutely).status == 200
    assert client.patch(path, {"cron": "*/2 * * * *"}).pointers == ["/cron"]
    assert client.put(named, minutely | {"cron": "*/2 * * * *"}).pointers == ["/cron"]
    assert client.put(f"{named}-2", minutely).pointers == ["/cron"]


def test_of_two_creations_at_once_the_second_counts_the_first(
    client: Client, world: World, connect: Callable[[], Database]
) -> None:
    limit(world, max_schedules=1)
    database = connect()
    with ThreadPoolExecutor(max_workers=1) as creators:
        with database.joined():
            create_on(database, world)
            second = creators.submit(client.post, "/v1/schedules", {"rate": "1 hour", "url": URL})
            wait_until_blocked(world)
        assert second.result(timeout=30).status == 429
    assert world.sql("select count(*) from schedule") == [[1]]
