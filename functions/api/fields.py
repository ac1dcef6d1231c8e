"""Reads the fields of a tenant's document: each by a judge of its own, and every one that can't be taken named at once."""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import instants
from scheduler.errors import InvalidExpression, InvalidInput, Problem
from scheduler.webhook.pointer import reference_token

# Of an unknown field's name as it is shown.
_LONGEST_NAME = 200
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CONTROLS = ("Cc", "Cs")

# What a value means; InvalidInput, with pointers that begin with the one given, where it can't be taken.
type Judge = Callable[[Any, str], Any]


def read(
    document: object, judges: Mapping[str, Judge], *, required: Collection[str] = (), at: str = ""
) -> dict[str, Any]:
    """What each field means, by name; null is the same as absent. `at` is the pointer of the document itself.

    InvalidInput: no object, an unknown field, a required one that is missing, and whatever the judges refuse, all at once.
    """
    if not isinstance(document, dict):
        raise refused(at, "must be an object")
    read: dict[str, Any] = {}
    problems = [
        Problem(pointer=f"{at}/{name}", detail="is required") for name in required if document.get(name) is None
    ]
    for name, value in document.items():
        pointer = f"{at}/{reference_token(name[:_LONGEST_NAME])}"
        if name not in judges:
            problems.append(Problem(pointer=pointer, detail=f"is not a field here; the fields are {', '.join(judges)}"))
        elif value is not None:
            try:
                read[name] = judges[name](value, pointer)
            except InvalidInput as error:
                problems += _placed(error, pointer)
    if problems:
        raise InvalidInput(*problems)
    return read


def refused(pointer: str, detail: str) -> InvalidInput:
    """One bad field."""
    return InvalidInput(Problem(pointer=pointer, detail=detail))


def string(value: object, pointer: str) -> str:
    """Any text that UTF-8 can carry."""
    if not isinstance(value, str):
        raise refused(pointer, "must be a string")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise refused(pointer, "must not hold lone surrogates")
    return value


def text(least: int, most: int) -> Judge:
    """One line of so many characters."""

    def judge(value: object, pointer: str) -> str:
        line = string(value, pointer)
        if not least <= len(line) <= most:
            raise refused(pointer, f"must have {least} to {most} characters")
        if any(unicodedata.category(character) in _CONTROLS for character in line):
            raise refused(pointer, "must not hold control characters")
        return line

    return judge


def name(least: int, most: int) -> Judge:
    """One line that is called: two names that differ only at their edges would be taken for one."""

    def judge(value: object, pointer: str) -> str:
        called: str = text(least, most)(value, pointer)
        if called != called.strip():
            raise refused(pointer, "must not begin or end with a space")
        return called

    return judge


def prose(least: int, most: int) -> Judge:
    """Lines of so many characters together."""

    def judge(value: object, pointer: str) -> str:
        lines = string(value, pointer)
        text(least, most)(lines.replace("\n", " ").replace("\t", " "), pointer)
        return lines

    return judge


def checked(check: Callable[[str], object]) -> Judge:
    """A text that `check` raises no InvalidInput for; as it was written."""

    def judge(value: object, pointer: str) -> str:
        written = string(value, pointer)
        check(written)
        return written

    return judge


def boolean(value: object, pointer: str) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise refused(pointer, "must be true or false")
    return value


def whole(least: int, most: int) -> Judge:
    """A whole number in this range; 5.0 and 5e0 are 5, as JSON Schema says."""

    def judge(value: object, pointer: str) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise refused(pointer, f"must be a whole number from {least} to {most}")
        return value

    return judge


def choice[E: StrEnum](kind: Collection[E]) -> Judge:
    """One word of an enumeration, or of some of its members."""
    words = {member.value: member for member in kind}

    def judge(value: object, pointer: str) -> E:
        if not isinstance(value, str) or value not in words:
            raise refused(pointer, f"must be one of {', '.join(words)}")
        return words[value]

    return judge


def several(judge_one: Judge, *, most: int) -> Judge:
    """A list of at most so many values; all bad ones are named."""

    def judge(value: object, pointer: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > most:
            raise refused(pointer, f"must be a list of {most} values at most")
        judges = {str(place): judge_one for place in range(len(value))}
        # Null is no value of a list.
        given = {str(place): value for place, value in enumerate(value)}
        return tuple(read(given, judges, required=judges, at=pointer).values())

    return judge


def nested(judges: Mapping[str, Judge], *, required: Collection[str] = ()) -> Judge:
    """An object of such fields."""
    return lambda value, pointer: read(value, judges, required=required, at=pointer)


def instant(value: object, pointer: str) -> datetime:
    """A point in time with its offset, in whole seconds."""
    return instants.read(value, pointer)


def day(value: object, pointer: str) -> date:
    """A date, `YYYY-MM-DD`."""
    text = string(value, pointer)
    try:
        found = date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        found = None
    if found is None or not 1970 <= found.year < 9900:
        raise refused(pointer, "must be a date in the years 1970 to 9899, such as 2026-12-24")
    return found


def identifier(value: object, pointer: str) -> UUID:
    """A UUID in its usual form."""
    try:
        found = UUID(string(value, pointer))
    except ValueError:
        found = None
    if found is None or str(found) != str(value).lower():
        raise refused(pointer, "must be a UUID in its usual form")
    return found


def _placed(error: InvalidInput, pointer: str) -> tuple[Problem, ...]:
    if isinstance(error, InvalidExpression):
        return (Problem(pointer=pointer, detail=str(error)),)
    return error.problems
