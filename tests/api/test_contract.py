"""The contract is valid, and says what the template, the code and the documentation do."""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
import yaml
from openapi_spec_validator import OpenAPIV31SpecValidator
from scheduler import changes, history, labels, look_ahead, runs, schedules, skipped, timing
from scheduler.calendar.spec import Gap, OnExcluded, Overlap
from scheduler.recording import Logged
from scheduler.webhook import headers, request, retry, target
from scheduler.webhook.outcome import NO_RETRY_HEADER, Stage
from scheduler.webhook.signature import SigningSecret

from tests.api.client import Client
from tests.api.contract import Contract

_PROJECT = Path(__file__).parents[2]


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's functions, whose values are of no interest here."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    document: dict[str, Any] = yaml.load((_PROJECT / "template.yaml").read_text(), _Loader)  # noqa: S506 - a SafeLoader
    return document


@pytest.fixture(scope="module")
def schemas(contract: Contract) -> dict[str, Any]:
    found: dict[str, Any] = contract.document["components"]["schemas"]
    return found


@pytest.fixture(scope="module")
def webhook(contract: Contract) -> dict[str, Any]:
    found: dict[str, Any] = contract.document["webhooks"]["run"]["post"]
    return found


@pytest.fixture(scope="module")
def sent(webhook: dict[str, Any]) -> dict[str, Any]:
    """The webhook's example: header name -> value."""
    return {each["name"]: each.get("example", each["schema"].get("const")) for each in webhook["parameters"]}


def _operations(contract: Contract) -> Iterator[dict[str, Any]]:
    for method, path in contract.routes():
        yield contract.document["paths"][path][method.lower()]


def test_it_is_valid_openapi(contract: Contract) -> None:
    assert list(OpenAPIV31SpecValidator(contract.document).iter_errors()) == []


def test_its_routes_are_the_templates_and_the_codes(
    contract: Contract, template: dict[str, Any], modules: dict[str, ModuleType]
) -> None:
    paths = template["Resources"]["Api"]["Properties"]["DefinitionBody"]["paths"]
    assert contract.routes() == {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert contract.routes() == {(route.method, route.path) for route in modules["routes"].ROUTES}


def test_the_resolver_knows_every_route(client: Client, contract: Contract) -> None:
    for method, route in contract.routes():
        answer = client.call(method, re.sub(r"\{\w+\}", "none", route))
        assert answer.document.get("detail") != "There is no such route."


def test_every_example_is_as_its_schema_says(contract: Contract) -> None:
    checked = 0
    for media in _media(contract.document):
        named = [contract.resolve(each)["value"] for each in media.get("examples", {}).values()]
        for example in [*named, *([media["example"]] if "example" in media else [])]:
            contract.check_schema(media["schema"], example)
            checked += 1
    assert checked >= 15


def test_its_request_examples_are_taken(client: Client, contract: Contract) -> None:
    paths = contract.document["paths"]
    examples = paths["/v1/schedules"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    made = [client.create(**example["value"]) for example in examples.values()]
    changes = paths["/v1/schedules/{schedule_id}"]["patch"]["requestBody"]["content"]["application/json"]["examples"]
    for example in changes.values():
        assert client.patch(f"/v1/schedules/{made[0]['id']}", example["value"]).status == 200


def test_every_answer_but_the_gateways_names_its_request(contract: Contract) -> None:
    for operation in _operations(contract):
        for status, response in operation["responses"].items():
            assert status == "401" or "X-Request-Id" in contract.resolve(response)["headers"]


def test_the_worked_example_is_the_key_and_the_signature_that_we_send(
    webhook: dict[str, Any], sent: dict[str, Any]
) -> None:
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", webhook["description"])
    assert secret is not None
    delivery = request.Delivery(
        schedule_id=UUID(sent["X-Schedule-Id"]),
        run_id=UUID(sent["X-Run-Id"]),
        scheduled_for=datetime.fromisoformat(sent["X-Scheduled-For"]),
        attempt=sent["X-Attempt"],
        url="https://hooks.example.com/",
    )
    now = datetime.fromtimestamp(int(sent["webhook-timestamp"]), tz=delivery.scheduled_for.tzinfo)
    built = request.build_request(delivery, secrets=[SigningSecret.parse(secret[0])], now=now)
    ours = dict(built.headers)
    assert ours.pop("Content-Type") == "application/json"
    assert ours == {name: str(value) for name, value in sent.items()}
    example = webhook["requestBody"]["content"]["application/json"]["example"]
    assert yaml.safe_load(built.body) == example
    assert runs.scheduled_for_of(delivery.run_id) == delivery.scheduled_for


def test_the_key_is_derived_in_the_description_step_by_step(webhook: dict[str, Any], sent: dict[str, Any]) -> None:
    text = webhook["description"]
    assert f'sha256("{sent["X-Schedule-Id"]}{sent["X-Scheduled-For"]}")' in text
    assert f"key            {sent['X-Idempotency-Key']}" in text


def test_the_webhook_says_at_least_once_and_deduplicate(contract: Contract, webhook: dict[str, Any]) -> None:
    for text in (webhook["description"], contract.document["info"]["description"]):
        assert "you may receive a request more than once" in text.lower()
        assert "deduplicate on x-idempotency-key" in text.lower()


def test_the_retry_defaults_are_those_that_rule(webhook: dict[str, Any]) -> None:
    policy = retry.DEFAULT
    assert isinstance(policy.backoff, retry.Exponential)
    assert webhook["x-retry-defaults"] == {
        "base_seconds": policy.backoff.base.total_seconds(),
        "factor": policy.backoff.factor,
        "cap_seconds": policy.backoff.cap.total_seconds(),
        "max_attempts": policy.max_attempts,
        "max_age_seconds": policy.max_age.total_seconds(),
    }
    said = " ".join(webhook["description"].split())
    assert "zero to 15 s × 3^(n−1), at most 3 hours, at least 1 second" in said
    assert "after 12 failed attempts or 24 hours after it was due" in said
    assert "lengthens it, up to 6 hours" in said
    assert timedelta(hours=6) == retry.RETRY_AFTER_CAP
    assert timedelta(seconds=1) == retry.MIN_DELAY
    assert f"`{NO_RETRY_HEADER}: true`" in said.lower()


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("Schedule.status", [each for each in schedules.Status if each != schedules.Status.DELETED]),
        ("Schedule.dst.gap", list(Gap)),
        ("Schedule.dst.overlap", list(Overlap)),
        ("Dst.gap", [*Gap, None]),
        ("Dst.overlap", [*Overlap, None]),
        ("Misfire.policy", [*timing.Late, None]),
        ("Exclude.on_excluded", [OnExcluded.SKIP, OnExcluded.NEXT_DAY, None]),
        ("SkippedRange.reason", list(skipped.SkipReason)),
        ("Run.trigger", list(history.Trigger)),
        ("Run.state", list(runs.State)),
        ("Run.reason", [*runs.Reason, None]),
        ("Attempt.outcome", list(Logged)),
        ("Attempt.stage", [*Stage, None]),
    ],
)
def test_its_words_are_the_codes(schemas: dict[str, Any], place: str, values: list[Any]) -> None:
    name, *path = place.split(".")
    schema = schemas[name]
    for step in path:
        schema = schema["properties"][step]
    assert set(schema["enum"]) == set(values)


def test_its_limits_are_the_codes(
    contract: Contract, schemas: dict[str, Any], template: dict[str, Any], modules: dict[str, ModuleType]
) -> None:
    assert schemas["Url"]["maxLength"] == target.MAX_URL_LENGTH
    assert schemas["Headers"]["maxProperties"] == headers.MAX_HEADERS
    limit = contract.document["components"]["parameters"]["Limit"]["schema"]
    queries = modules["queries"]
    assert (limit["maximum"], limit["default"]) == (queries.MAX_LIMIT, queries.DEFAULT_LIMIT)
    assert set(schemas["NewSchedule"]["properties"]) == set(modules["documents"].FIELDS)
    documents, fields = modules["documents"], schemas["NewSchedule"]["properties"]
    assert fields["max_runs"]["maximum"] == timing.MOST_RUNS
    assert fields["jitter_seconds"]["maximum"] == timing.MOST_JITTER_SECONDS
    misfire, exclude = schemas["Misfire"]["properties"], schemas["Exclude"]["properties"]
    assert misfire["grace_seconds"]["maximum"] == timing.MOST_GRACE_SECONDS
    assert misfire["cap"]["maximum"] == timing.MOST_CAP
    assert {name: misfire[name]["default"] for name in misfire} == dataclasses.asdict(timing.Misfire())
    assert exclude["dates"]["maxItems"] == documents.MOST_OWN_DATES
    assert exclude["lists"]["maxItems"] == documents.MOST_LISTS
    assert schemas["Pause"]["properties"]["reason"]["maxLength"] == documents.MOST_REASON
    assert f"within {changes.LONGEST_PAUSE.days} days" in schemas["Pause"]["properties"]["until"]["description"]
    assert schemas["ExclusionDates"]["properties"]["dates"]["maxItems"] == timing.MOST_LISTED_DATES
    assert schemas["ListName"]["pattern"] == f"^{queries.NAME.pattern}$"
    for name in ("pause", "resume"):
        described = contract.document["paths"][f"/v1/schedules/{name}"]["post"]["description"]
        assert f"{labels.MOST_AT_ONCE} schedules a call at most" in described
    said = " ".join(contract.document["info"]["description"].split())
    assert f"a request body has at most {modules['bodies'].MAX_BYTES:,} bytes" in said.lower()
    assert f"{modules['bodies'].MAX_DEPTH} levels" in said
    assert f"{headers.MAX_HEADERS_BYTES:,} characters together" in said
    assert f"at most {request.MAX_BODY_BYTES:,} bytes" in schemas["Payload"]["description"]
    assert f"at most {timing.Misfire().grace_seconds} seconds past" in schemas["At"]["description"]
    assert timedelta(minutes=2) == look_ahead.LOOK_AHEAD
    assert template["Parameters"]["HttpDeadlineSeconds"]["Default"] == 15
    authorizer = template["Resources"]["Api"]["Properties"]["Auth"]["Authorizers"]["TenantAuthorizer"]
    assert authorizer["Identity"]["ReauthorizeEvery"] == 30


def test_every_kind_of_problem_is_in_the_contract_and_in_the_catalogue(
    contract: Contract, schemas: dict[str, Any], modules: dict[str, ModuleType]
) -> None:
    problems = modules["problems"]
    kinds = {problems.TYPE_PREFIX + kind.name: kind for kind in problems.KINDS.values()}
    assert set(schemas["Problem"]["properties"]["type"]["enum"]) == {"about:blank", *kinds}
    assert schemas["Problem"]["properties"]["errors"]["maxItems"] == problems.MOST_ERRORS
    catalogue = (_PROJECT / "docs" / "errors.md").read_text()
    assert set(re.findall(r"urn:[\w:-]+\w", catalogue)) == set(kinds)
    for response in contract.document["components"]["responses"].values():
        example = response.get("content", {}).get("application/problem+json", {}).get("example")
        if example and example["type"] in kinds:
            kind = kinds[example["type"]]
            assert (example["status"], example["title"]) == (kind.status, kind.title)


def _media(part: Any) -> Iterator[dict[str, Any]]:
    """Every media type object of a document."""
    children: Iterable[Any] = ()
    if isinstance(part, dict):
        yield from part.get("content", {}).values()
        children = part.values()
    elif isinstance(part, list):
        children = part
    for child in children:
        yield from _media(child)
