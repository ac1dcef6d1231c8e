"""The delivery of batches of ten against a bare loop of requests.Session on as many threads, same receiver, same run.

Whole batches as the queue hands them over: claim, ten signed POSTs side by side, record, its events published. The ratio is of
runs a second; the receiver takes a while to answer, as receivers do.
"""

import http.server
import os
import socketserver
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import batched
from time import perf_counter
from uuid import UUID, uuid4

import pg8000.native
import requests
from scheduler.aws.bus import Bus
from scheduler.aws.keys import Keys
from scheduler.aws.queue import Queue
from scheduler.delivery import Courier, Message
from scheduler.disabling import carry_out
from scheduler.http.client import Client
from scheduler.runs import id_prefix
from scheduler.schedules import Definition
from scheduler.scheduling import Scheduling
from scheduler.store.connection import Database, Transaction
from scheduler.timing import Timing
from scheduler.webhook.addresses import TargetPolicy

from benchmarks import databases

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
_BATCH = 10
_BATCHES = 40
_ROUNDS = 5
_LIMIT = 0.6
ANSWER_SECONDS = 0.05
_SECRET = "whsec_" + b64encode(bytes(range(32))).decode()


class Kms:
    """Stands for KMS: what it would encrypt stays as it is."""

    def encrypt(self, **words: object) -> dict[str, object]:
        return {"CiphertextBlob": words["Plaintext"]}

    def decrypt(self, **words: object) -> dict[str, object]:
        return {"Plaintext": words["CiphertextBlob"]}


class Events:
    """Stands for EventBridge: takes everything."""

    def put_events(self, Entries: list[object]) -> dict[str, object]:  # noqa: N803 - the SDK's name
        return {"Entries": [{"EventId": "taken"} for _ in Entries]}


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers 204 after a while, on connections that stay open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(ANSWER_SECONDS)
        self.send_response_only(204)
        self.end_headers()


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """A thread a connection."""

    daemon_threads = True
    request_queue_size = 64


def serve() -> None:
    """Serves until it is killed, in a process of its own; its port on standard output."""
    server = Server(("127.0.0.1", 0), Receiver)
    print(server.server_address[1], flush=True)  # noqa: T201
    server.serve_forever()


def measure() -> bool:
    """Prints the ratio; False where it misses its limit."""
    with (
        databases.serving() as server,
        databases.database(server, "bench_delivery") as (database, admin),
        receiving() as url,
    ):
        return _measure(database, admin, url)


def _measure(database: Database, admin: pg8000.native.Connection, url: str) -> bool:
    client = Client(TargetPolicy(local_targets=True))
    courier, runs = _fill(database, admin, client, url, _BATCHES * _BATCH * (_ROUNDS + 1))
    batches = list(batched(runs, _BATCH, strict=True))
    sessions = [requests.Session() for _ in range(_BATCH)]
    _deliver(courier, batches[:_BATCHES])
    _post(sessions, url)
    ratios, rates = [], []
    for one in range(1, _ROUNDS + 1):
        ours = _timed(lambda one=one: _deliver(courier, batches[one * _BATCHES : (one + 1) * _BATCHES]))  # type: ignore[misc]
        bare = _timed(lambda: _post(sessions, url))
        ratios.append(bare / ours)
        rates.append(_BATCHES * _BATCH / ours)
    client.close()
    ratio = sorted(ratios)[_ROUNDS // 2]
    print(  # noqa: T201
        f"delivery: batches of {_BATCH}, answers after {ANSWER_SECONDS * 1000:.0f} ms, ratio={ratio:.2f} "
        f"(at least {_LIMIT}) runs_per_s={sorted(rates)[_ROUNDS // 2]:.0f}"
    )
    return ratio >= _LIMIT


def _fill(
    database: Database, admin: pg8000.native.Connection, client: Client, url: str, count: int
) -> tuple[Courier, list[UUID]]:
    def clock(_: Transaction) -> datetime:
        return NOW

    keys, tenant = Keys(Kms(), "none"), uuid4()
    scheduling = Scheduling(database=database, clock=clock, retention=timedelta(days=30))
    with database.transaction() as transaction:
        transaction.run("tenants.insert", id=tenant, name="Bench", now=NOW)
        transaction.run(
            "signing_secrets.insert", id=uuid4(), tenant_id=tenant, ciphertext=keys.encrypt(tenant, _SECRET), now=NOW
        )
        # As many days as a stack has that keeps its runs for a month: a statement must not pay for those it does not touch.
        first, last = (NOW - timedelta(days=30)).date(), (NOW + timedelta(days=62)).date()
        transaction.run("maintenance.make_partitions", first_day=first, last_day=last)
    definition = Definition(name=None, timing=Timing(cron="0 0 1 1 *"), url=url, headers=(), payload=b'{"bench":true}')
    made = scheduling.create(tenant, uuid4(), definition, changed_by="bench")
    return _courier(database, clock, keys, client, scheduling), due_runs(admin, made.id, count, NOW)


def due_runs(admin: pg8000.native.Connection, schedule_id: UUID, count: int, now: datetime) -> list[UUID]:
    """So many runs that are due, a second apart."""
    instants = [now - timedelta(seconds=1 + back) for back in range(count)]
    rows = admin.run(
        """
        insert into job_run (id, schedule_id, scheduled_for, tenant_id, state, due_at, next_attempt_at,
                             schedule_version, tzdata_version, trigger, created_at)
        select cast(o.prefix || substr(cast(s.id as text), 16) as uuid), s.id, o.at, s.tenant_id, 'queued', o.at, o.at,
               1, 'bench', 'schedule', o.at
        from schedule as s
        cross join unnest(cast(:instants as timestamptz[]), cast(:prefixes as text[])) as o (at, prefix)
        where s.id = :id
        returning id
        """,
        instants=instants,
        prefixes=[id_prefix(each) for each in instants],
        id=schedule_id,
    )
    admin.run("vacuum analyze job_run")
    return [row[0] for row in rows]


def _courier(
    database: Database, clock: Callable[[Transaction], datetime], keys: Keys, client: Client, scheduling: Scheduling
) -> Courier:
    return Courier(
        database=database,
        clock=clock,
        queue=Queue(None, "none"),
        bus=Bus(Events(), "none"),
        keys=keys,
        client=client,
        disable=lambda more_time: carry_out(scheduling, more_time=more_time),
        deadline_seconds=5.0,
        remaining=lambda: 30.0,
        report=lambda *_, **__: None,
    )


def _deliver(courier: Courier, batches: list[tuple[UUID, ...]]) -> None:
    for batch in batches:
        kept = courier.deliver(
            [Message(message_id=str(i), receipt_handle="", body=str(each), receives=1) for i, each in enumerate(batch)]
        )
        if kept:
            raise SystemExit(f"{len(kept)} runs of a batch were not delivered")


def _post(sessions: list[requests.Session], url: str) -> None:
    def loop(session: requests.Session) -> None:
        for _ in range(_BATCHES):
            session.post(url, data=b'{"bench":true}', timeout=5).raise_for_status()

    with ThreadPoolExecutor(len(sessions)) as threads:
        list(threads.map(loop, sessions))


def _timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


@contextmanager
def receiving() -> Iterator[str]:
    """The URL of a receiver in a process of its own."""
    words = [sys.executable, "-c", "from benchmarks.delivery import serve; serve()"]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})  # noqa: S603
    try:
        assert child.stdout is not None  # noqa: S101 - a pipe was asked for
        yield f"http://127.0.0.1:{int(child.stdout.readline())}/"
    finally:
        child.kill()
        child.wait()


if __name__ == "__main__":
    sys.exit(int(not measure()))
