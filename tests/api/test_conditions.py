"""Changes that are made only in the state that was read, and reads of what has not changed."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
from scheduler.tenants import find_key

from tests.api.client import Answer, Client
from tests.api.conftest import Connect
from tests.api.contract import Contract
from tests.api.things import (
    CHANGES,
    HOURLY,
    LIST,
    NAMED,
    Thing,
    a_key,
    a_list,
    a_named_schedule,
    a_run,
    a_schedule,
    an_old_secret,
)
from tests.world import World

WORDS = [" ".join(each) for each in CHANGES]


@pytest.fixture
def admin(client: Client) -> Client:
    return client.may("read write admin")


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A thing that is there, with the change that is to be made to it."""

    client: Client
    thing: Thing
    method: str
    path: str
    body: str | None

    def change(self, client: Client | None = None, **headers: str) -> Answer:
        return (client or self.client).call(self.method, self.path, body=self.body, headers=headers)

    @property
    def etag(self) -> str:
        return self.client.get(self.thing.path).headers["ETag"]


def case_of(route: tuple[str, str], client: Client, world: World) -> Case:
    make, suffix, document = CHANGES[route]
    thing = make(client, world)
    world.clock.move(seconds=1)
    body = None if document is None else json.dumps(document)
    return Case(client=client, thing=thing, method=route[0], path=thing.path + suffix, body=body)


@pytest.fixture(params=CHANGES, ids=WORDS)
def case(admin: Client, world: World, request: pytest.FixtureRequest) -> Case:
    return case_of(request.param, admin, world)


def test_these_are_all_routes_that_change_one_thing(modules: dict[str, ModuleType], contract: Contract) -> None:
    routes = {(route.method, route.path) for route in modules["routes"].ROUTES if route.method != "GET"}
    conditional = {(route.method, route.path) for route in modules["routes"].ROUTES if route.conditional}
    assert conditional & routes == set(CHANGES)
    said = set()
    for method, path in routes:
        parameters = contract.document["paths"][path][method.lower()].get("parameters", [])
        if any(contract.resolve(each)["name"] == "If-Match" for each in parameters):
            said.add((method, path))
    assert said == set(CHANGES)


def test_a_change_in_the_state_that_was_read_is_made(case: Case) -> None:
    assert case.change(If_Match=case.etag).status < 300


@pytest.mark.parametrize("tags", ["*", '"a,b", W/"c" ,, {}', "{},"])
def test_a_change_in_any_of_several_states_is_made(case: Case, tags: str) -> None:
    assert case.change(If_Match=tags.replace("{}", case.etag)).status < 300


def test_a_change_in_another_state_than_the_one_that_was_read_is_not_made(case: Case) -> None:
    etag = case.etag
    case.thing.meanwhile()
    before = case.client.get(case.thing.path)
    assert before.headers["ETag"] != etag
    refused = case.change(If_Match=etag)
    assert (refused.status, refused.document["type"]) == (412, "urn:problem-type:carillon:precondition-failed")
    assert case.client.get(case.thing.path).headers["ETag"] == before.headers["ETag"]


@pytest.mark.parametrize("tag", ["W/{}", '"other"', '"1"'])
def test_neither_a_weak_tag_nor_a_strange_one_is_any_state(case: Case, tag: str) -> None:
    etag = case.etag
    assert case.change(If_Match=tag.replace("{}", etag)).status == 412
    assert case.etag == etag


@pytest.mark.parametrize("tag", ["1", '"1', "", '"1" "2"', '*, "1"'])
def test_a_tag_that_is_none_is_refused(case: Case, tag: str) -> None:
    answer = case.change(If_Match=tag)
    assert (answer.status, answer.document["errors"][0]["header"]) == (400, "If-Match")


def test_what_is_there_is_not_changed_by_one_who_wants_to_make_it(case: Case) -> None:
    etag = case.etag
    assert case.change(If_None_Match="*").status == 412
    assert case.change(If_None_Match="*", If_Match=etag).status == 400
    assert case.change(If_None_Match=etag).status == 400
    assert case.etag == etag


@pytest.mark.parametrize(("path", "document"), [(NAMED, HOURLY), (LIST, {"dates": []})])
def test_what_is_not_there_is_made_by_one_who_wants_to_make_it_alone(client: Client, path: str, document: Any) -> None:
    for tag in ("*", '"5be1d1ae2b05e8b1-0f343b0931126a20"'):
        assert client.put(path, document, If_Match=tag).status == 412
    assert client.get(path).status == 404
    assert client.put(path, document, If_None_Match="*").status == 201
    assert client.put(path, document, If_None_Match="*").status == 412


def test_a_name_that_came_to_stand_for_another_schedule_is_another_state(client: Client) -> None:
    first = client.put(NAMED, HOURLY)
    client.delete(f"/v1/schedules/{first.document['id']}")
    assert client.put(NAMED, HOURLY).document["version"] == first.document["version"]
    assert client.put(NAMED, HOURLY, If_Match=first.headers["ETag"]).status == 412


# Not those that leave the schedule's own state as it is.
@pytest.mark.parametrize("route", [each for each in CHANGES if not each[1].endswith(("trigger", "backfill", "resume"))])
def test_of_all_who_change_what_they_read_at_once_one_does(
    admin: Client, world: World, connect_api: Connect, environment: dict[str, str], route: tuple[str, str]
) -> None:
    case = case_of(route, admin, world)
    others = [connect_api(environment).may("read write admin") for _ in range(3)]
    etag, ready = case.etag, threading.Barrier(len(others))

    def change(one: Client) -> int:
        ready.wait(timeout=10)
        return case.change(one, If_Match=etag).status

    with ThreadPoolExecutor(max_workers=len(others)) as changers:
        statuses = sorted(changers.map(change, others))
    # A second one finds another state, or nothing.
    assert statuses[0] < 300, statuses
    assert set(statuses[1:]) <= {404, 412}, statuses


def test_what_is_only_computed_or_counted_is_another_answer_and_no_other_state(admin: Client, world: World) -> None:
    schedule = admin.create(cron="* * * * *")
    path = f"/v1/schedules/{schedule['id']}"
    etag = admin.get(path).headers["ETag"]
    world.clock.move(minutes=1)
    assert admin.get(path).headers["ETag"] != etag
    assert admin.call("GET", path, headers={"If-None-Match": etag}).status == 200
    assert admin.patch(path, {"name": "mine"}, If_Match=etag).status == 200
    key = admin.post("/v1/keys", {"scopes": ["read"]}).document
    path = f"/v1/keys/{key['id']}"
    etag = admin.get(path).headers["ETag"]
    find_key(world.database, world.clock, key["api_key"])
    assert admin.get(path).headers["ETag"] != etag
    assert admin.delete(path, If_Match=etag).status == 204


def test_a_condition_that_can_not_be_kept_is_refused(admin: Client, modules: dict[str, ModuleType]) -> None:
    for route in modules["routes"].ROUTES:
        if route.conditional or route.method == "GET":
            continue
        for name in ("If-Match", "If-None-Match"):
            answer = admin.call(route.method, route.path, body="{}", headers={name: "*"})
            assert (answer.status, answer.document["errors"][0]["header"]) == (400, name), route


def test_a_read_of_what_has_not_changed_says_only_so(
    admin: Client, world: World, modules: dict[str, ModuleType]
) -> None:
    schedule, run = a_schedule(admin, world), a_run(admin, world)
    paths = [a_key(admin, world).path, a_list(admin, world).path, a_named_schedule(admin, world).path]
    paths += [an_old_secret(admin, world).path, schedule.path, run.path]
    paths += [schedule.path + more for more in ("/runs", "/skipped", "/preview")]
    paths += [route.path for route in modules["routes"].ROUTES if route.method == "GET" and "{" not in route.path]
    assert len(paths) == sum(route.method == "GET" for route in modules["routes"].ROUTES)
    for path in paths:
        etag = admin.get(path).headers["ETag"]
        for tags in (etag, f'"x", W/{etag.removeprefix("W/")}', "*"):
            seen = admin.call("GET", path, headers={"If-None-Match": tags})
            assert (seen.status, seen.document, seen.headers["ETag"]) == (304, None, etag), (path, tags)
        for tags in ('"x"', "", "nonsense"):
            assert admin.call("GET", path, headers={"If-None-Match": tags}).status == 200, (path, tags)


def test_lists_have_a_weak_etag_that_changes_with_their_content(client: Client) -> None:
    empty = client.get("/v1/schedules").headers["ETag"]
    assert empty.startswith('W/"')
    assert client.get("/v1/schedules").headers["ETag"] == empty
    client.create()
    assert client.get("/v1/schedules").headers["ETag"] != empty


def test_an_answer_to_a_change_has_the_etag_of_the_next_read(client: Client) -> None:
    made = client.post("/v1/schedules", HOURLY)
    path = f"/v1/schedules/{made.document['id']}"
    assert client.get(path).headers["ETag"] == made.headers["ETag"]
    assert client.patch(path, {"name": "a"}).headers["ETag"] == client.get(path).headers["ETag"] != made.headers["ETag"]
