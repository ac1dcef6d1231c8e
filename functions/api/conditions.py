"""Reads what a request's headers say: the versions that a change is meant for, and the key that makes it happen once."""

import hashlib
import re
from typing import Any

from scheduler.errors import InvalidInput, Problem

# RFC 9110, section 8.8.3; a weak tag never matches in If-Match (section 13.1.1).
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_VERSION = re.compile(r'"([1-9][0-9]{0,9})"')
_KEY = re.compile(r"[\x20-\x7e]{1,255}")


class BadHeader(InvalidInput):
    """A header that can't be taken; its problem has no pointer, since it is in no document."""

    def __init__(self, header: str, detail: str) -> None:
        super().__init__(Problem(pointer="", detail=detail))
        self.header = header


def entity_tag(version: int) -> str:
    """The strong tag of a schedule: its version. What is computed anew at each read, such as next_run_at, is not part of it."""
    return f'"{version}"'


def if_match(event: dict[str, Any]) -> frozenset[int] | None:
    """The versions that If-Match names; None where it is not sent or takes any. BadHeader."""
    text = _header(event, "if-match")
    if text is None or text.strip() == "*":
        return None
    tags = [tag.strip() for tag in text.split(",")]
    if not all(_TAG.fullmatch(tag) for tag in tags):
        raise BadHeader("If-Match", "must be * or the ETag of an answer, in its quotation marks")
    return frozenset(int(found[1]) for tag in tags if (found := _VERSION.fullmatch(tag)))


def if_none_match_any(event: dict[str, Any]) -> bool:
    """Whether the caller wants to create and never to replace: `If-None-Match: *`. BadHeader for a tag."""
    text = _header(event, "if-none-match")
    if text is not None and text.strip() != "*":
        raise BadHeader("If-None-Match", "must be * here")
    return text is not None


def idempotency_key(event: dict[str, Any]) -> str | None:
    """The caller's name for this request, if it gives one. BadHeader."""
    key = _header(event, "idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise BadHeader("Idempotency-Key", "must be 1 to 255 printable ASCII characters")
    return key


def fingerprint(event: dict[str, Any]) -> bytes:
    """SHA-256 of what makes two requests the same one: method, path and body."""
    parts = (event["httpMethod"], event["path"], event.get("body") or "")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def _header(event: dict[str, Any], name: str) -> str | None:
    """A header, whatever its case; API Gateway hands them on as they came."""
    values = [value for given, value in (event.get("headers") or {}).items() if given.lower() == name]
    return str(values[0]) if values else None
