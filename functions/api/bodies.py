"""Reads a request's body: JSON (RFC 8259) with no room for two readings, or a refusal that says where it ends."""

import base64
import binascii
import json
from typing import Any, NoReturn

from scheduler.errors import CarillonError, InvalidInput, Problem

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
_INTEGERS = range(-(2**63), 2**63)
_LONGEST_INTEGER = 20


class BodyTooLarge(CarillonError):
    """The body is longer than MAX_BYTES; it was not read."""


def read_object(event: dict[str, Any]) -> dict[str, Any]:
    """The body of a REST event as an object. InvalidInput: no JSON, twofold or unbounded JSON, no object; BodyTooLarge."""
    document = _read(_text(event))
    if not isinstance(document, dict):
        raise _refused("the body must be a JSON object")
    _check_depth(document)
    return document


def _text(event: dict[str, Any]) -> str:
    body: str = event.get("body") or ""
    # In base64 a third longer; what is longer still need not be decoded to be refused.
    if len(body) > MAX_BYTES * 2:
        raise BodyTooLarge(f"the body is longer than {MAX_BYTES} bytes")
    try:
        data = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
        text = data.decode()
    except (binascii.Error, UnicodeError):
        raise _refused("the body is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise _refused("the body begins with a byte order mark (U+FEFF): leave it out")
    if len(data) > MAX_BYTES:
        raise BodyTooLarge(f"{len(data)} bytes; at most {MAX_BYTES} are taken")
    return text


def _read(text: str) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise _refused(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise _too_deep() from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _refused(f"the name {twice[:64]!a} is given twice in one object")
    return made


def _integer(digits: str) -> int:
    # The length first: converting a long text costs its square.
    if len(digits) > _LONGEST_INTEGER or int(digits) not in _INTEGERS:
        raise _refused(f"the integer {digits[:24]}{'…' if len(digits) > 24 else ''} does not fit 64 bits")
    return int(digits)


def _number(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _refused(f"the number {digits[:24]} is too large")
    return number


def _constant(name: str) -> NoReturn:
    raise _refused(f"{name} is not JSON")


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise _too_deep()


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep() -> InvalidInput:
    return _refused(f"the body is nested more than {MAX_DEPTH} deep")


def _refused(detail: str) -> InvalidInput:
    return InvalidInput(Problem(pointer="", detail=detail))
