"""What an answer does to a run and to its schedule: the schedule's own retry policy, refusals, and 410."""

from datetime import timedelta

import pytest
from scheduler.disabling import carry_out
from scheduler.schedules import Schedule
from scheduler.webhook.retry import Exponential, Ladder, RetryPolicy

from tests.depot import Depot
from tests.http.receiver import Receiver, says
from tests.world import T0


def answers(status: int, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", *headers, "Content-Length: 0"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


LADDER = RetryPolicy(
    backoff=Ladder(delays=(timedelta(seconds=7), timedelta(minutes=4))), max_attempts=3, max_age=timedelta(hours=1)
)
ONCE = RetryPolicy(
    backoff=Exponential(base=timedelta(seconds=1), factor=2, cap=timedelta(seconds=9)),
    max_attempts=1,
    max_age=timedelta(hours=1),
)


def the_schedule(depot: Depot) -> Schedule:
    [[schedule_id]] = depot.world.sql("select id from schedule")
    return depot.world.scheduling.get(depot.world.tenant_id, schedule_id)


def test_a_schedules_own_ladder_says_when_and_how_often_its_runs_are_tried_again(depot: Depot) -> None:
    with Receiver(script=says(answers(500))) as receiver:
        run_id = depot.one_run(receiver.url(), retry=LADDER)
        for wait in (timedelta(seconds=7), timedelta(minutes=4)):
            before = depot.world.clock.now
            depot.deliver(run_id)
            assert wait <= depot.run(run_id)["next_attempt_at"] - before < wait + timedelta(seconds=3)
            depot.world.clock.set(depot.run(run_id)["next_attempt_at"])
        depot.deliver(run_id)
    assert (depot.run(run_id)["reason"], len(receiver.requests)) == ("exhausted", 3)


def test_a_policy_of_one_attempt_is_never_tried_again(depot: Depot) -> None:
    with Receiver(script=says(answers(503))) as receiver:
        run_id = depot.one_run(receiver.url(), retry=ONCE)
        assert depot.deliver(run_id) == []
    assert depot.run(run_id)["reason"] == "exhausted"


def test_a_run_older_than_its_policys_age_is_not_tried_again(depot: Depot) -> None:
    with Receiver(script=says(answers(503))) as receiver:
        run_id = depot.one_run(receiver.url(), retry=LADDER)
        depot.world.clock.move(hours=1)
        depot.deliver(run_id)
    assert depot.run(run_id)["reason"] == "exhausted"


@pytest.mark.parametrize(("wanted", "state"), [(True, "queued"), (False, "failed")])
def test_a_schedule_says_whether_its_ordinary_client_errors_are_tried_again(
    depot: Depot, wanted: bool, state: str
) -> None:
    with Receiver(script=says(answers(404))) as receiver:
        run_id = depot.one_run(receiver.url(), retry_client_errors=wanted)
        depot.deliver(run_id)
    assert depot.run(run_id)["state"] == state


@pytest.mark.parametrize("status", [302, 400, 429, 500])
def test_a_receiver_can_stop_the_retries(depot: Depot, status: int) -> None:
    with Receiver(script=says(answers(status, "X-No-Retry: true"))) as receiver:
        run_id = depot.one_run(receiver.url())
        assert depot.deliver(run_id) == []
    assert (depot.run(run_id)["state"], depot.run(run_id)["reason"]) == ("failed", "rejected")
    assert the_schedule(depot).status == "active"


def test_a_retry_after_is_kept_within_the_policys_bounds(depot: Depot) -> None:
    with Receiver(script=says(answers(503, "Retry-After: 999999999"))) as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id)
    wait = depot.run(run_id)["next_attempt_at"] - T0
    assert timedelta(hours=6) <= wait < timedelta(hours=6, seconds=3)


def test_a_410_ends_the_run_and_disables_the_schedule(depot: Depot) -> None:
    with Receiver(script=says(answers(410))) as receiver:
        schedule = depot.schedule(receiver.url())
        depot.world.clock.set("09:01:00")
        [first, second] = depot.run_ids(schedule)
        assert depot.deliver(first) == []
        assert (depot.run(first)["state"], depot.run(first)["reason"]) == ("failed", "rejected")
        assert the_schedule(depot).status == "disabled"
        assert depot.run_ids(schedule) == [first], "what was planned for later is gone"
        depot.world.clock.move(minutes=2)
        depot.world.tick()
        assert depot.deliver(second) == []
    assert len(receiver.requests) == 1
    assert sorted(depot.events()) == ["schedule.disabled", "schedule.run.failed"]
    [[change, by]] = depot.world.sql("select change, changed_by from schedule_version where version = 2")
    assert (change, by) == ("disabled", "outcome: gone")


def test_a_disabled_schedule_fires_again_once_it_is_resumed(depot: Depot) -> None:
    with Receiver(script=says(answers(410))) as receiver:
        schedule = depot.schedule(receiver.url())
        depot.world.clock.set("09:01:00")
        depot.deliver(depot.run_ids(schedule)[0])
        depot.world.clock.set("09:30:30")
        depot.world.resume(schedule)
        depot.world.tick()
    assert depot.world.planned(schedule) == ["09:01:00", "09:31:00", "09:32:00"]


def test_an_order_that_its_worker_did_not_live_to_carry_out_is_the_planners(depot: Depot) -> None:
    with Receiver(script=says(answers(410))) as receiver:
        schedule = depot.schedule(receiver.url())
        depot.world.clock.set("09:01:00")
        depot.remaining_after_posts = 0.0
        depot.deliver(depot.run_ids(schedule)[0])
        assert the_schedule(depot).status == "active"
        assert carry_out(depot.world.scheduling, more_time=lambda: True) == 1
    assert the_schedule(depot).status == "disabled"
    assert carry_out(depot.world.scheduling, more_time=lambda: True) == 0


def test_a_change_that_the_tenant_made_after_the_outcome_overrules_it(depot: Depot) -> None:
    with Receiver(script=says(answers(410))) as receiver:
        schedule = depot.schedule(receiver.url())
        depot.world.clock.set("09:01:00")
        depot.remaining_after_posts = 0.0
        depot.deliver(depot.run_ids(schedule)[0])
        depot.world.clock.move(seconds=30)
        depot.world.edit(schedule, cron="*/2 * * * *")
        carry_out(depot.world.scheduling, more_time=lambda: True)
    assert the_schedule(depot).status == "active"
    assert depot.world.sql("select count(*) from disabling") == [[0]]


def test_an_outcome_after_the_tenants_change_disables_all_the_same(depot: Depot) -> None:
    """Though an older order, which the change overrules, was not carried out yet."""
    with Receiver(script=says(answers(410))) as receiver:
        schedule = depot.schedule(receiver.url())
        depot.world.clock.set("09:01:00")
        depot.remaining_after_posts = 0.0
        depot.deliver(depot.run_ids(schedule)[0])
        depot.world.clock.move(seconds=30)
        depot.world.edit(schedule, cron="*/2 * * * *")
        depot.world.clock.set("09:02:00")
        depot.remaining_after_posts = None
        depot.deliver(depot.run_ids(schedule)[1])
    assert the_schedule(depot).status == "disabled"
    assert depot.world.sql("select count(*) from disabling") == [[0]]


def test_an_order_whose_calendar_can_not_be_computed_stays_and_stops_no_other(depot: Depot) -> None:
    with Receiver(script=says(answers(410))) as receiver:
        broken, sound = depot.schedule(receiver.url()), depot.schedule(receiver.url(), cron="*/2 * * * *")
        depot.remaining_after_posts = 0.0
        depot.world.clock.set("09:02:00")
        depot.deliver(*(depot.run_ids(schedule)[0] for schedule in (broken, sound)))
        depot.world.sql("update calendar set timezone = 'Nowhere/Gone' where id = :id", id=broken.calendar_id)
        depot.world.clock.set("09:10:00")
        assert carry_out(depot.world.scheduling, more_time=lambda: True) == 1
    assert depot.world.scheduling.get(depot.world.tenant_id, sound.id).status == "disabled"
    assert depot.world.sql("select schedule_id from disabling") == [[broken.id]]


def test_an_order_for_a_schedule_that_is_deleted_meanwhile_is_dropped(depot: Depot) -> None:
    with Receiver(script=says(answers(410))) as receiver:
        schedule = depot.schedule(receiver.url())
        depot.world.clock.set("09:01:00")
        depot.remaining_after_posts = 0.0
        depot.deliver(depot.run_ids(schedule)[0])
        depot.world.delete(schedule)
        carry_out(depot.world.scheduling, more_time=lambda: True)
    assert depot.world.sql("select count(*) from disabling") == [[0]]
