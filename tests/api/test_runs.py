"""Runs over HTTP: a schedule's history, a page at a time, and each run with its attempts."""

import json
from hashlib import sha256
from typing import Any

from tests.api.client import Client
from tests.world import World

_ATTEMPT = """
insert into attempt (run_id, scheduled_for, attempt, started_at, lateness_ms, outcome, stage, status, detail,
    response_headers, response_body, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms)
select id, scheduled_for, :attempt, scheduled_for + interval '40 milliseconds', 40, :outcome, :stage, :status, :detail,
    cast(:headers as jsonb), :body, :dns, :connect, :tls, :first_byte, :total
from job_run where id = cast(:run_id as uuid)
"""


def runs_of(client: Client, schedule: dict[str, Any], **query: str) -> dict[str, Any]:
    answer = client.get(f"/v1/schedules/{schedule['id']}/runs", **query)
    assert answer.status == 200
    document: dict[str, Any] = answer.document
    return document


def test_runs_are_listed_newest_first(client: Client, world: World) -> None:
    made = client.create()
    world.clock.move(minutes=2)
    world.tick()
    times = [run["scheduled_for"] for run in runs_of(client, made)["runs"]]
    assert times == [f"2026-12-01T09:0{minute}:00Z" for minute in (4, 3, 2, 1)]


def test_pages_meet_without_a_gap_or_an_overlap(client: Client, world: World) -> None:
    made = client.create()
    world.clock.move(minutes=20)
    world.tick()
    everything = runs_of(client, made)["runs"]
    seen: list[dict[str, Any]] = []
    page = runs_of(client, made, limit="4")
    while page["next_cursor"]:
        seen += page["runs"]
        page = runs_of(client, made, limit="4", cursor=page["next_cursor"])
    assert seen + page["runs"] == everything
    assert len(everything) == 22


def test_a_run_carries_the_key_that_its_receiver_sees(client: Client) -> None:
    made = client.create()
    for run in runs_of(client, made)["runs"]:
        assert run["idempotency_key"] == sha256(f"{made['id']}{run['scheduled_for']}".encode()).hexdigest()


def test_an_unfinished_run_says_when_it_is_tried_next_and_a_finished_one_when_it_ended(
    client: Client, world: World
) -> None:
    later, sooner = runs_of(client, client.create())["runs"]
    assert (later["state"], later["next_attempt_at"], later["ended_at"]) == ("queued", "2026-12-01T09:02:00Z", None)
    world.sql(
        "update job_run set state = 'failed', reason = 'exhausted', ended_at = :now where id = cast(:id as uuid)",
        id=sooner["id"],
        now=world.clock.now,
    )
    run = client.get(f"/v1/runs/{sooner['id']}").document
    assert (run["state"], run["reason"]) == ("failed", "exhausted")
    assert (run["next_attempt_at"], run["ended_at"]) == (None, "2026-12-01T09:00:00.500000Z")


def test_a_run_that_was_never_tried_has_no_attempts(client: Client) -> None:
    listed = runs_of(client, client.create())["runs"][0]
    assert client.get(f"/v1/runs/{listed['id']}").document == listed | {"attempts": []}


def test_an_attempt_says_how_far_it_came_and_what_was_answered(client: Client, world: World) -> None:
    run_id = runs_of(client, client.create())["runs"][-1]["id"]
    answered = {"stage": "status", "status": 503, "detail": None, "body": "try later\ufffd"}
    phases = {"dns": 2, "connect": 11, "tls": 19, "first_byte": 31, "total": 64}
    headers = json.dumps([["Content-Type", "text/plain"], ["Set-Cookie", "[redacted]"]])
    world.sql(_ATTEMPT, run_id=run_id, attempt=1, outcome="retrying", headers=headers, **answered, **phases)
    silent = {"stage": "dns", "status": None, "detail": "no such host", "body": ""}
    nothing = {"dns": 2, "connect": None, "tls": None, "first_byte": None, "total": 2}
    world.sql(_ATTEMPT, run_id=run_id, attempt=3, outcome="failed", headers="[]", **silent, **nothing)
    first, last = client.get(f"/v1/runs/{run_id}").document["attempts"]
    assert first == {
        "attempt": 1,
        "started_at": "2026-12-01T09:01:00.040000Z",
        "lateness_ms": 40,
        "outcome": "retrying",
        "stage": "status",
        "status": 503,
        "detail": None,
        "timings": {"dns_ms": 2, "connect_ms": 11, "tls_ms": 19, "first_byte_ms": 31, "total_ms": 64},
        "response": {
            "headers": [{"name": "Content-Type", "value": "text/plain"}, {"name": "Set-Cookie", "value": "[redacted]"}],
            "body": "try later\ufffd",
        },
    }
    assert (last["attempt"], last["detail"], last["response"]) == (3, "no such host", None)
    assert last["timings"]["connect_ms"] is None


def test_a_deleted_schedules_runs_can_be_read_by_their_ids(client: Client, world: World) -> None:
    made = client.create()
    world.clock.move(minutes=1)
    client.delete(f"/v1/schedules/{made['id']}")
    ((run_id,),) = world.sql("select id from job_run")
    run = client.get(f"/v1/runs/{run_id}").document
    assert (run["scheduled_for"], run["state"], run["reason"]) == ("2026-12-01T09:01:00Z", "cancelled", "deleted")


def test_an_id_with_no_run_is_not_found(client: Client) -> None:
    assert client.get("/v1/runs/01a2a935-b900-7c3a-8d1e-5f2b7a904d6e").status == 404
    assert client.get("/v1/runs/ffffffff-ffff-7fff-bfff-ffffffffffff").status == 404
    assert client.get("/v1/runs/6f1c1f0e-52d3-4a6b-9a6e-3d2d1c0b9a87").status == 404


def ended(world: World, run_id: str, state: str = "failed", reason: str | None = "exhausted") -> None:
    """Ends a run as its delivery would."""
    world.sql(
        "update job_run set state = :state, reason = :reason, failures = 3, ended_at = :now"
        " where id = cast(:id as uuid)",
        state=state,
        reason=reason,
        now=world.clock.now,
        id=run_id,
    )


def test_a_run_is_redelivered_at_once(client: Client, world: World) -> None:
    run = runs_of(client, client.create())["runs"][-1]
    world.clock.move(minutes=2)
    ended(world, run["id"])
    answer = client.post(f"/v1/runs/{run['id']}/redeliver")
    assert answer.status == 200
    assert (answer.document["state"], answer.document["failures"]) == ("planned", 0)
    assert answer.document["idempotency_key"] == run["idempotency_key"]
    assert client.post(f"/v1/runs/{run['id']}/redeliver").status == 409


def test_a_run_is_cancelled_once(client: Client) -> None:
    run = runs_of(client, client.create())["runs"][-1]
    answer = client.post(f"/v1/runs/{run['id']}/cancel")
    assert (answer.status, answer.document["state"], answer.document["reason"]) == (200, "cancelled", "by_hand")
    assert client.post(f"/v1/runs/{run['id']}/cancel").status == 409


def test_many_runs_are_redelivered_by_a_filter(client: Client, world: World) -> None:
    runs = runs_of(client, client.create())["runs"]
    for run in runs:
        ended(world, run["id"])
    world.clock.move(minutes=5)
    body = {"filter": {"scheduled_until": "2026-12-01T09:02:00Z"}, "dry_run": True}
    assert client.post("/v1/redeliveries", body).document == {"matched": 1, "redelivered": 0, "dry_run": True}
    body = {"filter": {"state": "failed", "reason": "exhausted"}}
    assert client.post("/v1/redeliveries", body).document == {"matched": 2, "redelivered": 2, "dry_run": False}
    assert client.stranger().post("/v1/redeliveries", body).document["matched"] == 0


def test_a_filter_that_can_not_be_taken_is_refused_field_by_field(client: Client) -> None:
    body = {
        "filter": {
            "state": "planned",
            "reason": 7,
            "schedule_id": "x",
            "scheduled_from": "yesterday",
            "scheduled_until": 5,
            "who/what": 1,
        },
        "dry_run": "yes",
        "more": None,
    }
    answer = client.post("/v1/redeliveries", body)
    assert answer.status == 400
    assert answer.pointers == sorted(
        ["/dry_run", "/more", *(f"/filter/{name}" for name in body["filter"] if "/" not in name), "/filter/who~1what"]
    )


def test_a_filter_says_what_it_means(client: Client) -> None:
    refused = [
        ({}, ["/filter"]),
        ({"filter": {}}, ["/filter"]),
        ({"filter": {"state": "succeeded"}}, ["/filter/schedule_id"]),
        (
            {"filter": {"scheduled_from": "2026-12-01T09:00:00Z", "scheduled_until": "2026-12-01T09:00:00Z"}},
            ["/filter/scheduled_until"],
        ),
    ]
    for body, pointers in refused:
        answer = client.post("/v1/redeliveries", body)
        assert (answer.status, answer.pointers) == (400, pointers)
