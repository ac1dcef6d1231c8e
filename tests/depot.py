"""What delivers, for tests: a queue on moto, KMS keys, the real outbound client and receivers on real sockets."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Self
from uuid import UUID, uuid4

import boto3
from scheduler.aws.bus import Bus
from scheduler.aws.keys import Keys
from scheduler.aws.queue import Queue
from scheduler.breaker import BreakerPolicy
from scheduler.delivery import Courier, Message
from scheduler.disabling import carry_out
from scheduler.dispatch import Dispatcher, Sent, sweep
from scheduler.http.client import Client
from scheduler.leases import Claim, claim
from scheduler.recording import DEFAULT_BREAKER
from scheduler.runs import id_prefix
from scheduler.schedules import Definition, Schedule
from scheduler.shares import TENANT_CONCURRENCY
from scheduler.store.connection import Database
from scheduler.timing import Timing
from scheduler.webhook.addresses import TargetPolicy

from tests.world import T0, World

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
VISIBILITY_SECONDS = 60


@dataclass
class RunQueue:
    """The queue and a boto3 client to look at it with."""

    client: Any
    url: str
    queue: Queue

    @classmethod
    def make(cls) -> Self:
        client = boto3.client("sqs")
        url = client.create_queue(QueueName="runs", Attributes={"VisibilityTimeout": str(VISIBILITY_SECONDS)})[
            "QueueUrl"
        ]
        return cls(client=client, url=url, queue=Queue(client, url))

    def receive(self) -> list[Message]:
        """What is visible now, at most ten, as the event source mapping hands it over."""
        answer = self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, AttributeNames=["ApproximateReceiveCount"]
        )
        return [
            Message(
                message_id=each["MessageId"],
                receipt_handle=each["ReceiptHandle"],
                body=each["Body"],
                receives=int(each["Attributes"]["ApproximateReceiveCount"]),
            )
            for each in answer.get("Messages", ())
        ]

    def settle(self, messages: list[Message], kept: list[str]) -> None:
        """Deletes all but the kept, as the mapping does."""
        for message in messages:
            if message.message_id not in kept:
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=message.receipt_handle)

    def count(self) -> int:
        """All messages in the queue: visible, delayed and in flight."""
        names = (
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesDelayed",
            "ApproximateNumberOfMessagesNotVisible",
        )
        answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=list(names))
        return sum(int(answer["Attributes"][name]) for name in names)


@dataclass
class EventsClient:
    """An EventBridge client that takes the types of events that a test lets it take."""

    takes: Callable[[str], bool] = lambda _: True
    taken: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - the SDK's name
        results = []
        for entry in Entries:
            taken = self.takes(entry["DetailType"])
            (self.taken if taken else self.refused).append(entry)
            results.append({"EventId": str(uuid4())} if taken else {"ErrorCode": "InternalFailure"})
        return {"Entries": results}


def takes_nothing(_: str) -> bool:
    return False


@dataclass
class Depot:
    """The world's runs on their way to receivers."""

    world: World
    runs: RunQueue
    keys: Keys
    client: Client
    remaining: float = 30.0
    # What an invocation has left once all is recorded; None: as much as before.
    remaining_after_posts: float | None = None
    tenant_concurrency: int = TENANT_CONCURRENCY
    breaker: BreakerPolicy = DEFAULT_BREAKER
    # Events stay in the outbox, where tests look for them.
    events_client: EventsClient = field(default_factory=lambda: EventsClient(takes_nothing))
    told: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def over(cls, world: World, runs: RunQueue, keys: Keys) -> Iterator[Self]:
        client = Client(TargetPolicy(local_targets=True))
        with world.database.transaction() as transaction:
            transaction.run(
                "signing_secrets.insert",
                id=uuid4(),
                tenant_id=world.tenant_id,
                ciphertext=keys.encrypt(world.tenant_id, SECRET),
                now=world.clock.now,
            )
        yield cls(world=world, runs=runs, keys=keys, client=client)
        client.close()

    def schedule(self, url: str, *, decided: Mapping[str, Any] | None = None, **timing: Any) -> Schedule:
        """A schedule that posts to `url`, by default each minute; `decided` are further fields of its definition."""
        definition = Definition(
            name=None,
            timing=Timing(**(timing or {"cron": "* * * * *"})),
            url=url,
            headers=(),
            **{"payload": None, **(decided or {})},
        )
        return self.world.scheduling.create(self.world.tenant_id, uuid4(), definition, changed_by="test")

    def one_run(self, url: str, **decided: Any) -> UUID:
        """The id of a single run, due now: a one-off that is a moment late."""
        second = self.world.clock.now.replace(microsecond=0, tzinfo=None)
        schedule = self.schedule(url, at=second.isoformat(), decided=decided)
        [[run_id]] = self.world.sql("select id from job_run where schedule_id = :id", id=schedule.id)
        return run_id

    def backlog(self, schedule_id: UUID, seconds: range) -> list[UUID]:
        """Runs of that schedule that were due so many seconds before T0, whatever its timing says."""
        instants = [T0.replace(microsecond=0) - timedelta(seconds=back) for back in seconds]
        rows = self.world.sql(
            """
            insert into job_run (id, schedule_id, scheduled_for, tenant_id, state, due_at, next_attempt_at,
                                 schedule_version, tzdata_version, trigger, created_at)
            select cast(o.prefix || substr(cast(s.id as text), 16) as uuid), s.id, o.at, s.tenant_id, 'planned',
                   o.at, o.at, 1, 'test', 'schedule', o.at
            from schedule as s
            cross join unnest(cast(:instants as timestamptz[]), cast(:prefixes as text[])) as o (at, prefix)
            where s.id = :id
            returning id
            """,
            instants=instants,
            prefixes=[id_prefix(each) for each in instants],
            id=schedule_id,
        )
        return [row[0] for row in rows]

    def courier(self, database: Database | None = None) -> Courier:
        def report(event: str, /, **facts: object) -> None:
            self.told.append((event, facts))

        return Courier(
            database=database or self.world.database,
            clock=self.world.clock,
            queue=self.runs.queue,
            bus=Bus(self.events_client, "bus"),
            keys=self.keys,
            client=self.client,
            disable=lambda more_time: carry_out(
                replace(self.world.scheduling, database=database or self.world.database), more_time=more_time
            ),
            deadline_seconds=5.0,
            remaining=self._remaining,
            report=report,
            tenant_concurrency=self.tenant_concurrency,
            breaker=self.breaker,
        )

    def _remaining(self) -> float:
        recorded = any(event.startswith("run.") for event, _ in self.told)
        return self.remaining if self.remaining_after_posts is None or not recorded else self.remaining_after_posts

    def deliver(self, *run_ids: UUID | str, receives: int = 1) -> list[str]:
        """Delivers one batch of these ids and returns the bodies of the messages that were kept."""
        messages = [
            Message(message_id=f"m{i}", receipt_handle=f"r{i}", body=str(run_id), receives=receives)
            for i, run_id in enumerate(run_ids)
        ]
        kept = self.courier().deliver(messages)
        return [message.body for message in messages if message.message_id in kept]

    def claim(self, *run_ids: UUID, alone: bool = False) -> Claim:
        """A claim by a worker that is then lost."""
        return claim(
            self.world.database,
            self.world.clock,
            dict.fromkeys(run_ids),
            lease=timedelta(seconds=self.remaining),
            alone=alone,
        )

    def dispatch(self, more_time: Callable[[], bool] = lambda: True) -> Sent:
        dispatcher = Dispatcher(database=self.world.database, queue=self.runs.queue, clock=self.world.clock)
        return dispatcher.dispatch(more_time=more_time)

    def sweep(self) -> Sent:
        return sweep(self.world.database, self.runs.queue, self.world.clock, more_time=lambda: True)

    def run(self, run_id: UUID) -> dict[str, Any]:
        """The run's row."""
        columns = (
            "state",
            "reason",
            "held_by",
            "attempt",
            "failures",
            "unrecorded",
            "sends",
            "next_attempt_at",
            "lease_until",
        )
        [row] = self.world.sql(f"select {', '.join(columns)} from job_run where id = :id", id=run_id)
        return dict(zip(columns, row, strict=True))

    def run_ids(self, schedule: Schedule) -> list[UUID]:
        """Its runs, oldest first."""
        rows = self.world.sql("select id from job_run where schedule_id = :id order by scheduled_for", id=schedule.id)
        return [row[0] for row in rows]

    def events(self) -> list[str]:
        """The types of the events in the outbox, oldest first."""
        return [row[0] for row in self.world.sql("select type from outbox order by created_at, type")]
