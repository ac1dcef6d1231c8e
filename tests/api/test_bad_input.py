"""Bad input is a 4xx that says which field and why, never a 5xx, and nothing is stored."""

import base64
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scheduler.store.connection import Login

from local.postgres import Server
from tests.api.client import Client
from tests.conftest import login_to
from tests.world import World

URL = "https://hook.example/path"
MINUTELY = {"cron": "* * * * *", "url": URL}
ID = b"6f1c1f0e-52d3-4a6b-9a6e-3d2d1c0b9a87"
PSEUDO_ZONES = ["localtime", "posixrules", "Factory", ":/etc/localtime", "right/UTC", "posix/UTC", "Etc/Unknown"]
NEARLY_ZONES = [
    ("europe/paris", "Europe/Paris"),
    ("EUROPE/PARIS", "Europe/Paris"),
    ("Europe/Paris ", "Europe/Paris"),
    ("US/Pacific-New", "US/Pacific"),
    ("CST", "America/Chicago"),
    ("BST", "Europe/London"),
    ("Asia/Beijing", "Asia/Shanghai"),
    ("GMT+5", "Etc/GMT"),
    ("UTC+2", "Etc/GMT"),
    ("+02:00", "Etc/GMT"),
    ("Z", "UTC"),
]


@pytest.fixture(scope="module")
def login(server: Server) -> Iterator[Login]:
    """One database for all of them: they leave nothing in it."""
    server.create_database("bad_input", template="carillon_template")
    yield login_to(server, "bad_input")
    server.drop_database("bad_input")


def stored(world: World) -> int:
    """How many schedules the test's tenant has."""
    return int(world.sql("select count(*) from schedule where tenant_id = :id", id=world.tenant_id)[0][0])


@pytest.mark.parametrize("zone", PSEUDO_ZONES, ids=lambda zone: f"ap-02 {zone}")
def test_a_zone_that_depends_on_the_host_is_refused(client: Client, world: World, zone: str) -> None:
    answer = client.post("/v1/schedules", MINUTELY | {"timezone": zone})
    assert (answer.status, answer.pointers) == (400, ["/timezone"])
    assert stored(world) == 0


@pytest.mark.parametrize(("zone", "near"), NEARLY_ZONES, ids=lambda text: f"ap-03 {text}")
def test_a_zone_that_is_nearly_a_name_is_refused_with_the_name(
    client: Client, world: World, zone: str, near: str
) -> None:
    answer = client.post("/v1/schedules", MINUTELY | {"timezone": zone})
    assert (answer.status, answer.pointers) == (400, ["/timezone"])
    assert near in answer.document["errors"][0]["detail"]
    assert stored(world) == 0


@pytest.mark.parametrize("zone", ["Europe/Kyiv", "Europe/Kiev", "Asia/Kolkata", "Asia/Calcutta", "UTC", "Etc/GMT+5"])
def test_a_zone_and_its_old_name_are_taken(client: Client, zone: str) -> None:
    assert client.create(timezone=zone)["timezone"] == zone


def test_a_zone_is_judged_for_a_rate_too(client: Client) -> None:
    answer = client.post("/v1/schedules", {"rate": "1 hour", "url": URL, "timezone": "Mars/Olympus"})
    assert answer.pointers == ["/timezone"]


BODIES = {
    "no body": None,
    "empty": "",
    "cut short": '{"cron": ',
    "no object": "[1]",
    "null": "null",
    "a name twice": '{"url": "a", "url": "b"}',
    "a name twice, deep": '{"payload": [{"a": {"b": 1, "b": 2}}]}',
    "NaN": '{"payload": NaN}',
    "Infinity": '{"payload": -Infinity}',
    "a number too large": '{"payload": 1e999}',
    "65 bits": '{"payload": 18446744073709551616}',
    "5000 digits": '{"payload": ' + "9" * 5000 + "}",
    "deep arrays": '{"payload": ' + "[" * 100_000 + "}",
    "65 levels": '{"payload": ' + "[" * 65 + "]" * 65 + "}",
    "deep objects": '{"a":' * 200 + "1" + "}" * 200,
    "a byte order mark": '\ufeff{"cron": "* * * * *"}',
    "no UTF-8": "\ud800",
    "a form": "cron=*&url=https",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_is_not_one_plain_object_is_refused(client: Client, world: World, body: str | None) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    before = stored(world)
    assert client.call("POST", "/v1/schedules", body=body).status == 400
    assert client.call("PATCH", path, body=body).status == 400
    assert stored(world) == before
    assert client.get(path).document["version"] == 1


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_no_body_whatever_makes_any_route_fail(
    client: Client, modules: dict[str, ModuleType], body: str | None
) -> None:
    run_id = "01a2a935-b900-7c3a-8d1e-5f2b7a904d6e"
    ids = {"schedule_id": run_id, "run_id": run_id, "key_id": run_id, "secret_id": run_id, "name": "n"}
    admin = client.may("read write admin")
    for route in modules["routes"].ROUTES:
        if route.method != "GET":
            answer = admin.call(route.method, route.path.format(**ids), body=body)
            assert answer.status < 500, route


@pytest.mark.parametrize("length", [262_145, 1_048_576])
@pytest.mark.parametrize("encoded", [False, True])
def test_a_body_that_is_too_large_is_not_read(client: Client, world: World, length: int, encoded: bool) -> None:
    body = "x" * length
    text = base64.b64encode(body.encode()).decode() if encoded else body
    assert client.call("POST", "/v1/schedules", body=text, base64_encoded=encoded).status == 413
    assert stored(world) == 0


def test_a_body_of_the_full_size_is_taken(client: Client) -> None:
    frame = json.dumps(MINUTELY | {"payload": ""})
    body = json.dumps(MINUTELY | {"payload": "x" * (262_144 - len(frame))})
    assert client.call("POST", "/v1/schedules", body=body).status == 201


def test_a_body_in_base64_is_read_and_bad_base64_refused(client: Client) -> None:
    encoded = base64.b64encode(json.dumps(MINUTELY).encode()).decode()
    assert client.call("POST", "/v1/schedules", body=encoded, base64_encoded=True).status == 201
    for text in ("*", base64.b64encode(b"\xff").decode()):
        assert client.call("POST", "/v1/schedules", body=text, base64_encoded=True).status == 400


@pytest.mark.parametrize(
    ("fields", "pointers"),
    [
        ({}, ["", "/url"]),
        ({"url": URL}, [""]),
        (MINUTELY | {"rate": "1 hour"}, ["/rate"]),
        (MINUTELY | {"rate": "1 hour", "at": "2027-01-01T00:00:00"}, ["/at", "/rate"]),
        (MINUTELY | {"cron": "61 * * * *"}, ["/cron"]),
        (MINUTELY | {"cron": "0 0 30 2 *"}, ["/cron"]),
        (MINUTELY | {"cron": 5}, ["/cron"]),
        ({"rate": "1 second", "url": URL}, ["/rate"]),
        ({"rate": "1 fortnight", "url": URL}, ["/rate"]),
        ({"at": "2026-12-24T18:00:00Z", "url": URL}, ["/at"]),
        ({"at": "2026-02-30T18:00:00", "url": URL}, ["/at"]),
        (MINUTELY | {"start_at": "2026-12-24"}, ["/start_at"]),
        (MINUTELY | {"start_at": "2026-12-24T18:00:00"}, ["/start_at"]),
        (MINUTELY | {"start_at": "2026-12-24T18:00:00.5Z"}, ["/start_at"]),
        (MINUTELY | {"start_at": "2026-12-24T18:00:00+24:00"}, ["/start_at"]),
        (MINUTELY | {"start_at": "2026-12-24T18:00:00+01:60"}, ["/start_at"]),
        (MINUTELY | {"start_at": "2026-12-24 18:00:00Z", "end_at": "2026-12-24T23:59:60Z"}, ["/end_at", "/start_at"]),
        (MINUTELY | {"start_at": "0001-01-01T00:00:00+14:00", "end_at": "9999-12-31T23:59:59-14:00"}, ["/end_at", "/start_at"]),
        (MINUTELY | {"start_at": 1798135200, "end_at": True}, ["/end_at", "/start_at"]),
        (MINUTELY | {"start_at": "2027-01-01T00:00:00Z", "end_at": "2026-12-31T23:00:00-01:00"}, ["/end_at"]),
        (MINUTELY | {"dst": {"gap": "jump", "overlap": 1, "other": 1}}, ["/dst/gap", "/dst/other", "/dst/overlap"]),
        (MINUTELY | {"dst": "skip"}, ["/dst"]),
        (MINUTELY | {"name": ""}, ["/name"]),
        (MINUTELY | {"name": "x" * 201}, ["/name"]),
        (MINUTELY | {"name": "a\x00b"}, ["/name"]),
        (MINUTELY | {"name": "\ud800"}, ["/name"]),
        (MINUTELY | {"name": "   "}, ["/name"]),
        (MINUTELY | {"name": "report ", "description": ""}, ["/description", "/name"]),
        (MINUTELY | {"payload": ["\udfff"]}, ["/payload"]),
        (
            MINUTELY | {"retry": {"max_attempts": 0, "factor": 11, "base_seconds": "1", "cap": 1, "max_age_seconds": 1e9}},
            ["/retry/base_seconds", "/retry/cap", "/retry/factor", "/retry/max_age_seconds", "/retry/max_attempts"],
        ),
        (
            MINUTELY | {"retry": {"backoff": "ladder", "delays_seconds": [0, 1, "x"], "max_attempts": 1}},
            ["/retry/delays_seconds/0", "/retry/delays_seconds/2", "/retry/max_attempts"],
        ),
        (MINUTELY | {"url": "http://hook.example/"}, ["/url"]),
        (MINUTELY | {"url": "https://169.254.169.254/latest"}, ["/url"]),
        (MINUTELY | {"url": "https://user:pass@hook.example/"}, ["/url"]),
        (MINUTELY | {"headers": {"Host": "a", "x y": "b"}}, ["/headers/Host", "/headers/x y"]),
        (MINUTELY | {"headers": {"X-N": 1, "X-C": "a\nb"}}, ["/headers/X-C", "/headers/X-N"]),
        (MINUTELY | {"headers": [["X-A", "1"]]}, ["/headers"]),
        (MINUTELY | {"Cron": "* * * * *", "a/b~c": 1}, ["/Cron", "/a~1b~0c"]),
        ({"cron": "x", "timezone": "x", "url": "x", "name": 1, "no": None}, ["/cron", "/name", "/no", "/timezone", "/url"]),
    ],
    ids=lambda value: json.dumps(value)[:60],
)  # fmt: skip
def test_every_bad_field_is_named_at_once(
    client: Client, world: World, fields: dict[str, Any], pointers: list[str]
) -> None:
    answer = client.post("/v1/schedules", fields)
    assert (answer.status, answer.pointers) == (400, pointers)
    assert stored(world) == 0


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"cron": None}, [""]),
        ({"url": None}, ["/url"]),
        ({"cron": "0 0 * * *", "rate": "1 hour"}, ["/rate"]),
        ({"version": 7}, ["/version"]),
        ({"timezone": "Nowhere", "headers": {"Date": "now"}}, ["/headers/Date", "/timezone"]),
        ({"at": "2020-01-01T00:00:00"}, ["/at"]),
    ],
)
def test_an_edit_is_judged_like_a_creation(client: Client, changes: dict[str, Any], pointers: list[str]) -> None:
    made = client.create()
    path = f"/v1/schedules/{made['id']}"
    answer = client.patch(path, changes)
    assert (answer.status, answer.pointers) == (400, pointers)
    assert client.get(path).document == made


def test_an_answer_has_room_for_any_number_of_bad_fields(client: Client) -> None:
    answer = client.post("/v1/schedules", {f"field{number}": 1 for number in range(5_000)})
    assert answer.status == 400
    assert len(answer.document["errors"]) == 100


@pytest.mark.parametrize(
    "text",
    ["1", "no-id", "{6f1c1f0e-52d3-4a6b-9a6e-3d2d1c0b9a87}", "6f1c1f0e52d34a6b9a6e3d2d1c0b9a87", "%00", "\ud800"],
)
def test_an_id_that_is_none_is_not_found(client: Client, text: str) -> None:
    assert client.get(f"/v1/schedules/{text}").status == 404
    assert client.get(f"/v1/runs/{text}").status == 404


@pytest.mark.parametrize("path", ["/v1/schedules", "/v1/schedules/{id}/runs"])
@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "٣"}, "limit"),
        ({"limit": "9" * 5000}, "limit"),
        ({"cursor": ""}, "cursor"),
        ({"cursor": "x"}, "cursor"),
        ({"cursor": "é"}, "cursor"),
        ({"cursor": "bnVsbA"}, "cursor"),
        ({"cursor": base64.urlsafe_b64encode(b'["2026-12-01T00:00:00","x"]').decode()}, "cursor"),
        ({"cursor": base64.urlsafe_b64encode(b"[" * 140).decode()}, "cursor"),
        ({"cursor": "A" * 100_000}, "cursor"),
        ({"cursor": base64.urlsafe_b64encode(b'["keys","2026-12-01T00:00:00+00:00","%s"]' % ID).decode()}, "cursor"),
        ({"offset": "1"}, "offset"),
    ],
)
def test_a_query_that_can_not_be_taken_is_refused(
    client: Client, path: str, query: dict[str, str], parameter: str
) -> None:
    answer = client.get(path.replace("{id}", client.create()["id"]), **query)
    assert (answer.status, answer.pointers) == (400, [parameter])


@pytest.mark.parametrize("text", ["\x00", "a\x00", "\ud800", "a\nb", "x" * 201])
def test_a_prefix_that_no_name_begins_with_is_refused(client: Client, text: str) -> None:
    answer = client.get("/v1/schedules", name_prefix=text)
    assert (answer.status, answer.pointers) == (400, ["name_prefix"])


def test_every_bad_parameter_is_named_at_once(client: Client) -> None:
    answer = client.get("/v1/runs", limit="0", status="x", trigger="", scheduled_from="now", other="1", schedule_id="7")
    names = ["limit", "other", "schedule_id", "scheduled_from", "status", "trigger"]
    assert (answer.status, answer.pointers) == (400, names)


def test_a_change_that_says_something_in_its_query_is_not_made(
    client: Client, modules: dict[str, ModuleType], world: World
) -> None:
    made = client.create()
    ids = {"schedule_id": made["id"], "run_id": made["id"], "key_id": made["id"], "secret_id": made["id"], "name": "n"}
    before = stored(world)
    for route in modules["routes"].ROUTES:
        if route.method != "GET":
            answer = client.may(route.scope).call(
                route.method, route.path.format(**ids), body=json.dumps(MINUTELY), query={"dry_run": "true"}
            )
            assert (answer.status, answer.pointers) == (400, ["dry_run"]), route
    assert stored(world) == before


def test_a_parameter_that_is_given_twice_is_refused(client: Client) -> None:
    answer = client.get("/v1/schedules", status=["active", "paused"], limit="1")
    assert (answer.status, answer.pointers) == (400, ["status"])
    assert "commas" in answer.document["errors"][0]["detail"]


def test_a_body_that_begins_with_a_byte_order_mark_is_told_so(client: Client) -> None:
    answer = client.call("POST", "/v1/schedules", body="\ufeff" + json.dumps(MINUTELY))
    assert "byte order mark" in answer.document["errors"][0]["detail"]


@pytest.mark.parametrize("number", ["5", "5.0", "5e0", "50e-1"])
def test_a_whole_number_may_be_written_in_any_way(client: Client, number: str) -> None:
    body = json.dumps(MINUTELY)[:-1] + f', "jitter_seconds": {number}}}'
    assert client.call("POST", "/v1/schedules", body=body).document["jitter_seconds"] == 5


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain; charset=utf-16", ""])
def test_a_body_is_json_whatever_its_content_type_says(client: Client, content_type: str) -> None:
    headers = {"content-type": content_type}
    assert client.call("POST", "/v1/schedules", body=json.dumps(MINUTELY), headers=headers).status == 201


_TEXTS = st.text(st.characters(codec=None), max_size=20) | st.sampled_from(["UTC", "* * * * *", "1 hour", URL])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)
_FIELDS = ("name", "cron", "rate", "at", "timezone", "dst", "start_at", "end_at", "url", "headers", "payload", "other")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(_FIELDS) | _TEXTS, _JSON, max_size=6))
def test_no_document_whatever_is_our_fault(client: Client, document: dict[str, Any]) -> None:
    assert client.post("/v1/schedules", document).status < 500
