"""The outbox: each event reaches the bus at least once, and none is forgotten that the bus did not take."""

from dataclasses import dataclass
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from scheduler.aws.bus import Bus
from scheduler.outbox import publish

from tests.depot import EventsClient
from tests.world import World


def decide(world: World, *types: str) -> None:
    for kind in types:
        world.sql(
            "insert into outbox (id, type, tenant_id, detail, created_at) values (:id, :type, :tenant, '{}', :now)",
            id=uuid4(),
            type=kind,
            tenant=world.tenant_id,
            now=world.clock.now,
        )


def test_events_are_published_with_their_own_id_and_then_gone(world: World) -> None:
    decide(world, *(f"schedule.run.{i}" for i in range(25)))
    client = EventsClient()
    assert publish(world.database, world.clock, Bus(client, "bus"), more_time=lambda: True) == 25
    assert len({entry["Detail"] for entry in client.taken}) == 25
    assert world.sql("select count(*) from outbox") == [[0]]


@dataclass
class Failing:
    """An EventBridge client whose calls fail."""

    error: Exception
    calls: int = 0

    def put_events(self, **_: object) -> dict[str, object]:
        self.calls += 1
        raise self.error


@pytest.mark.parametrize(
    ("error", "calls"),
    [(EndpointConnectionError(endpoint_url="https://bus"), 1), (ClientError({"Error": {}}, "PutEvents"), 3)],
    ids=["no answer", "refusal"],
)
def test_a_bus_that_does_not_answer_is_waited_for_once_and_nothing_is_forgotten(
    world: World, error: Exception, calls: int
) -> None:
    decide(world, *(f"schedule.run.{i}" for i in range(25)))
    client = Failing(error)
    assert publish(world.database, world.clock, Bus(client, "bus"), more_time=lambda: True) == 0
    assert client.calls == calls
    assert world.sql("select count(*) from outbox") == [[25]]


def test_an_event_that_the_bus_refuses_stays(world: World) -> None:
    decide(world, "a", "b", "c")
    assert (
        publish(world.database, world.clock, Bus(EventsClient(lambda kind: kind != "b"), "bus"), more_time=lambda: True)
        == 2
    )
    assert world.sql("select type from outbox") == [["b"]]
