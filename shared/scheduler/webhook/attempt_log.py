"""Turns what a receiver sent into text that PostgreSQL stores and people may read, whatever the bytes were."""

from collections.abc import Iterator, Sequence

MAX_EXCERPT_BYTES = 1024
_REPLACEMENT = "\ufffd"

# Names whose value is a credential of the tenant's, of its receiver's, or an echo of ours.
REDACTED = frozenset(
    {
        "authentication-info",
        "authorization",
        "cookie",
        "proxy-authenticate",
        "proxy-authorization",
        "set-cookie",
        "set-cookie2",
        "webhook-signature",
        "www-authenticate",
        "x-amz-security-token",
        "x-api-key",
        "x-auth-token",
        "x-csrf-token",
        "x-signature",
    }
)


def storable(data: bytes) -> str:
    """At most the first KiB as text without NUL, lone surrogates or invalid UTF-8: each becomes U+FFFD.

    PostgreSQL's text refuses 0x00 and its jsonb the escape of it; either would make an attempt impossible to record.
    """
    return data[:MAX_EXCERPT_BYTES].decode("utf-8", "replace").replace("\x00", _REPLACEMENT)


def storable_headers(headers: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The headers in order, credentials replaced by `[redacted]`, names and values storable, cut at one KiB in all."""
    return tuple(_until_full(headers))


def _until_full(headers: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    left = MAX_EXCERPT_BYTES
    for name, value in headers:
        kept = storable(_wire(name)), "[redacted]" if name.strip().lower() in REDACTED else storable(_wire(value))
        left -= sum(len(text.encode()) for text in kept)
        if left < 0:
            return
        yield kept


def _wire(text: str) -> bytes:
    """The bytes that a header text was: the HTTP library decodes them as Latin-1."""
    return text.encode("latin-1", "replace")
