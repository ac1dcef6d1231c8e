"""Reads what a request's headers say: the state that it is meant for, and the key that makes it happen once."""

import hashlib
import re
from typing import Any

from scheduler.errors import InvalidInput, Problem
from scheduler.preconditions import ANYHOW, Precondition

# RFC 9110, section 8.8.3: a comma may be part of a tag.
_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS = re.compile(rf"[ \t,]*{_TAG}(?:[ \t]*,[ \t,]*{_TAG})*[ \t,]*")
_EACH = re.compile(_TAG)
_KEY = re.compile(r"[\x20-\x7e]{1,255}")


class BadHeader(InvalidInput):
    """A header that can't be taken; its problem has no pointer, since it is in no document."""

    def __init__(self, header: str, detail: str) -> None:
        super().__init__(Problem(pointer="", detail=detail))
        self.header = header


def precondition(event: dict[str, Any]) -> Precondition:
    """What If-Match and If-None-Match say before a change. BadHeader."""
    match, none_match = _header(event, "If-Match"), _header(event, "If-None-Match")
    if none_match is None:
        return ANYHOW if match is None else _meant(match)
    if match is not None or none_match.strip() != "*":
        raise BadHeader("If-None-Match", "must be * before a change, and stand without If-Match")
    return Precondition(there=False)


def refuse_any(event: dict[str, Any]) -> None:
    """BadHeader for a condition on a request that makes a thing, or concerns many: it would be taken for a promise."""
    for name in ("If-Match", "If-None-Match"):
        if _header(event, name) is not None:
            raise BadHeader(name, "can't be kept here: it is for a request about one thing that is there")


def was_seen(event: dict[str, Any], etag: str) -> bool:
    """Whether the caller of a read has it under this ETag already: If-None-Match, where strong and weak are the same."""
    text = _header(event, "If-None-Match") or ""
    return text.strip() == "*" or etag.removeprefix("W/") in (tag.removeprefix("W/") for tag in _EACH.findall(text))


def _meant(text: str) -> Precondition:
    if text.strip() == "*":
        return Precondition(there=True)
    if not _TAGS.fullmatch(text):
        raise BadHeader("If-Match", "must be * or the ETag of an answer, in its quotation marks")
    # Of ours the part before the hyphen names the state. A weak tag keeps its W/, and never matches (RFC 9110, section 13.1.1).
    tags = (tag.strip('"').partition("-")[0] for tag in _EACH.findall(text))
    return Precondition(there=True, tags=frozenset(tags))


def idempotency_key(event: dict[str, Any]) -> str | None:
    """The caller's name for this request, if it gives one. BadHeader."""
    key = _header(event, "Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise BadHeader("Idempotency-Key", "must be 1 to 255 printable ASCII characters")
    return key


def fingerprint(event: dict[str, Any]) -> bytes:
    """SHA-256 of what makes two requests the same one: method, path and body."""
    parts = (event["httpMethod"], event["path"], event.get("body") or "")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def _header(event: dict[str, Any], name: str) -> str | None:
    """A header, whatever its case, its lines joined as RFC 9110, section 5.3, says; API Gateway hands them on as they came."""
    several = {given.lower(): values for given, values in (event.get("multiValueHeaders") or {}).items()}
    values = several.get(name.lower())
    return ", ".join(values) if values else None
