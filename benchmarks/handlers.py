"""What an invocation of the real handlers takes, for benchmarks.cost: processor time, round trips, calls, bytes of log.

PostgreSQL, the receiver and what stands for AWS (a moto server) are processes of their own, so that none of their work is
counted. How long a round trip takes here says nothing about one in a VPC: they are counted, and benchmarks.cost says how long.
"""

import importlib.util
import io
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import batched
from time import process_time
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import boto3
from pg8000.core import CoreConnection
from scheduler.aws import clients, keys
from scheduler.maintenance import maintain
from scheduler.schedules import Definition
from scheduler.scheduling import Scheduling
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database
from scheduler.tenants import create_tenant
from scheduler.timing import Timing

from benchmarks import databases
from benchmarks.delivery import due_runs, receiving
from local import postgres
from local.children import wait_until
from local.project import PROJECT

_ROUNDS = 40
# The first invocations import, connect and decrypt.
_WARM_UP = 5

type Handler = Callable[[dict[str, Any], Any], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """One warm invocation, on average: `database` round trips, `calls` of AWS's services, `events` that they carry."""

    cpu_ms: float
    log_bytes: float
    database: float
    calls: float
    events: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A delivery of one full batch, and a tick that finds nothing to do."""

    delivery: Invocation
    tick: Invocation


def measure(batch: int) -> Measured:
    """Runs both handlers over a database made for it; a delivery gets `batch` runs."""
    with databases.serving() as server, receiving() as url, _aws() as aws:
        os.environ.update(_environment(aws, server))
        runs = _due(server, url, (_WARM_UP + _ROUNDS) * batch)
        batches = [_event(each) for each in batched(runs, batch, strict=True)]
        delivery = _measure("delivery", batches)
        tick = _measure("planner", [{}] * (_WARM_UP + _ROUNDS))
    return Measured(delivery=delivery, tick=tick)


def _measure(function: str, events: list[dict[str, Any]]) -> Invocation:
    with redirect_stdout(io.StringIO()) as log, _counted() as counts:
        handler = _handler(function)
        for event in events[:_WARM_UP]:
            handler(event, _CONTEXT)
        counts.clear()
        log.truncate(0)
        began = process_time()
        for event in events[_WARM_UP:]:
            handler(event, _CONTEXT)
        cpu = process_time() - began
    return Invocation(
        cpu_ms=cpu * 1000 / _ROUNDS,
        log_bytes=len(log.getvalue().strip("\0")) / _ROUNDS,
        database=counts["database"] / _ROUNDS,
        calls=counts["calls"] / _ROUNDS,
        events=counts["events"] / _ROUNDS,
    )


_CONTEXT = SimpleNamespace(
    function_name="cost",
    function_version="1",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:eu-west-1:000000000000:function:cost",
    aws_request_id="00000000-0000-0000-0000-000000000000",
    get_remaining_time_in_millis=lambda: 30_000,
)


def _handler(function: str) -> Handler:
    """The function's own app.py; its neighbours are found as in Lambda, beside it."""
    folder = PROJECT / "functions" / function
    spec = importlib.util.spec_from_file_location(f"app_of_{function}", folder / "app.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(folder)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("figures", None)
    handler: Handler = module.handler
    return handler


@contextmanager
def _counted() -> Iterator[Counter[str]]:
    """Counts what clients made inside it call, and each wait for the database's answer."""
    counts: Counter[str] = Counter()

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        counts["calls"] += 1
        counts["events"] += len(params["Entries"]) if model.name == "PutEvents" else 0

    def answered(connection: CoreConnection, context: Any) -> Any:
        counts["database"] += 1
        return waits(connection, context)

    session, waits = clients._session(), CoreConnection.handle_messages
    session.register("provide-client-params", note)
    CoreConnection.handle_messages = answered
    try:
        yield counts
    finally:
        CoreConnection.handle_messages = waits
        session.unregister("provide-client-params", note)


@contextmanager
def _aws() -> Iterator[str]:
    port = postgres.free_port()
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:  # noqa: S603
        try:
            wait_until(lambda: _listens(port), "the moto server", seconds=30)
            yield f"http://127.0.0.1:{port}"
        finally:
            child.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _environment(endpoint: str, server: postgres.Server) -> dict[str, str]:
    words = {"endpoint_url": endpoint, "region_name": "eu-west-1"}
    os.environ.update(AWS_ACCESS_KEY_ID="cost", AWS_SECRET_ACCESS_KEY="cost")  # noqa: S106
    secret = json.dumps({"username": postgres.OWNER, "password": server.password})
    sqs = boto3.client("sqs", **words)
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": "eu-west-1",
        "POWERTOOLS_SERVICE_NAME": "cost",
        "DATABASE_HOST": server.host,
        "DATABASE_PORT": str(server.port),
        "DATABASE_NAME": "cost",
        "DATABASE_USER": postgres.OWNER,
        "DATABASE_AUTH": "secret",
        "DATABASE_SECRET_ARN": boto3.client("secretsmanager", **words).create_secret(Name="db", SecretString=secret)[
            "ARN"
        ],
        "DATABASE_TLS": "off",
        "QUEUE_URL": sqs.create_queue(QueueName="runs")["QueueUrl"],
        "DEAD_LETTER_QUEUE_URL": sqs.create_queue(QueueName="dead")["QueueUrl"],
        "SIGNING_KEY_ID": boto3.client("kms", **words).create_key()["KeyMetadata"]["Arn"],
        "EVENT_BUS_NAME": boto3.client("events", **words).create_event_bus(Name="bus")["EventBusArn"],
        "LEASE_SECONDS": "60",
        "DELIVERY_TIMEOUT_SECONDS": "30",
        "HTTP_DEADLINE_SECONDS": "15",
        "LOCAL_TARGETS": "on",
        "RETENTION_DAYS": "35",
        "TENANT_QUEUED": "10000",
        "TENANT_CONCURRENCY": "1000",
        "ENDPOINT_FAILING_DAYS": "5",
    }


def _due(server: postgres.Server, url: str, count: int) -> list[UUID]:
    """So many runs of one tenant's schedule, due and queued."""
    with databases.database(server, "cost") as (database, admin):
        schedule_id = _schedule(database, url)
        return due_runs(admin, schedule_id, count, datetime.now(UTC).replace(microsecond=0))


def _schedule(database: Database, url: str) -> UUID:
    maintain(database, database_clock, retention=timedelta(days=35), more_time=lambda: True)
    signing = keys.connect(os.environ["SIGNING_KEY_ID"])
    tenant = create_tenant(database, database_clock, signing, "cost", new_id=uuid4, entropy=os.urandom)
    definition = Definition(name=None, timing=Timing(cron="0 0 1 1 *"), url=url, headers=(), payload=b'{"cost":1}')
    scheduling = Scheduling(database=database, clock=database_clock, retention=timedelta(days=35))
    return scheduling.create(tenant.tenant_id, uuid4(), definition, changed_by="cost").id


def _event(run_ids: tuple[UUID, ...]) -> dict[str, Any]:
    """As the mapping hands them over."""
    received = {"ApproximateReceiveCount": "1"}
    records = [
        {"messageId": str(run_id), "receiptHandle": "r", "body": str(run_id), "attributes": received}
        for run_id in run_ids
    ]
    return {"Records": records}
