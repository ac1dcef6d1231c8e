"""Fixtures for all tests: one PostgreSQL server, one migrated template, a clone of it for each test."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from scheduler.aws.keys import Keys
from scheduler.store.connection import Database, Login
from scheduler.store.migrations import upgrade

from local import postgres
from tests.depot import Depot, RunQueue
from tests.world import World

_TEMPLATE = "carillon_template"
# The days that tests live in.
FIRST_DAY, LAST_DAY = date(2026, 11, 28), date(2026, 12, 4)
_count = itertools.count()


def login_to(server: postgres.Server, database: str) -> Login:
    """A login as the functions' role."""
    return Login(
        host=server.host,
        port=server.port,
        database=database,
        user=postgres.OWNER,
        password=server.password,
        tls=None,
    )


def _memory() -> str | None:
    """A file system in memory with room for the tests' databases, if there is one: cloning is twenty times as fast there."""
    shared = Path("/dev/shm")  # noqa: S108 - the folder inside it is made by mkdtemp
    roomy = shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 4 * 2**30
    return str(shared) if roomy else None


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A server of this session's own, with the migrated template database."""
    folder = Path(tempfile.mkdtemp(prefix="carillon-test-", dir=_memory()))
    # Nothing here outlives the session, so it need not reach the disk; what a crash of the server keeps is not our promise.
    running = postgres.start(folder / "data", options={"fsync": "off", "max_connections": "200"})
    try:
        running.create_database(_TEMPLATE)
        upgrade(login_to(running, _TEMPLATE))
        _make_partitions(login_to(running, _TEMPLATE))
        yield running
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _make_partitions(login: Login) -> None:
    database = Database(lambda: login)
    with database.transaction() as transaction:
        transaction.run("maintenance.make_partitions", first_day=FIRST_DAY, last_day=LAST_DAY)
    database.close()


@pytest.fixture
def login(server: postgres.Server) -> Iterator[Login]:
    """A login to a fresh clone of the template."""
    name = f"test_{os.getpid()}_{next(_count)}"
    server.create_database(name, template=_TEMPLATE)
    yield login_to(server, name)
    server.drop_database(name)


@pytest.fixture
def connect(login: Login) -> Iterator[Callable[[], Database]]:
    """Makes further connections to the test's database."""
    with ExitStack() as stack:

        def open_one() -> Database:
            database = Database(lambda: login)
            stack.callback(database.close)
            return database

        yield open_one


@pytest.fixture
def database(connect: Callable[[], Database]) -> Database:
    """The first connection to the test's database."""
    return connect()


@pytest.fixture
def world(login: Login, database: Database) -> World:
    """Use cases over the test's database."""
    return World(login=login, database=database)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """moto in this process, with credentials that are good for nothing else."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        yield


@pytest.fixture
def runs(aws: None) -> RunQueue:
    """The run queue, as the template makes it."""
    return RunQueue.make()


@pytest.fixture
def keys(aws: None) -> Keys:
    """A KMS key."""
    client = boto3.client("kms")
    return Keys(client, client.create_key()["KeyMetadata"]["KeyId"])


@pytest.fixture
def depot(world: World, runs: RunQueue, keys: Keys) -> Iterator[Depot]:
    """The world with a queue, keys and an outbound client: what delivers."""
    with Depot.over(world, runs, keys) as opened:
        yield opened
