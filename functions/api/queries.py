"""Reads what a request says outside its body: ids in the path, limits and cursors in the query."""

import base64
import binascii
import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import instants
from scheduler.errors import InvalidInput, NotFound, Problem
from scheduler.timing import LONGEST_LIST_NAME, MOST_OCCURRENCES

NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST_LIST_NAME}}}", re.ASCII)
LABEL_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}", re.ASCII)
LABEL_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}|", re.ASCII)
DEFAULT_COUNT = 10
DEFAULT_LIMIT = 50
MAX_LIMIT = 100
_LONGEST_CURSOR = 200
_FIRST, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)

type Keyset = tuple[datetime, UUID]
OLDEST: Keyset = (_FIRST, UUID(int=0))
NEWEST: Keyset = (_END, UUID(int=0))


class BadParameter(InvalidInput):
    """A query parameter that can't be taken; its problem has no pointer, since it is in no document."""

    def __init__(self, parameter: str, detail: str) -> None:
        super().__init__(Problem(pointer="", detail=detail))
        self.parameter = parameter


def path_id(text: str) -> UUID:
    """The id of a path; NotFound for any text that is not a UUID in its usual form, since nothing has such an id."""
    try:
        found = UUID(text)
    except ValueError:
        raise NotFound(f"{text[:64]!a} is no id") from None
    if str(found) != text.lower():
        raise NotFound(f"{text[:64]!a} is no id")
    return found


def path_name(text: str) -> str:
    """The name of a path; NotFound for any text that can be no name, so that none needs to be escaped in a path."""
    if not NAME.fullmatch(text):
        raise NotFound(
            f"{text[:64]!a} is no name: 1 to {LONGEST_LIST_NAME} of a-z, A-Z, 0-9, dot, hyphen and underscore"
        )
    return text


def count(query: Mapping[str, str]) -> int:
    """How many of a preview's occurrences; BadParameter."""
    for name in query:
        if name != "count":
            raise BadParameter(name[:64], "is not a parameter here; count is")
    return _whole("count", query.get("count"), DEFAULT_COUNT, MOST_OCCURRENCES)


def page(query: Mapping[str, str], first: Keyset, *, also: Collection[str] = ()) -> tuple[int, Keyset]:
    """The limit and the keyset of a list's query; BadParameter for what is wrong, or neither that nor a filter in `also`."""
    known = ("limit", "cursor", *also)
    for name in query:
        if name not in known:
            raise BadParameter(name[:64], f"is not a parameter here; {', '.join(known)} are")
    return _whole("limit", query.get("limit"), DEFAULT_LIMIT, MAX_LIMIT), _keyset(
        query["cursor"]
    ) if "cursor" in query else first


def choices[E: StrEnum](query: Mapping[str, str], name: str, kinds: tuple[E, ...]) -> tuple[E, ...]:
    """Some words of an enumeration, separated by commas; all of them where the parameter is not given. BadParameter."""
    if name not in query:
        return kinds
    words = {kind.value: kind for kind in kinds}
    given = query[name].split(",")
    if any(word not in words for word in given):
        raise BadParameter(name, f"must be one or more of {', '.join(words)}, separated by commas")
    return tuple(words[word] for word in given)


def labels(query: Mapping[str, str]) -> dict[str, str]:
    """Labels as `key:value`, separated by commas, that must all be there. BadParameter."""
    if "label" not in query:
        return {}
    pairs = [pair.partition(":") for pair in query["label"].split(",")]
    if not all(LABEL_KEY.fullmatch(key) and colon and LABEL_VALUE.fullmatch(value) for key, colon, value in pairs):
        raise BadParameter("label", "must be one or more of key:value, separated by commas")
    return {key: value for key, _, value in pairs}


def instant(query: Mapping[str, str], name: str) -> datetime | None:
    """A point in time, or None where the parameter is not given. BadParameter."""
    try:
        return instants.read(query[name], "") if name in query else None
    except InvalidInput as error:
        raise BadParameter(name, error.problems[0].detail) from None


def identifier(query: Mapping[str, str], name: str) -> UUID | None:
    """An id, or None where the parameter is not given. BadParameter for any text that is none."""
    try:
        return path_id(query[name]) if name in query else None
    except NotFound:
        raise BadParameter(name, "must be a UUID in its usual form") from None


def cursor(moment: datetime, id: UUID) -> str:
    """An opaque text for the last item of a page."""
    data = json.dumps([moment.isoformat(), str(id)], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _whole(name: str, text: str | None, default: int, most: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= most):
        raise BadParameter(name, f"must be a whole number from 1 to {most}")
    return int(text)


def _keyset(text: str) -> Keyset:
    try:
        moment, id = _parts(text)
        at, last = datetime.fromisoformat(moment), UUID(id)
        if _FIRST <= at < _END:
            return at, last
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError):
        pass  # whatever it is, it is no cursor of ours
    raise BadParameter("cursor", "is not a next_cursor of this list")


def _parts(text: str) -> Any:
    if len(text) > _LONGEST_CURSOR:
        raise ValueError("too long")
    return json.loads(base64.urlsafe_b64decode(text.encode("ascii") + b"=="))
