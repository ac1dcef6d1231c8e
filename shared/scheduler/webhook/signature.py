"""Signs deliveries as Standard Webhooks 1.0 says, with as many secrets as a rotation has alive.

Source: the Standard Webhooks specification, symmetric scheme `v1`: base64(HMAC-SHA256(key, "id.timestamp.body")).
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.errors import InvalidInput, Problem

_PREFIX = "whsec_"
_TEXT = re.compile(r"whsec_[A-Za-z0-9+/]+={0,2}")
MIN_KEY_BYTES, MAX_KEY_BYTES = 24, 64


@dataclass(frozen=True, kw_only=True, slots=True)
class SigningSecret:
    """The raw key of 24 to 64 bytes; its text form is `whsec_` and standard base64. The repr shows neither."""

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not MIN_KEY_BYTES <= len(self.key) <= MAX_KEY_BYTES:
            raise ValueError(f"a signing key has {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes, not {len(self.key)}")

    @property
    def text(self) -> str:
        """What the tenant is shown once and pastes into a verifier."""
        return _PREFIX + base64.b64encode(self.key).decode()

    @classmethod
    def parse(cls, text: str, pointer: str = "/secret") -> "SigningSecret":
        """The secret of exactly this text; InvalidInput for anything else.

        A trailing line feed, the URL-safe alphabet, a missing prefix or non-canonical padding bits would each give some
        verifiers another key than ours, so none is repaired.
        """
        problem = Problem(
            pointer=pointer,
            detail=f"must be whsec_ followed by the standard base64 of {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes",
        )
        if not _TEXT.fullmatch(text):
            raise InvalidInput(problem)
        try:
            secret = cls(key=base64.b64decode(text.removeprefix(_PREFIX), validate=True))
        except (binascii.Error, ValueError):
            raise InvalidInput(problem) from None
        if secret.text != text:
            raise InvalidInput(problem)
        return secret


def sign(secrets: Sequence[SigningSecret], *, message_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` value: one `v1,…` a secret, newest first as given, with one space between.

    `timestamp` is Unix seconds, `body` the very bytes that go on the wire. ValueError without secrets, or where the id
    has a dot: the signed text is split at dots, so a dot in the id would let one signature stand for two messages.
    """
    if not secrets:
        raise ValueError("a delivery is never sent unsigned")
    if "." in message_id:
        raise ValueError("a message id has no dot")
    content = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(_entry(secret, content) for secret in secrets)


def _entry(secret: SigningSecret, content: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(secret.key, content, hashlib.sha256)).decode()
