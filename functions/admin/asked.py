"""Reads what an operator asks for."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from scheduler.credentials import Scope
from scheduler.errors import InvalidInput, Problem
from scheduler.signing_secrets import DEFAULT_OVERLAP, MAX_OVERLAP

# What the audit says where nobody gives a name. AWS CloudTrail has who invoked the function.
UNNAMED = "unnamed"
_LONGEST = 200
_MOST_SECONDS = int(MAX_OVERLAP.total_seconds())


def only(event: Mapping[str, Any], fields: Collection[str]) -> None:
    """InvalidInput for each field that the action does not read: one that is misspelt would leave its default in force."""
    known = ("action", "operator", *fields)
    detail = f"is not a field here; the fields are {', '.join(known)}"
    if problems := [Problem(pointer=f"/{name}", detail=detail) for name in event if name not in known]:
        raise InvalidInput(*problems)


def operator(event: Mapping[str, Any]) -> str:
    """Who asks, for the audit. InvalidInput for what is no name."""
    name = event.get("operator", UNNAMED)
    if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST or not name.isprintable():
        raise _refused("/operator", f"must be a printable text of 1 to {_LONGEST} characters")
    return name


def tenant_id(event: Mapping[str, Any]) -> UUID:
    """The tenant that is meant. InvalidInput."""
    try:
        return UUID(str(event.get("tenant_id")))
    except ValueError:
        raise _refused("/tenant_id", "must be a tenant's id") from None


def new_tenant_id(event: Mapping[str, Any]) -> UUID | None:
    """The id for a new tenant, where the operator chose one, so that the action can be repeated. InvalidInput."""
    return tenant_id(event) if "tenant_id" in event else None


def request_id(event: Mapping[str, Any]) -> str | None:
    """The operator's name for a request that must not be done twice. InvalidInput."""
    given = event.get("request_id")
    if given is not None and (not isinstance(given, str) or not 1 <= len(given) <= _LONGEST or not given.isascii()):
        raise _refused("/request_id", f"must be 1 to {_LONGEST} ASCII characters")
    return given


def overlap(event: Mapping[str, Any]) -> timedelta:
    """How long the old secrets go on signing. InvalidInput."""
    seconds = event.get("overlap_seconds", int(DEFAULT_OVERLAP.total_seconds()))
    if type(seconds) is not int or not 0 <= seconds <= _MOST_SECONDS:
        raise _refused("/overlap_seconds", f"must be a whole number from 0 to {_MOST_SECONDS}")
    return timedelta(seconds=seconds)


def scopes(event: Mapping[str, Any]) -> tuple[Scope, ...]:
    """What a new key may do; everything where nothing is said. InvalidInput."""
    given = event.get("scopes", list(Scope))
    if not isinstance(given, list) or not given or any(each not in list(Scope) for each in given):
        raise _refused("/scopes", f"must be a list of {', '.join(Scope)}")
    return tuple(Scope(each) for each in given)


def limits(event: Mapping[str, Any]) -> dict[str, object]:
    """The limits to set. InvalidInput."""
    given = event.get("limits")
    if not isinstance(given, dict) or not given:
        raise _refused("/limits", "must be an object of limits and their values")
    return given


def _refused(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(Problem(pointer=pointer, detail=detail))
