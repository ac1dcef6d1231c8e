"""The event bus: EventBridge. Takes events by ten, and says which it took."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import batched
from typing import Any
from uuid import UUID

from botocore.exceptions import BotoCoreError, ClientError

from scheduler.aws.clients import client

# PutEvents takes ten entries a call.
_ENTRIES = 10
_SOURCE = "carillon"


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One decided event. Its id is the same each time it is published: receivers drop duplicates by it."""

    id: UUID
    type: str
    tenant_id: UUID
    detail: dict[str, Any]
    at: datetime


class Bus:
    """Publishes events."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def publish(self, events: Sequence[Event]) -> list[UUID]:
        """Publishes all, ten a call, and returns the ids of those that the bus took: it may take a part of a call.

        A call without an answer is the last one: each of many would take its time-out from who waits, deliveries above all.
        """
        taken: list[UUID] = []
        for call in batched(events, _ENTRIES, strict=False):
            try:
                taken += self._publish(call)
            except ClientError:
                continue
            except BotoCoreError:
                break
        return taken

    def _publish(self, events: Sequence[Event]) -> list[UUID]:
        answer = self._client.put_events(Entries=[self._entry(event) for event in events])
        results = answer.get("Entries", ())
        return [event.id for event, result in zip(events, results, strict=False) if result.get("EventId")]

    def _entry(self, event: Event) -> dict[str, Any]:
        detail = {"id": str(event.id), "tenant_id": str(event.tenant_id), **event.detail}
        return {
            "EventBusName": self._name,
            "Source": _SOURCE,
            "DetailType": event.type,
            "Detail": json.dumps(detail),
            "Time": event.at,
        }


def connect(name: str) -> Bus:
    """A bus over a client of its own; a call ends before a transaction that waits for it may be idle for too long."""
    return Bus(
        client("events", connect_timeout=2, read_timeout=2, retries={"max_attempts": 2, "mode": "standard"}),
        name,
    )
