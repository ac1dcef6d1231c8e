"""Idempotency keys: a request that names itself is carried out once in a day, and answered the same each time."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from scheduler.errors import KeyReused
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row, Transaction

# How long an answer is kept and repeated.
KEPT = timedelta(hours=24)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """An answer to keep: an HTTP status, headers and a body. `replayed`: it is an earlier request's."""

    status: int
    headers: Mapping[str, str]
    body: str
    replayed: bool = False


class Seal(Protocol):
    """What encrypts an answer that shows a credential: aws.keys.Keys."""

    def encrypt(self, tenant_id: UUID, secret: str, /) -> bytes: ...

    def decrypt(self, tenant_id: UUID, ciphertext: bytes, /) -> str: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Idempotency:
    """The use case, over one database and clock."""

    database: Database
    clock: Clock
    seal: Seal

    def once(
        self, tenant_id: UUID, key: str, fingerprint: bytes, carry_out: Callable[[], Answered], *, sealed: bool = False
    ) -> Answered:
        """The answer of `carry_out`, or the one stored under this key for the same request. KeyReused for another one.

        The work and its answer are one transaction: where it fails or its process dies, neither is there, and the key is free.
        A second request under the key waits in the database until the first has ended.
        """
        with self.database.joined() as transaction:
            now = self.clock(transaction)
            words = {"tenant_id": tenant_id, "key": key}
            if not transaction.run(
                "idempotency.claim", fingerprint=fingerprint, now=now, forgotten=now - KEPT, **words
            ):
                [row] = transaction.run("idempotency.find", forgotten=now - KEPT, **words)
                return self._replayed(tenant_id, row, fingerprint)
            answered = carry_out()
            self._store(transaction, tenant_id, key, answered, sealed)
            return answered

    def _replayed(self, tenant_id: UUID, row: Row, fingerprint: bytes) -> Answered:
        if row["fingerprint"] != fingerprint:
            raise KeyReused("this idempotency key was sent before, with another method, path or body")
        body = self.seal.decrypt(tenant_id, row["body"]) if row["sealed"] else row["body"].decode()
        return Answered(status=row["status"], headers=row["headers"], body=body, replayed=True)

    def _store(self, transaction: Transaction, tenant_id: UUID, key: str, answered: Answered, sealed: bool) -> None:
        transaction.run(
            "idempotency.store",
            tenant_id=tenant_id,
            key=key,
            status=answered.status,
            headers=json.dumps(dict(answered.headers)),
            body=self.seal.encrypt(tenant_id, answered.body) if sealed else answered.body.encode(),
            sealed=sealed,
        )


def forget(transaction: Transaction, clock: Clock) -> int:
    """Deletes the answers that are no longer repeated; returns how many."""
    return transaction.change("idempotency.forget", forgotten=clock(transaction) - KEPT)
