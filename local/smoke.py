"""The deployed system shows what it promises, unattended: `make smoke`. Exit 0 only when all of it held."""

import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import psutil

from local import stack, tenant
from local.children import wait_until
from local.receiver import Received, Receiver
from local.tenant import Tenant

# A lease as short as the rules allow, so that what a killed worker held comes again while one watches.
LEASE = {"LeaseSeconds": "30", "DeliveryTimeoutSeconds": "20", "HttpDeadlineSeconds": "12"}
_RATE = timedelta(seconds=10)
_DELIVERIES = 5
_WITHIN_SECONDS = 100
# An occurrence this long ago must have arrived.
_SETTLED = timedelta(seconds=8)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What was seen, as the last line says it."""

    delivered: int
    redelivered: int
    rows: int
    duplicates_materialised: int
    lost: int
    lateness_ms: Sequence[float]
    problems: Sequence[str]

    @property
    def line(self) -> str:
        p50, p99 = (f"{_percentile(self.lateness_ms, share):.0f}" for share in (0.50, 0.99))
        return (
            f"smoke: delivered={self.delivered} redelivered={self.redelivered}"
            f" duplicates_materialised={self.duplicates_materialised} lost={self.lost}"
            f" p50_lateness_ms={p50} p99_lateness_ms={p99}"
        )

    @property
    def held(self) -> bool:
        enough = self.delivered >= _DELIVERIES and self.redelivered >= 1
        return enough and not (self.problems or self.duplicates_materialised or self.lost)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Watched:
    """A schedule of the smoke test and the occurrences that it must have, told from its definition alone."""

    kind: str
    id: str
    created: datetime
    first: datetime
    period: timedelta | None

    def occurrences(self, until: datetime) -> list[datetime]:
        if self.period is None:
            return [self.first] if self.first <= until else []
        count = max(0, (until - self.first) // self.period + 1)
        return [each for number in range(count) if (each := self.first + number * self.period) > self.created]

    def keys(self, until: datetime) -> set[str]:
        return {_key(self.id, occurrence) for occurrence in self.occurrences(until)}


def main() -> int:
    """Runs it in a folder of its own and removes that folder."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:5.1f} s  {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="carillon-smoke-") as folder:
        receiver = Receiver()
        receiver.start()
        try:
            with stack.running(Path(folder), say=say, parameters=LEASE) as running:
                verdict = observe(running, receiver, say)
        finally:
            receiver.stop()
    for problem in verdict.problems:
        say(f"NOT HELD: {problem}")
    print(verdict.line, flush=True)
    return 0 if verdict.held else 1


def observe(running: stack.Stack, receiver: Receiver, say: stack.Say) -> Verdict:
    """Creates a tenant with three schedules, kills a worker, and judges what arrived."""
    credentials = tenant.create(running, "smoke")
    receiver.secret = credentials.signing_secret
    client = Tenant(api_url=running.api_url, credentials=credentials)
    receiver.hold_next("/rate")
    watched = _create_schedules(client, receiver)
    say(f"created three schedules: {', '.join(each.kind for each in watched)}")
    killed = _kill_one_worker(receiver, say)
    again = wait_until(
        lambda: next((each for each in receiver.received if each.key == killed.key and each is not killed), None),
        "the killed worker's run to come again",
        seconds=_WITHIN_SECONDS,
    )
    say(f"the same run came again: key {again.key[:12]}…, X-Attempt {again.attempt} after {killed.attempt}")
    wait_until(
        lambda: all(_arrived(receiver, each) for each in watched) and len(_keys(receiver)) >= _DELIVERIES,
        "all three kinds and at least five deliveries",
        seconds=_WITHIN_SECONDS,
    )
    verdict = _judge(client, receiver, watched, killed, again)
    say(
        f"{verdict.rows} rows for {verdict.rows - verdict.duplicates_materialised} occurrences; each signature and key checked"
    )
    return verdict


def _create_schedules(client: Tenant, receiver: Receiver) -> list[_Watched]:
    def watch(kind: str, first: datetime, period: timedelta | None, **timing: str) -> _Watched:
        made = client.create(name=kind, url=receiver.url(f"/{kind}"), **timing)
        created = datetime.fromisoformat(made["created_at"])
        return _Watched(kind=kind, id=made["id"], created=created, first=first, period=period)

    now = datetime.now(UTC).replace(microsecond=0)
    minute, soon = now.replace(second=0), now + timedelta(seconds=12)
    return [
        watch("cron", minute, timedelta(minutes=1), cron="* * * * *", timezone="Europe/Berlin"),
        watch("rate", soon, _RATE, rate="10 seconds", start_at=_text(soon)),
        watch("at", soon, None, at=_text(soon).removesuffix("Z"), timezone="UTC"),
    ]


def _kill_one_worker(receiver: Receiver, say: stack.Say) -> Received:
    held = wait_until(
        lambda: next((each for each in receiver.received if each.path == "/rate"), None),
        "a POST to hold open",
        seconds=_WITHIN_SECONDS,
    )
    worker = _process_with_port(held.peer)
    os.kill(worker, signal.SIGKILL)
    say(f"killed delivery worker {worker} while its POST was open: key {held.key[:12]}…, X-Attempt {held.attempt}")
    return held


def _process_with_port(port: int) -> int:
    """The process on this machine whose end of a connection has this port."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(each.laddr and each.laddr.port == port for each in process.net_connections("tcp4")):
                return process.pid
    raise RuntimeError(f"no process found that holds port {port}")


def _judge(
    client: Tenant, receiver: Receiver, watched: Sequence[_Watched], killed: Received, again: Received
) -> Verdict:
    until = datetime.now(UTC) - _SETTLED
    expected = {key for each in watched for key in each.keys(until)}
    runs = [run for each in watched for run in client.runs(each.id)]
    rows = [(run["schedule_id"], run["scheduled_for"]) for run in runs]
    posts = list(receiver.received)
    first = {post.key: post for post in reversed(posts)}
    return Verdict(
        delivered=len(_keys(receiver)),
        redelivered=sum(post.attempt > first[post.key].attempt for post in posts),
        rows=len(rows),
        duplicates_materialised=len(rows) - len(set(rows)),
        lost=len(expected - _keys(receiver)),
        lateness_ms=[post.lateness * 1000 for post in first.values()],
        problems=_problems(posts, killed, again, expected, {_key(*row) for row in rows}),
    )


def _problems(
    posts: Sequence[Received], killed: Received, again: Received, expected: set[str], rows: set[str]
) -> list[str]:
    found = [f"attempt {post.attempt} of {post.key}: the signature" for post in posts if not post.verified]
    found += [f"{post.key} is not this occurrence's key" for post in posts if post.key != _key_of(post)]
    found += [f"{key}: an occurrence without a row" for key in expected - rows]
    if again.attempt <= killed.attempt:
        found.append(f"the redelivery's X-Attempt {again.attempt} is not above {killed.attempt}")
    if again.body != killed.body:
        found.append("the redelivery's body differs")
    return found


def _arrived(receiver: Receiver, schedule: _Watched) -> bool:
    return any(post.headers.get("x-schedule-id") == schedule.id and post.verified for post in receiver.received)


def _keys(receiver: Receiver) -> set[str]:
    return {post.key for post in receiver.received if post.verified}


def _key_of(post: Received) -> str:
    return sha256((post.headers["x-schedule-id"] + post.headers["x-scheduled-for"]).encode()).hexdigest()


def _key(schedule_id: str, scheduled_for: datetime | str) -> str:
    text = scheduled_for if isinstance(scheduled_for, str) else _text(scheduled_for)
    return sha256((schedule_id + text).encode()).hexdigest()


def _text(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def _percentile(values: Sequence[float], share: float) -> float:
    """By nearest rank."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else math.nan


if __name__ == "__main__":
    sys.exit(main())
