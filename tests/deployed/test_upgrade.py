"""A newer version is deployed over runs in flight, and rolled back again: nothing is lost, nothing materialised twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from local import release, tenant
from local.children import wait_until
from local.project import PROJECT
from local.receiver import Receiver
from local.stack import Stack
from local.tenant import Tenant

pytestmark = pytest.mark.deployed

_VERSIONS = "scheduler/store/migrations/versions"
_NEWEST = max(path.name[:4] for path in (PROJECT / "shared" / _VERSIONS).glob("*.sql"))
_NEXT_REVISION = f"""
from alembic import op
revision = "9999"
down_revision = "{_NEWEST}"
def upgrade():
    op.execute("alter table tenant add column of_the_next_version text")
"""
_PERIOD = timedelta(seconds=10)
_WITHIN_SECONDS = 120
# An occurrence this long ago must have arrived.
_SETTLED = timedelta(seconds=8)
# A tick has planned this far ahead, or a little farther.
_PLANNED_AHEAD = timedelta(seconds=110)


@contextmanager
def _built_with(function: str, path: str, more: str) -> Iterator[None]:
    """While it lasts, a built file is new or ends in other code than its source: what a deploy takes for the next version."""
    module = release.BUILD / function / path
    text = module.read_text() if module.exists() else None
    module.write_text(f"{text or ''}\n{more}\n")
    try:
        yield
    finally:
        if text is None:
            module.unlink()
        else:
            module.write_text(text)


def _layer(stack: Stack) -> str:
    """The version of our layer that the planner runs on."""
    functions = stack.endpoint.client("lambda")
    config = functions.get_function_configuration(FunctionName=stack.outputs["PlannerFunctionName"])
    return str(config["Layers"][1]["Arn"])


def _deploy(stack: Stack, release_name: str) -> None:
    assert stack.notes.deployed is not None
    release.deploy(stack.endpoint, {**stack.notes.deployed, "Release": release_name})


def _keys(receiver: Receiver) -> set[str]:
    return {post.key for post in receiver.received if post.verified}


def _text(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def _wait_for_more(receiver: Receiver, count: int) -> None:
    already = len(_keys(receiver))
    wait_until(lambda: len(_keys(receiver)) >= already + count, f"{count} more deliveries", seconds=_WITHIN_SECONDS)


def _tick(stack: Stack) -> datetime:
    """Until when all is planned: the version that is deployed plans what no version before it reached."""
    at = datetime.now(UTC)
    stack.invoke("PlannerFunctionName", {})
    return at + _PLANNED_AHEAD


def test_a_deploy_and_a_roll_back_over_runs_in_flight_lose_and_double_nothing(
    deployed: Stack, receiver: Receiver
) -> None:
    credentials = tenant.create(deployed, "upgraded")
    receiver.secret = credentials.signing_secret
    client = Tenant(api_url=deployed.api_url, credentials=credentials)
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=12)
    made = client.create(name="rate", rate="10 seconds", start_at=_text(first), url=receiver.url("/rate"))
    before = _layer(deployed)
    _wait_for_more(receiver, 1)

    with (
        _built_with("SchedulerLayer", "python/scheduler/__init__.py", 'NEXT_VERSION = "deployed over runs in flight"'),
        _built_with("SchedulerLayer", f"python/{_VERSIONS}/9999_next.py", _NEXT_REVISION),
    ):
        _deploy(deployed, "next")
    assert _layer(deployed) != before
    _wait_for_more(receiver, 1)
    _tick(deployed)

    _deploy(deployed, "previous")
    _wait_for_more(receiver, 1)
    planned_until = _tick(deployed)

    arrived_until = datetime.now(UTC) - _SETTLED
    created = datetime.fromisoformat(made["created_at"])
    instants = [first + number * _PERIOD for number in range((planned_until - first) // _PERIOD + 1)]
    # What lies before the schedule's creation, which took its time, is not owed.
    occurrences = [each for each in instants if each > created]
    arrived = [each for each in occurrences if each <= arrived_until]
    expected = {sha256((made["id"] + _text(each)).encode()).hexdigest() for each in arrived}
    wait_until(lambda: expected <= _keys(receiver), "every occurrence to arrive", seconds=_WITHIN_SECONDS)
    planned = [run["scheduled_for"] for run in client.runs(made["id"])]
    assert len(planned) == len(set(planned))
    assert {_text(each) for each in occurrences} <= set(planned)


def test_a_deploy_whose_migration_fails_leaves_the_old_version_working(deployed: Stack, receiver: Receiver) -> None:
    credentials = tenant.create(deployed, "not upgraded")
    receiver.secret = credentials.signing_secret
    client = Tenant(api_url=deployed.api_url, credentials=credentials)
    client.create(name="rate", rate="10 seconds", url=receiver.url("/rate"))
    _wait_for_more(receiver, 1)

    broken = "def upgrade(login): raise RuntimeError('this revision does not apply')"
    with (
        _built_with("MigrateFunction", "app.py", broken),
        pytest.raises(RuntimeError, match="sam deploy failed"),
    ):
        _deploy(deployed, "broken")

    _wait_for_more(receiver, 2)
    assert client.schedules()
