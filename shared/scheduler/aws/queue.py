"""The run queue: SQS, standard. A message is a run id and nothing else."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import batched
from typing import Any
from uuid import UUID

from botocore.exceptions import BotoCoreError, ClientError

from scheduler.aws.clients import client

# SQS takes ten entries a call (SendMessageBatch), and a delay of at most 900 s.
_ENTRIES = 10
MAX_DELAY_SECONDS = 900
# Calls under way at once. A call is a few milliseconds of waiting; the client is safe to share between threads.
_SENDERS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One run id to send. `group` is the tenant: on AWS it turns on fair queues, it orders nothing."""

    run_id: UUID
    group: UUID
    delay_seconds: int


class Queue:
    """Sends run ids, and puts off messages that were received."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, messages: Sequence[Message]) -> set[UUID]:
        """Sends all, ten a call, and returns those that SQS took; the others stay planned and are sent by the next tick."""
        calls = list(batched(messages, _ENTRIES, strict=False))
        with ThreadPoolExecutor(max_workers=min(_SENDERS, max(1, len(calls)))) as senders:
            taken = list(senders.map(self._send_call, calls))
        return {run_id for call in taken for run_id in call}

    def put_off(self, waits: Iterable[tuple[str, int]]) -> None:
        """Makes each received message (receipt handle) visible again after so many seconds from now.

        One that SQS does not take comes back at the queue's own timeout instead: early or late, never lost.
        """
        for call in batched(waits, _ENTRIES, strict=False):
            entries = [
                {"Id": str(i), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
                for i, (handle, seconds) in enumerate(call)
            ]
            try:
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
            except (BotoCoreError, ClientError):
                continue

    def _send_call(self, call: Sequence[Message]) -> list[UUID]:
        entries = [
            {
                "Id": str(i),
                "MessageBody": str(message.run_id),
                "DelaySeconds": message.delay_seconds,
                "MessageGroupId": str(message.group),
            }
            for i, message in enumerate(call)
        ]
        try:
            answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        except (BotoCoreError, ClientError):
            return []
        return [call[int(entry["Id"])].run_id for entry in answer.get("Successful", ())]


def connect(url: str) -> Queue:
    """A queue over a client of its own; short time-outs, since a tick's or a batch's time is bounded."""
    return Queue(
        client(
            "sqs",
            connect_timeout=3,
            read_timeout=10,
            retries={"max_attempts": 3, "mode": "standard"},
            max_pool_connections=_SENDERS,
        ),
        url,
    )
