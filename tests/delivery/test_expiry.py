"""What is held does not wait for ever: it ends by its policy's age, whoever holds it, and says so."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from scheduler.breaker import BreakerPolicy
from scheduler.holding import expire_held
from scheduler.maintenance import maintain
from scheduler.redelivery import Redelivery
from scheduler.schedules import OverlapPolicy
from scheduler.webhook.retry import Ladder, RetryPolicy

from tests.depot import Depot
from tests.http.receiver import Receiver, says

FAILS = says(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")
AGE = timedelta(hours=2)
POLICY = RetryPolicy(backoff=Ladder(delays=(timedelta(hours=1),)), max_attempts=2, max_age=AGE)


def expire(depot: Depot) -> int:
    return expire_held(depot.world.database, depot.world.clock, more_time=lambda: True)


def held_by_its_breaker(depot: Depot) -> UUID:
    depot.breaker = BreakerPolicy(volume=1)
    with Receiver(script=FAILS) as receiver:
        depot.deliver(depot.one_run(receiver.url()))
        run_id = depot.one_run(receiver.url(), retry=POLICY)
        depot.deliver(run_id)
    assert depot.run(run_id)["held_by"] == "breaker"
    return run_id


def held_by_an_earlier_run(depot: Depot) -> UUID:
    schedule = depot.schedule("http://127.0.0.1:9/", decided={"overlap": OverlapPolicy.QUEUE, "retry": POLICY})
    depot.world.clock.set("09:02:30")
    first, second = depot.run_ids(schedule)
    depot.claim(first, second)
    assert depot.run(second)["held_by"] == "overlap"
    return second


def held_by_its_schedules_pause(depot: Depot) -> UUID:
    run_id = depot.one_run("http://127.0.0.1:9/", retry=POLICY)
    depot.world.sql("update schedule set status = 'paused'")
    return run_id


def held_by_its_tenants_suspension(depot: Depot) -> UUID:
    run_id = depot.one_run("http://127.0.0.1:9/", retry=POLICY)
    depot.world.sql("update tenant set status = 'suspended'")
    return run_id


HOLDERS = [
    held_by_its_breaker,
    held_by_an_earlier_run,
    held_by_its_schedules_pause,
    held_by_its_tenants_suspension,
]


@pytest.mark.parametrize("hold", HOLDERS, ids=lambda hold: hold.__name__)
def test_a_held_run_ends_with_its_policys_age_and_its_event_and_not_before(
    depot: Depot, hold: Callable[[Depot], UUID]
) -> None:
    run_id = hold(depot)
    [[due_at]] = depot.world.sql("select due_at from job_run where id = :id", id=run_id)
    depot.world.clock.set(due_at + AGE - timedelta(seconds=1))
    assert expire(depot) == 0
    depot.world.clock.set(due_at + AGE)
    assert expire(depot) == 1
    assert (depot.run(run_id)["state"], depot.run(run_id)["reason"]) == ("failed", "expired")
    [[detail]] = depot.world.sql("select detail from outbox where type = 'schedule.run.failed'")
    assert (detail["run_id"], detail["reason"]) == (str(run_id), "expired")


def test_the_age_of_a_run_that_was_redelivered_counts_from_then(depot: Depot) -> None:
    run_id = held_by_its_breaker(depot)
    depot.world.clock.move(hours=3)
    assert expire(depot) == 1
    Redelivery(database=depot.world.database, clock=depot.world.clock).redeliver(depot.world.tenant_id, run_id)
    depot.world.sql("update endpoint set state = 'open', probe_at = :later", later=depot.world.clock.now + 2 * AGE)
    depot.deliver(run_id)
    assert depot.run(run_id)["held_by"] == "breaker"
    depot.world.clock.move(hours=1)
    assert expire(depot) == 0
    depot.world.clock.move(hours=1)
    assert expire(depot) == 1


def test_a_backlog_that_nobody_holds_does_not_expire(depot: Depot) -> None:
    """It waits for us, not for anybody's decision: late is better than lost."""
    depot.one_run("http://127.0.0.1:9/", retry=POLICY)
    depot.world.clock.move(days=2)
    assert expire(depot) == 0


def test_what_is_kept_of_an_endpoint_goes_once_it_is_well_or_nobody_posts_to_it(depot: Depot) -> None:
    def origins() -> list[str]:
        maintain(depot.world.database, depot.world.clock, retention=timedelta(days=30), more_time=lambda: True)
        return [row[0] for row in depot.world.sql("select origin from endpoint order by 1")]

    with Receiver(script=FAILS) as well, Receiver(script=FAILS) as failing, Receiver(script=FAILS) as left:
        schedules = {each.url(): depot.schedule(each.url()) for each in (well, failing, left)}
        depot.world.clock.set("09:01:00")
        depot.deliver(*[depot.run_ids(schedule)[0] for schedule in schedules.values()])
        well.script = says(b"HTTP/1.1 204 X\r\n\r\n")
        depot.world.clock.set("09:02:00")
        depot.deliver(depot.run_ids(schedules[well.url()])[1])
        depot.world.delete(schedules[left.url()])
        assert len(origins()) == 3
        depot.world.clock.move(hours=23)
        assert len(origins()) == 3
        depot.world.clock.move(hours=2)
        assert origins() == [f"http://127.0.0.1:{failing.port}"]
