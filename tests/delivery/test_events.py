"""Events: each is decided with what it tells of, published as its schema in contracts/events says, under a stable id."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from jsonschema import Draft202012Validator
from scheduler.aws.bus import Bus
from scheduler.breaker import BreakerPolicy
from scheduler.disabling import carry_out
from scheduler.maintenance import maintain
from scheduler.outbox import publish
from scheduler.schedules import OverlapPolicy

from tests.depot import Depot, EventsClient, takes_nothing
from tests.http.receiver import Receiver, says
from tests.world import Hands

_PROJECT = Path(__file__).parents[2]
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (_PROJECT / "contracts" / "events").glob("*.json")}
GONE = says(b"HTTP/1.1 410 X\r\nContent-Length: 0\r\n\r\n")
FAILS = says(b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")


def published(depot: Depot, client: EventsClient | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Publishes the outbox: type and detail of each event, held against its schema."""
    client = client or EventsClient()
    # Later than whoever recorded them has to publish them.
    later = Hands(now=depot.world.clock.now + timedelta(minutes=1))
    publish(depot.world.database, later, Bus(client, "bus"), more_time=lambda: True)
    events = [(entry["DetailType"], json.loads(entry["Detail"])) for entry in client.taken + client.refused]
    for kind, detail in events:
        Draft202012Validator(SCHEMAS[kind], format_checker=Draft202012Validator.FORMAT_CHECKER).validate(detail)
    return events


def succeeded(depot: Depot) -> None:
    with Receiver() as receiver:
        depot.deliver(depot.one_run(receiver.url()))


def retrying(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        depot.deliver(depot.one_run(receiver.url()), depot.one_run("http://127.0.0.1:9/"))


def failed(depot: Depot) -> None:
    """By its receiver, by poison, by its age."""
    with Receiver(script=GONE) as receiver:
        depot.deliver(depot.one_run(receiver.url()))
    poisoned = depot.one_run("http://127.0.0.1:9/")
    for _ in range(5):
        depot.claim(poisoned, alone=True)
        depot.world.clock.move(seconds=31)
    depot.deliver(poisoned)
    depot.one_run("http://127.0.0.1:9/")
    depot.world.clock.move(days=9)
    maintain(depot.world.database, depot.world.clock, retention=timedelta(days=7), more_time=lambda: True)


def skipped(depot: Depot) -> None:
    schedule = depot.schedule("http://127.0.0.1:9/", decided={"overlap": OverlapPolicy.SKIP})
    depot.world.clock.move(minutes=2)
    depot.claim(*depot.run_ids(schedule)[:2])


def missed(depot: Depot) -> None:
    depot.schedule("http://127.0.0.1:9/", rate="10 seconds")
    depot.world.clock.move(hours=1)
    depot.world.tick()


def disabled(depot: Depot) -> None:
    with Receiver(script=GONE) as receiver:
        depot.deliver(depot.one_run(receiver.url()))


def opened_and_closed(depot: Depot) -> None:
    depot.breaker = BreakerPolicy(volume=1)
    with Receiver(script=FAILS) as receiver:
        depot.deliver(depot.one_run(receiver.url()))
        depot.world.clock.move(seconds=31)
        receiver.script = says(b"HTTP/1.1 204 X\r\n\r\n")
        depot.deliver(depot.one_run(receiver.url("/probe")))


def failing(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        for _ in range(2):
            depot.deliver(depot.one_run(receiver.url()))
            depot.world.clock.move(days=2, hours=13)
            depot.world.sql(
                "select make_partitions(cast(:d as date), cast(:d as date))", d=depot.world.clock.now.date()
            )


STORIES: dict[str, Callable[[Depot], None]] = {
    "schedule.run.succeeded": succeeded,
    "schedule.run.retrying": retrying,
    "schedule.run.failed": failed,
    "schedule.run.skipped": skipped,
    "schedule.run.missed": missed,
    "schedule.disabled": disabled,
    "endpoint.opened": opened_and_closed,
    "endpoint.closed": opened_and_closed,
    "endpoint.failing": failing,
}


@pytest.mark.parametrize("kind", STORIES)
def test_each_event_is_published_as_its_schema_says(depot: Depot, kind: str) -> None:
    STORIES[kind](depot)
    assert kind in {each for each, _ in published(depot)}


def test_every_way_to_fail_for_good_tells_its_reason(depot: Depot) -> None:
    failed(depot)
    reasons = {detail["reason"] for kind, detail in published(depot) if kind == "schedule.run.failed"}
    assert reasons == {"rejected", "poisoned", "expired"}


def test_an_event_keeps_its_id_however_often_it_is_published(depot: Depot) -> None:
    succeeded(depot)
    refused, taken = EventsClient(takes_nothing), EventsClient()
    published(depot, refused)
    published(depot, taken)
    ids = {json.loads(entry["Detail"])["id"] for entry in (*refused.refused, *taken.taken)}
    assert len(ids) == 1


def test_success_means_that_we_saw_a_2xx_and_the_contract_says_so() -> None:
    assert "we saw a 2xx" in SCHEMAS["schedule.run.succeeded"]["description"]


def decided_types() -> Iterator[str]:
    """Every event type that a statement writes."""
    for path in sorted((_PROJECT / "shared" / "scheduler" / "store" / "sql").glob("*.sql")):
        for found in re.findall(r"'((?:schedule|endpoint)\.[a-z_.]+)'", path.read_text()):
            if found != "schedule.run.":
                yield found


def test_every_event_that_is_decided_has_a_schema_and_every_schema_is_valid() -> None:
    outcomes = {f"schedule.run.{outcome}" for outcome in ("succeeded", "retrying", "failed")}
    assert set(decided_types()) | outcomes == set(SCHEMAS)
    for kind, schema in SCHEMAS.items():
        Draft202012Validator.check_schema(schema)
        assert schema["title"] == kind
        assert schema["properties"]["id"]["description"].endswith("drop duplicates by it.")


def test_an_order_that_was_carried_out_is_told_once(depot: Depot) -> None:
    disabled(depot)
    carry_out(depot.world.scheduling, more_time=lambda: True)
    assert depot.events().count("schedule.disabled") == 1


def test_a_schema_refuses_what_it_does_not_know() -> None:
    validator = Draft202012Validator(SCHEMAS["endpoint.closed"])
    detail = {"id": str(uuid4()), "tenant_id": str(uuid4()), "origin": "https://a.example"}
    assert validator.is_valid(detail)
    assert not validator.is_valid(detail | {"url": "https://a.example/secret"})
