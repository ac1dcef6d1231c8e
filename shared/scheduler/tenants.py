"""Tenants and their API keys: made by the operator, found by the authorizer."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from scheduler.aws.keys import Keys
from scheduler.errors import InvalidInput, NotFound, Problem
from scheduler.store.clock import Clock
from scheduler.store.connection import Database
from scheduler.webhook.signature import SigningSecret

# Random bytes of a key and of a signing secret (Standard Webhooks: 24 to 64).
_KEY_BYTES = 32
_SECRET_BYTES = 32
# How long an old signing secret goes on signing beside its successor.
DEFAULT_OVERLAP = timedelta(hours=24)
MAX_OVERLAP = timedelta(days=7)
# Old secrets that sign beside the newest one.
_OLD_SECRETS = 3
_ALL_SCOPES = ("read", "write", "admin")
_SHOWN = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class NewTenant:
    """A tenant with its first credentials: both are shown this once, and kept only hashed or encrypted."""

    tenant_id: UUID
    api_key: str = field(repr=False)
    signing_secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A valid API key: whose it is, and what it may do (read, write, admin)."""

    id: UUID
    tenant_id: UUID
    scopes: tuple[str, ...]


def create_tenant(
    database: Database,
    clock: Clock,
    keys: Keys,
    name: object,
    *,
    new_id: Callable[[], UUID],
    entropy: Callable[[int], bytes],
    tenant_id: UUID | None = None,
) -> NewTenant:
    """Makes a tenant, an API key with all scopes and a signing secret. `entropy(n)` returns n random bytes.

    Under the given id, or a new one.

    InvalidInput for a name that is not a text of 1 to 200 characters.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= 200 or not name.isprintable():
        raise InvalidInput(Problem(pointer="/name", detail="must be a printable text of 1 to 200 characters"))
    tenant_id, key_id, secret_id = tenant_id or new_id(), new_id(), new_id()
    api_key = "ck_" + base64.urlsafe_b64encode(entropy(_KEY_BYTES)).rstrip(b"=").decode()
    secret = SigningSecret(key=entropy(_SECRET_BYTES)).text
    ciphertext = keys.encrypt(tenant_id, secret)
    with database.transaction() as transaction:
        now = clock(transaction)
        transaction.run("tenants.insert", id=tenant_id, name=name, now=now)
        transaction.run(
            "tenants.insert_key",
            id=key_id,
            tenant_id=tenant_id,
            prefix=api_key[:_SHOWN],
            hash=hash_key(api_key),
            scopes=list(_ALL_SCOPES),
            now=now,
        )
        transaction.run("tenants.insert_secret", id=secret_id, tenant_id=tenant_id, ciphertext=ciphertext, now=now)
    return NewTenant(tenant_id=tenant_id, api_key=api_key, signing_secret=secret)


def rotate_secret(
    database: Database,
    clock: Clock,
    keys: Keys,
    tenant_id: UUID,
    *,
    overlap: timedelta = DEFAULT_OVERLAP,
    new_id: Callable[[], UUID],
    entropy: Callable[[int], bytes],
) -> str:
    """Gives the tenant a new signing secret and returns its text, this once. The old ones sign beside it for `overlap`.

    InvalidInput for an overlap that is not 0 to 7 days; NotFound. At most four secrets sign at once: where rotations follow
    each other faster than their overlaps end, the oldest end at once.
    """
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise InvalidInput(Problem(pointer="/overlap_seconds", detail=f"must be 0 to {MAX_OVERLAP.days} days"))
    secret = SigningSecret(key=entropy(_SECRET_BYTES)).text
    ciphertext = keys.encrypt(tenant_id, secret)
    with database.transaction() as transaction:
        if not transaction.run("tenants.lock", id=tenant_id):
            raise NotFound(f"no tenant {tenant_id}")
        now = clock(transaction)
        transaction.run("tenants.retire_secrets", tenant_id=tenant_id, now=now, until=now + overlap, kept=_OLD_SECRETS)
        transaction.run("tenants.insert_secret", id=new_id(), tenant_id=tenant_id, ciphertext=ciphertext, now=now)
    return secret


def find_key(database: Database, clock: Clock, api_key: str) -> Key | None:
    """The key of this text, unless it is unknown, revoked or expired, or its tenant is not active; its use is noted."""
    with database.transaction() as transaction:
        now = clock(transaction)
        rows = transaction.run("tenants.find_key", hash=hash_key(api_key), now=now)
        if rows:
            transaction.run("tenants.touch_key", id=rows[0]["id"], now=now)
    return Key(id=rows[0]["id"], tenant_id=rows[0]["tenant_id"], scopes=tuple(rows[0]["scopes"])) if rows else None


def hash_key(api_key: str) -> bytes:
    """SHA-256 of the key's text: it has 256 random bits, so that a fast hash is enough to keep it unknown."""
    return hashlib.sha256(api_key.encode("utf-8", "surrogatepass")).digest()
