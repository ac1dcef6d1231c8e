"""A tenant's API keys: issued with scopes and an end, looked at without their texts, revoked."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self
from uuid import UUID

from scheduler import tenant_rows
from scheduler.errors import InvalidInput, LimitExceeded, NotFound, Problem
from scheduler.preconditions import ANYHOW, Precondition, tag_of
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row

# Random bytes of a key's text, and how much of the text is shown afterwards.
_KEY_BYTES = 32
_SHOWN = 8
# Good keys of one tenant.
MOST_KEYS = 100
LONGEST_LIFE = timedelta(days=3650)


class Scope(StrEnum):
    """What a key may do: read, change schedules and runs, manage keys and secrets."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiKey:
    """A key without its text. `last_used_at` is right to the minute; `revoked_at` None: it is good until `expires_at`."""

    id: UUID
    name: str | None
    prefix: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    @property
    def tag(self) -> str:
        """Names its state; its use is none."""
        return tag_of(self.id, self.revoked_at)

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The key of a row, whose columns are its fields."""
        return cls(**(row | {"scopes": tuple(row["scopes"])}))


@dataclass(frozen=True, kw_only=True, slots=True)
class IssuedKey:
    """A new key with its text, this once."""

    key: ApiKey
    text: str = field(repr=False)


def new_key_text(entropy: Callable[[int], bytes]) -> str:
    """The text of a new API key; `entropy(n)` returns n random bytes."""
    return "ck_" + base64.urlsafe_b64encode(entropy(_KEY_BYTES)).rstrip(b"=").decode()


def shown(text: str) -> str:
    """What may be shown of a key, to tell it from others."""
    return text[:_SHOWN]


def hash_key(text: str) -> bytes:
    """SHA-256 of the key's text: it has 256 random bits, so that a fast hash is enough to keep it unknown."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """The use cases, over one database and clock."""

    database: Database
    clock: Clock

    def keys(self, tenant_id: UUID, *, after: tuple[datetime, UUID], most: int) -> list[ApiKey]:
        """At most `most` keys created after the keyset, oldest first, revoked and expired ones too."""
        with self.database.transaction() as transaction:
            rows = transaction.run(
                "credentials.keys", tenant_id=tenant_id, after_at=after[0], after_id=after[1], most=most
            )
        return [ApiKey.from_row(row) for row in rows]

    def key(self, tenant_id: UUID, key_id: UUID) -> ApiKey:
        """One key; NotFound."""
        with self.database.transaction() as transaction:
            rows = transaction.run("credentials.key", tenant_id=tenant_id, id=key_id)
        if not rows:
            raise NotFound(f"no key {key_id}")
        return ApiKey.from_row(rows[0])

    def issue(
        self,
        tenant_id: UUID,
        key_id: UUID,
        *,
        name: str | None,
        scopes: tuple[Scope, ...],
        expires_at: datetime | None,
        entropy: Callable[[int], bytes],
    ) -> IssuedKey:
        """Makes a key under the given new id. InvalidInput for an end that is past or too far; LimitExceeded; NoTenant."""
        text = new_key_text(entropy)
        with self.database.transaction() as transaction:
            tenant_rows.hold(transaction, tenant_id)
            now = self.clock(transaction)
            if expires_at is not None and not now < expires_at <= now + LONGEST_LIFE:
                detail = f"must be later than now, by {LONGEST_LIFE.days} days at most"
                raise InvalidInput(Problem(pointer="/expires_at", detail=detail))
            [counted] = transaction.run("credentials.count_keys", tenant_id=tenant_id, now=now)
            if counted["keys"] >= MOST_KEYS:
                raise LimitExceeded(f"you have {MOST_KEYS} good keys; revoke one", retry_seconds=60)
            transaction.run(
                "credentials.insert_key",
                id=key_id,
                tenant_id=tenant_id,
                name=name,
                prefix=shown(text),
                hash=hash_key(text),
                scopes=list(scopes),
                now=now,
                expires_at=expires_at,
            )
            rows = transaction.run("credentials.key", tenant_id=tenant_id, id=key_id)
        return IssuedKey(key=ApiKey.from_row(rows[0]), text=text)

    def revoke(self, tenant_id: UUID, key_id: UUID, *, only: Precondition = ANYHOW) -> None:
        """Ends a key for good; one that is revoked already stays so. NotFound; PreconditionFailed.

        Another call is refused once the authorizer's answer for the key is out of API Gateway's cache: 30 seconds at most.
        """
        with self.database.transaction() as transaction:
            rows = transaction.run("credentials.lock_key", tenant_id=tenant_id, id=key_id)
            if not rows:
                raise NotFound(f"no key {key_id}")
            only.check(ApiKey.from_row(rows[0]).tag)
            transaction.run("credentials.revoke_key", tenant_id=tenant_id, id=key_id, now=self.clock(transaction))
