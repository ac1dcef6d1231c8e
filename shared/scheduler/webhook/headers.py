"""Which headers a tenant may add to its deliveries; judged when they are given, never at delivery."""

import re
from collections.abc import Iterator, Mapping

from scheduler.errors import InvalidInput, Problem
from scheduler.webhook.pointer import reference_token

MAX_HEADERS = 20
MAX_HEADERS_BYTES = 4096

# Ours, or the connection's (RFC 9110 §7.6.1): a tenant's value would break the framing, the signature or the contract.
RESERVED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "date",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
        "x-attempt",
        "x-idempotency-key",
        "x-run-id",
        "x-schedule-id",
        "x-scheduled-for",
        "x-signature",
    }
)
RESERVED_PREFIXES = ("webhook-", "proxy-")

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")  # RFC 9110 §5.6.2
_VALUE = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")  # visible ASCII, spaces inside only: the same bytes everywhere


def check_headers(headers: Mapping[str, object], pointer: str = "/headers") -> tuple[tuple[str, str], ...]:
    """The headers as pairs in the given order; InvalidInput with one problem a header that can't be taken."""
    problems = tuple(_problems(headers, pointer))
    if problems:
        raise InvalidInput(*problems)
    return tuple((name, str(value)) for name, value in headers.items())


def _problems(headers: Mapping[str, object], pointer: str) -> Iterator[Problem]:
    if len(headers) > MAX_HEADERS:
        yield Problem(pointer=pointer, detail=f"{len(headers)} headers; at most {MAX_HEADERS} are taken")
    if sum(len(name) + len(str(value)) for name, value in headers.items()) > MAX_HEADERS_BYTES:
        yield Problem(pointer=pointer, detail=f"at most {MAX_HEADERS_BYTES} characters of names and values are taken")
    seen: set[str] = set()
    for name, value in headers.items():
        detail = _refusal(name, value, seen)
        if detail is not None:
            yield Problem(pointer=f"{pointer}/{reference_token(name)}", detail=detail)
        seen.add(name.lower())


def _refusal(name: str, value: object, seen: set[str]) -> str | None:
    lowered = name.lower()
    if not _TOKEN.fullmatch(name):
        return "the name must be a token as in RFC 9110, 128 characters at most"
    if lowered in RESERVED or lowered.startswith(RESERVED_PREFIXES):
        return "the name is reserved"
    if lowered in seen:
        return "the name is given twice, in another case"
    if not isinstance(value, str):
        return "the value must be a string"
    if not _VALUE.fullmatch(value):
        return "the value must be visible ASCII, with spaces only inside"
    return None
