"""Reads what a request says outside its body: ids in the path, limits and cursors in the query."""

import base64
import binascii
import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import fields
from fields import Judge
from scheduler.errors import InvalidInput, NotFound
from scheduler.timing import LONGEST_LIST_NAME

NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_LIST_NAME - 1}}}", re.ASCII)
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


class BadParameters(InvalidInput):
    """Query parameters that can't be taken; the pointers of its problems are their names."""


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
            f"{text[:64]!a} is no name: a letter or digit, then letters, digits, dots, hyphens and underscores;"
            f" {LONGEST_LIST_NAME} at most"
        )
    return text


def read(query: Mapping[str, Sequence[str]], judges: Mapping[str, Judge]) -> dict[str, Any]:
    """What each parameter means, by name. BadParameters: every one that is unknown, repeated or can't be taken."""
    found: dict[str, Any] = {}
    problems = []
    for name, values in query.items():
        try:
            found[name] = _one(name, values, judges)
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise BadParameters(*problems)
    return found


def refuse_any(query: Mapping[str, Sequence[str]]) -> None:
    """BadParameters for any parameter: what a change is asked for stands in its body."""
    read(query, {})


def _one(name: str, values: Sequence[str], judges: Mapping[str, Judge]) -> Any:
    if name not in judges:
        others = f"; {', '.join(judges)} are" if judges else ", nor is any other"
        raise fields.refused(name[:64], f"is not a parameter here{others}")
    if len(values) > 1:
        raise fields.refused(name, "is given more than once; where it takes several values, commas separate them")
    return judges[name](values[0], name)


def choices[E: StrEnum](kinds: Collection[E]) -> Judge:
    """Some words of an enumeration, separated by commas."""
    words = {kind.value: kind for kind in kinds}

    def judge(text: str, name: str) -> tuple[E, ...]:
        given = text.split(",")
        if any(word not in words for word in given):
            raise fields.refused(name, f"must be one or more of {', '.join(words)}, separated by commas")
        return tuple(words[word] for word in given)

    return judge


def labels(text: str, name: str) -> dict[str, str]:
    """Labels as `key:value`, separated by commas, that must all be there."""
    pairs = [pair.partition(":") for pair in text.split(",")]
    if not all(LABEL_KEY.fullmatch(key) and colon and LABEL_VALUE.fullmatch(value) for key, colon, value in pairs):
        raise fields.refused(name, "must be one or more of key:value, separated by commas")
    wanted = {key: value for key, _, value in pairs}
    if len(wanted) < len(pairs):
        raise fields.refused(name, "gives a key twice, and a label has one value")
    return wanted


def number(most: int) -> Judge:
    """A whole number from 1 on, in digits."""

    def judge(text: str, name: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= most):
            raise fields.refused(name, f"must be a whole number from 1 to {most}")
        return int(text)

    return judge


def page(of: str) -> dict[str, Judge]:
    """The parameters of every list. `of` says which list a cursor is good for."""

    def judge(text: str, name: str) -> Keyset:
        try:
            listed, moment, id = _parts(text)
            at, last = datetime.fromisoformat(moment), UUID(id)
            if listed == of and _FIRST <= at < _END:
                return at, last
        except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError):
            pass  # whatever it is, it is no cursor of ours
        raise fields.refused(name, "is not a next_cursor of this list")

    return {"limit": number(MAX_LIMIT), "cursor": judge}


def cursor(of: str, moment: datetime, id: UUID) -> str:
    """An opaque text for the last item of a page of that list."""
    data = json.dumps([of, moment.isoformat(), str(id)], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _parts(text: str) -> Any:
    if len(text) > _LONGEST_CURSOR:
        raise ValueError("too long")
    return json.loads(base64.urlsafe_b64decode(text.encode("ascii") + b"=="))
