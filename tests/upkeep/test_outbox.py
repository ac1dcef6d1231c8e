"""The outbox: each event reaches the bus at least once, and none is forgotten that the bus did not take."""

from uuid import uuid4

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


def test_an_event_that_the_bus_refuses_stays(world: World) -> None:
    decide(world, "a", "b", "c")
    assert (
        publish(world.database, world.clock, Bus(EventsClient(lambda kind: kind != "b"), "bus"), more_time=lambda: True)
        == 2
    )
    assert world.sql("select type from outbox") == [["b"]]
