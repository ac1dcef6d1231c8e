"""Dispatch, sweep and dead letters: every planned run reaches the queue, whatever is lost on the way."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from moto.sqs.models import sqs_backends
from scheduler.dead_letters import put_all_back
from scheduler.delivery import Message
from scheduler.dispatch import sweep
from scheduler.runs import scheduled_for_of
from scheduler.store.connection import Database

from tests.depot import Depot, RunQueue
from tests.http.receiver import Receiver
from tests.world import T0, World, so_often

TICK = Path(__file__).with_name("killed_tick.py")


def delays(runs: RunQueue, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The entries that are sent from here on."""
    entries: list[dict[str, object]] = []
    send = runs.client.send_message_batch

    def look(**words: object) -> object:
        entries.extend(words["Entries"])  # type: ignore[arg-type]
        return send(**words)

    monkeypatch.setattr(runs.client, "send_message_batch", look)
    return entries


def test_a_planned_run_is_sent_with_the_seconds_that_are_left_rounded_down(
    depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = delays(depot.runs, monkeypatch)
    depot.schedule("http://127.0.0.1:9/", cron="* * * * *")
    assert depot.dispatch().taken == 2
    assert [entry["DelaySeconds"] for entry in entries] == [59, 119]
    assert {entry["MessageGroupId"] for entry in entries} == {str(depot.world.tenant_id)}
    assert depot.world.sql("select distinct state, sends from job_run") == [["queued", 1]]
    assert depot.dispatch().taken == 0


def test_a_run_due_behind_the_look_ahead_stays_planned(depot: Depot) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    depot.world.sql("update job_run set next_attempt_at = :later", later=T0 + timedelta(minutes=3))
    assert depot.dispatch().taken == 0
    depot.world.clock.move(minutes=2)
    assert depot.dispatch().taken == 1
    assert depot.run(run_id)["state"] == "queued"


def test_many_runs_are_sent_in_pages_each_once(depot: Depot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.dispatch._PAGE", 7)
    for _ in range(15):
        depot.schedule("http://127.0.0.1:9/", cron="* * * * *")
    assert depot.dispatch().taken == 30
    assert depot.runs.count() == 30


def test_what_the_queue_refuses_stays_planned_for_the_next_tick(depot: Depot, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    monkeypatch.setattr(depot.runs.client, "send_message_batch", lambda **_: {"Failed": [{"Id": "0"}]})
    assert asdict(depot.dispatch()) == {"taken": 0, "refused": 1, "held_back": True}
    assert depot.run(run_id)["state"] == "planned"


def test_a_message_can_overtake_its_mark(depot: Depot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is delivered, and fails into a parked wait, while its dispatcher is still about to mark it queued."""
    run_id = depot.one_run("http://127.0.0.1:9/")
    send = depot.runs.client.send_message_batch

    def overtake(**words: object) -> object:
        answer = send(**words)
        depot.deliver(run_id, receives=3)
        return answer

    monkeypatch.setattr(depot.runs.client, "send_message_batch", overtake)
    depot.dispatch()
    assert depot.run(run_id)["state"] == "planned"
    assert depot.run(run_id)["attempt"] == 1


def test_a_run_that_is_cancelled_while_it_is_sent_stays_cancelled(
    depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    [[schedule_id]] = depot.world.sql("select schedule_id from job_run")
    send = depot.runs.client.send_message_batch

    def delete_meanwhile(**words: object) -> object:
        depot.world.scheduling.delete(depot.world.tenant_id, schedule_id, changed_by="test")
        return send(**words)

    monkeypatch.setattr(depot.runs.client, "send_message_batch", delete_meanwhile)
    depot.dispatch()
    assert depot.run(run_id)["state"] == "cancelled"


def test_a_purged_queue_is_filled_again_by_the_sweep(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.dispatch()
        depot.runs.client.purge_queue(QueueUrl=depot.runs.url)
        depot.world.clock.move(minutes=4, seconds=58)
        assert depot.sweep().taken == 0
        depot.world.clock.move(seconds=3)
        assert depot.sweep().taken == 1
        messages = depot.runs.receive()
        assert depot.courier().deliver(messages) == []
    assert depot.run(run_id)["state"] == "succeeded"


def test_a_backlog_is_not_sent_again_each_minute(depot: Depot) -> None:
    depot.one_run("http://127.0.0.1:9/")
    depot.dispatch()
    sent = []
    for _ in range(60):
        depot.world.clock.move(minutes=1)
        sent.append(depot.sweep().taken)
    assert sum(sent) == 3


def test_a_run_that_was_put_back_often_is_not_lost_for_days(depot: Depot) -> None:
    depot.one_run("http://127.0.0.1:9/")
    depot.world.sql("update job_run set sends = 20")
    depot.dispatch()
    depot.world.clock.move(minutes=81)
    assert depot.sweep().taken == 1


def test_a_lost_run_that_is_locked_is_sent_once_a_sweep(depot: Depot, connect: Callable[[], Database]) -> None:
    """Its mark fails, so that it looks as lost as before."""
    run_id = depot.one_run("http://127.0.0.1:9/")
    depot.dispatch()
    depot.world.clock.move(minutes=6)
    with connect().transaction() as holder:
        at = scheduled_for_of(run_id)
        holder.run("redelivery.lock", tenant_id=depot.world.tenant_id, id=run_id, scheduled_for=at)
        words = {"more_time": so_often(9)}
        assert sweep(depot.world.database, depot.runs.queue, depot.world.clock, **words).taken == 1


def test_a_lease_that_ran_out_is_sent_again(depot: Depot) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    depot.dispatch()
    depot.claim(run_id)
    assert depot.sweep().taken == 0
    depot.world.clock.move(seconds=31)
    assert depot.sweep().taken == 1
    assert depot.run(run_id)["state"] == "queued"


def test_the_dead_letter_queue_decides_nothing(depot: Depot) -> None:
    with Receiver() as receiver:
        unfinished, held, finished = (depot.one_run(receiver.url(f"/{i}")) for i in range(3))
        depot.dispatch()
        depot.deliver(finished)
        depot.claim(held)
        bodies = [str(unfinished), str(held), str(finished), "nonsense"]
        returned = put_all_back(depot.world.database, depot.world.clock, bodies, lambda *_, **__: None)
    assert returned == {unfinished}
    assert [depot.run(run_id)["state"] for run_id in (unfinished, held, finished)] == [
        "planned",
        "delivering",
        "succeeded",
    ]
    assert depot.dispatch().taken == 1


def test_a_database_that_is_away_for_all_receives_of_a_message_loses_no_run(depot: Depot) -> None:
    """Five receives keep the message, the queue gives it up, and its run is planned again and delivered."""
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.dispatch()
        depot.world.sql("alter table job_run rename to away")
        for receives in range(1, 6):
            assert depot.deliver(run_id, receives=receives) == [str(run_id)]
        depot.world.sql("alter table away rename to job_run")
        put_all_back(depot.world.database, depot.world.clock, [str(run_id)], lambda *_, **__: None)
        assert depot.dispatch().taken == 1
        depot.deliver(run_id)
    assert depot.run(run_id)["state"] == "succeeded"
    assert receiver.requests[0].headers["x-attempt"] == "1"


@pytest.mark.parametrize("moment", ["before-send", "after-send"])
def test_a_planner_killed_around_its_send_loses_no_run_and_doubles_none(
    world: World, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL between commit and send, and between send and mark; the next tick, in a new process, sends what is left."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*server.get_host_and_port()))
        runs = RunQueue.make()
        schedules = [world.create(cron="* * * * *") for _ in range(12)]
        world.clock.set("09:05:00")
        assert tick(world, runs, moment) == -signal.SIGKILL
        assert (runs.count() > 0) is (moment == "after-send")
        assert world.sql("select count(*) from job_run where state = 'queued'") == [[0]]
        assert tick(world, runs, "never") == 0
        bodies = {message.body for message in iter_all(runs)}
        owed = {str(row[0]) for row in world.sql("select id from job_run")}
        assert bodies == owed
        for schedule in schedules:
            assert world.planned(schedule) == [f"09:0{minute}:00" for minute in range(1, 8)]
    finally:
        server.stop()


def tick(world: World, runs: RunQueue, moment: str) -> int:
    """One whole tick in a process of its own, killed at `moment`; its exit status."""
    login = world.login
    words = [login.host, str(login.port), login.database, login.user, login.password]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(TICK), *words, runs.url, world.clock.now.isoformat(), moment],
        env=environment,
        check=False,
        timeout=60,
    )
    return done.returncode


def iter_all(runs: RunQueue) -> list[Message]:
    """All messages, the delayed ones too: their delay is ended by hand."""
    found: list[Message] = []
    for account in sqs_backends.values():
        for queue in account["eu-west-1"].queues.values():
            for message in queue._messages:
                message.delayed_until = 0
    while messages := runs.receive():
        found.extend(messages)
    return found
