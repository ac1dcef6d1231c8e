"""The api function in process: its own code over the test's database, SQS and Secrets Manager on moto."""

import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import boto3
import pytest
from aws_lambda_powertools import Logger
from moto import mock_aws
from scheduler.settings import Settings
from scheduler.store.connection import Login

from local.postgres import OWNER, Server
from tests.api.client import Client
from tests.api.contract import Contract
from tests.world import World

PROJECT = Path(__file__).parents[2]
_FOLDER = PROJECT / "functions" / "api"

type Connect = Callable[[dict[str, str]], Client]


@pytest.fixture(scope="session")
def modules() -> dict[str, ModuleType]:
    """The function's modules by name, imported as the runtime does: from a folder that is on the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(_FOLDER)
        loaded = {path.stem: importlib.import_module(path.stem) for path in sorted(_FOLDER.glob("*.py"))}
    del sys.modules["app"]  # every function has one of this name
    return loaded


@pytest.fixture(scope="session")
def contract() -> Contract:
    return Contract.read(PROJECT / "contracts" / "openapi" / "scheduler.yaml")


@pytest.fixture(scope="module")
def aws(server: Server) -> Iterator[tuple[str, str, Any]]:
    """Moto: the database's secret and a signing key there, and an SQS client."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        patch.delenv("AWS_ENDPOINT_URL", raising=False)
        text = json.dumps({"username": OWNER, "password": server.password})
        made = boto3.client("secretsmanager").create_secret(Name="database", SecretString=text)
        key = boto3.client("kms").create_key()["KeyMetadata"]["KeyId"]
        yield made["ARN"], key, boto3.client("sqs")


@pytest.fixture
def environment(aws: tuple[str, str, Any], login: Login) -> dict[str, str]:
    """The environment of a deployed function whose database is the test's and whose AWS is moto."""
    secret, key, sqs = aws
    return {
        "DATABASE_HOST": login.host,
        "DATABASE_PORT": str(login.port),
        "DATABASE_NAME": login.database,
        "DATABASE_USER": login.user,
        "DATABASE_AUTH": "secret",
        "DATABASE_SECRET_ARN": secret,
        "DATABASE_TLS": "off",
        "QUEUE_URL": sqs.create_queue(QueueName=login.database)["QueueUrl"],
        "DEAD_LETTER_QUEUE_URL": "https://sqs.example/unused",
        "SIGNING_KEY_ID": key,
        "EVENT_BUS_NAME": "unused",
        "LEASE_SECONDS": "60",
        "DELIVERY_TIMEOUT_SECONDS": "30",
        "HTTP_DEADLINE_SECONDS": "15",
        "LOCAL_TARGETS": "off",
        "RETENTION_DAYS": "30",
        "TENANT_QUEUED": "100",
        "TENANT_CONCURRENCY": "10",
        "ENDPOINT_FAILING_DAYS": "5",
    }


@pytest.fixture
def log() -> io.StringIO:
    """What the function logs."""
    return io.StringIO()


@pytest.fixture
def connect_api(
    modules: dict[str, ModuleType],
    world: World,
    contract: Contract,
    log: io.StringIO,
    request: pytest.FixtureRequest,
) -> Iterator[Connect]:
    """Makes clients of the function under some environment, at the world's time."""
    opened: list[Any] = []

    def connect(variables: dict[str, str]) -> Client:
        logger = Logger(service=request.node.nodeid, stream=log)
        parts = modules["parts"].connect(Settings.from_environment(variables), world.clock, logger)
        opened.append(modules["resolver"].Api(parts))
        return Client(
            api=opened[-1],
            tenant_id=world.tenant_id,
            contract=contract,
            new_tenant=lambda: replace(world, tenant_id=uuid4()).tenant_id,
        )

    yield connect
    for api in opened:
        api.close()


@pytest.fixture
def client(connect_api: Connect, environment: dict[str, str], world: World) -> Client:
    """The world's tenant as a client of the function; each answer is held against the contract."""
    # Tests ask faster than any tenant, at a time that stands still.
    world.sql("update tenant set requests_per_second = 1000000")
    return connect_api(environment)


@pytest.fixture
def waiting(aws: tuple[str, str, Any], environment: dict[str, str]) -> Callable[[], int]:
    """How many messages the queue holds, those that are still delayed too."""
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed")

    def count() -> int:
        answer = aws[2].get_queue_attributes(QueueUrl=environment["QUEUE_URL"], AttributeNames=counts)
        return sum(int(answer["Attributes"][name]) for name in counts)

    return count
