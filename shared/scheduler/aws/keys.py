"""The KMS key that signing secrets are encrypted with, and a short memory of decrypted ones."""

import time
from collections import OrderedDict
from typing import Any
from uuid import UUID

from botocore.exceptions import BotoCoreError, ClientError

from scheduler.aws.clients import client

# How long a decrypted secret stays in memory, and how many: enough to spare KMS a call an attempt.
_SECONDS = 300.0
_SECRETS = 2_000


class KeyUnavailable(Exception):
    """KMS can't be reached or refuses the key; nothing was signed or stored."""


class Keys:
    """Encrypts and decrypts one tenant's secrets. The tenant's id is the encryption context: a row that was moved to another
    tenant can't be decrypted (AWS KMS, Encrypt: at most 4,096 bytes of plain text)."""

    def __init__(self, client: Any, key_id: str) -> None:
        self._client = client
        self._key_id = key_id
        self._known: OrderedDict[tuple[UUID, bytes], tuple[float, str]] = OrderedDict()

    def encrypt(self, tenant_id: UUID, secret: str) -> bytes:
        """The ciphertext of a secret's text. KeyUnavailable."""
        try:
            answer = self._client.encrypt(
                KeyId=self._key_id, Plaintext=secret.encode(), EncryptionContext=_context(tenant_id)
            )
        except (BotoCoreError, ClientError) as error:
            raise KeyUnavailable(str(error)) from error
        return bytes(answer["CiphertextBlob"])

    def decrypt(self, tenant_id: UUID, ciphertext: bytes) -> str:
        """The secret's text, from memory where it was decrypted in the last minutes. KeyUnavailable."""
        found = self._known.get((tenant_id, ciphertext))
        if found and found[0] > time.monotonic():
            return found[1]
        try:
            answer = self._client.decrypt(
                KeyId=self._key_id, CiphertextBlob=ciphertext, EncryptionContext=_context(tenant_id)
            )
        except (BotoCoreError, ClientError) as error:
            raise KeyUnavailable(str(error)) from error
        secret: str = answer["Plaintext"].decode()
        self._remember((tenant_id, ciphertext), secret)
        return secret

    def _remember(self, key: tuple[UUID, bytes], secret: str) -> None:
        self._known[key] = time.monotonic() + _SECONDS, secret
        while len(self._known) > _SECRETS:
            self._known.popitem(last=False)


def connect(key_id: str) -> Keys:
    """Keys over a client of its own."""
    return Keys(
        client("kms", connect_timeout=3, read_timeout=5, retries={"max_attempts": 3, "mode": "standard"}),
        key_id,
    )


def _context(tenant_id: UUID) -> dict[str, str]:
    return {"tenant_id": str(tenant_id)}
