"""The outbox: each event reaches the bus at least once, and none is forgotten that the bus did not take."""

from typing import Any
from uuid import uuid4

from scheduler.aws.bus import Bus
from scheduler.outbox import publish

from tests.world import World


class Recorder:
    """An EventBridge client that refuses what a test wants refused."""

    def __init__(self, refused: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        self.refused = refused
        self.taken: list[dict[str, Any]] = []

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - the SDK's name
        results = []
        for entry in Entries:
            if entry["DetailType"] in self.refused:
                results.append({"ErrorCode": "InternalFailure"})
            else:
                self.taken.append(entry)
                results.append({"EventId": str(uuid4())})
        return {"FailedEntryCount": len(Entries) - len(self.taken), "Entries": results}


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
    client = Recorder()
    assert publish(world.database, world.clock, Bus(client, "bus"), more_time=lambda: True) == 25
    assert len({entry["Detail"] for entry in client.taken}) == 25
    assert world.sql("select count(*) from outbox") == [[0]]


def test_an_event_that_the_bus_refuses_stays(world: World) -> None:
    decide(world, "a", "b", "c")
    assert publish(world.database, world.clock, Bus(Recorder({"b"}), "bus"), more_time=lambda: True) == 2
    assert world.sql("select type from outbox") == [["b"]]
