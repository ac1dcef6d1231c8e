"""From an exception's type to its problem document (RFC 9457); docs/errors.md is the catalogue."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from bodies import BodyTooLarge
from conditions import BadHeader
from queries import BadParameters
from response import Response
from scheduler.aws.keys import KeyUnavailable
from scheduler.errors import (
    CarillonError,
    Conflict,
    DatabaseUnavailable,
    InvalidInput,
    KeyReused,
    LimitExceeded,
    NoTenant,
    NotFound,
    PreconditionFailed,
    Problem,
)

CONTENT_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:problem-type:carillon:"
# Of one answer: a body can hold more bad fields than an answer has room for.
MOST_ERRORS = 100
_RETRY_SECONDS = 5


class Forbidden(CarillonError):
    """The API key is valid, and lacks the scope that the route needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One line of the catalogue. `detail` None: the exception's own text is meant for the caller."""

    status: int
    name: str
    title: str
    detail: str | None = None


_UNAVAILABLE = Kind(
    status=503,
    name="unavailable",
    title="Temporarily unavailable",
    detail="The request may not have been carried out; look, or try again, in a few seconds.",
)

_FORBIDDEN = Kind(status=403, name="forbidden", title="Forbidden")

KINDS: dict[type[Exception], Kind] = {
    InvalidInput: Kind(
        status=400,
        name="invalid-input",
        title="Invalid input",
        detail="Nothing was stored: see errors for each field that can't be taken.",
    ),
    Forbidden: _FORBIDDEN,
    NoTenant: _FORBIDDEN,
    NotFound: Kind(status=404, name="not-found", title="Not found"),
    Conflict: Kind(status=409, name="conflict", title="Conflict"),
    PreconditionFailed: Kind(status=412, name="precondition-failed", title="Precondition failed"),
    BodyTooLarge: Kind(status=413, name="body-too-large", title="Body too large"),
    KeyReused: Kind(status=422, name="idempotency-key-reused", title="Idempotency key reused"),
    LimitExceeded: Kind(status=429, name="limit-exceeded", title="Limit exceeded"),
    DatabaseUnavailable: _UNAVAILABLE,
    KeyUnavailable: _UNAVAILABLE,
    # Whatever nobody foresaw: it is logged with its trace, and its text is not for the caller.
    Exception: Kind(
        status=500,
        name="internal",
        title="Internal error",
        detail="The request failed on our side; name the request_id when you report it.",
    ),
}


def kind_of(error: Exception) -> Kind:
    """The line of the nearest type that has one."""
    return next(KINDS[each] for each in type(error).__mro__ if each in KINDS)


def problem(error: Exception, request_id: str) -> Response:
    """The answer to an error."""
    kind = kind_of(error)
    document: dict[str, object] = {
        "type": TYPE_PREFIX + kind.name,
        "title": kind.title,
        "status": kind.status,
        "detail": kind.detail or str(error),
        "request_id": request_id,
    }
    if isinstance(error, InvalidInput):
        document["errors"] = list(_errors(error))
    headers: dict[str, str] = {}
    if kind.status == 503:
        headers["Retry-After"] = str(_RETRY_SECONDS)
    if isinstance(error, LimitExceeded):
        headers["Retry-After"] = str(error.retry_seconds)
    # ASCII, since a caller's lone surrogate may be part of what is wrong.
    return Response(status=kind.status, content_type=CONTENT_TYPE, body=json.dumps(document), headers=headers)


def _errors(error: InvalidInput) -> Iterator[dict[str, str]]:
    for each in error.problems[:MOST_ERRORS]:
        yield _place(error, each) | {"detail": each.detail}


def _place(error: InvalidInput, each: Problem) -> dict[str, str]:
    if isinstance(error, BadParameters):
        return {"parameter": each.pointer}
    if isinstance(error, BadHeader):
        return {"header": error.header}
    return {"pointer": each.pointer}
