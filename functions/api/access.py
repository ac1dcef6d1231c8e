"""The routes about a tenant's own access: API keys, signing secrets, and what it has and may."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import fields
import queries
from answers import answer, no_content, state
from bodies import read_object
from fields import Judge
from instants import written
from parts import Parts, Request
from response import Response
from scheduler.credentials import ApiKey, Credentials, Scope
from scheduler.limits import usage
from scheduler.signing_secrets import DEFAULT_OVERLAP, MAX_OVERLAP, SecretInForce, SigningSecrets, tag_of_all

_KEYS = queries.page("keys")
_KEY: dict[str, Judge] = {
    "name": fields.name(1, 200),
    "scopes": fields.several(fields.choice(Scope), most=len(Scope)),
    "expires_at": fields.instant,
}


def list_keys(parts: Parts, request: Request) -> Response:
    asked = queries.read(request.query, _KEYS)
    limit, after = asked.get("limit", queries.DEFAULT_LIMIT), asked.get("cursor", queries.OLDEST)
    found = _credentials(parts).keys(request.tenant_id, after=after, most=limit + 1)
    shown = found[:limit]
    last = queries.cursor("keys", shown[-1].created_at, shown[-1].id) if len(found) > limit else None
    return answer(200, {"keys": [_key(each) for each in shown], "next_cursor": last})


def get_key(parts: Parts, request: Request) -> Response:
    key = _credentials(parts).key(request.tenant_id, queries.path_id(request.ids["key_id"]))
    return state(200, _key(key), key.tag)


def issue_key(parts: Parts, request: Request) -> Response:
    wanted = _key_of(read_object(request.event))
    issued = _credentials(parts).issue(
        request.tenant_id,
        uuid4(),
        name=wanted.get("name"),
        scopes=wanted["scopes"],
        expires_at=wanted.get("expires_at"),
        entropy=os.urandom,
    )
    location = f"{request.path}/{issued.key.id}"
    return answer(201, _key(issued.key) | {"api_key": issued.text}, Location=location, Cache_Control="no-store")


def revoke_key(parts: Parts, request: Request) -> Response:
    _credentials(parts).revoke(request.tenant_id, queries.path_id(request.ids["key_id"]), only=request.only)
    return no_content()


def list_secrets(parts: Parts, request: Request) -> Response:
    secrets = _secrets(parts).list(request.tenant_id)
    return state(200, {"signing_secrets": [_secret(each) for each in secrets]}, tag_of_all(secrets))


def get_secret(parts: Parts, request: Request) -> Response:
    secret = _secrets(parts).get(request.tenant_id, queries.path_id(request.ids["secret_id"]))
    return state(200, _secret(secret), secret.tag)


def rotate_secret(parts: Parts, request: Request) -> Response:
    overlap = _overlap_of(read_object(request.event) if request.event.get("body") else {})
    made = _secrets(parts).rotate(
        request.tenant_id, uuid4(), parts.keys, overlap=overlap, entropy=os.urandom, only=request.only
    )
    location = f"{request.path}/{made.secret.id}"
    document = _secret(made.secret) | {"signing_secret": made.text}
    return answer(201, document, Location=location, Cache_Control="no-store")


def revoke_secret(parts: Parts, request: Request) -> Response:
    _secrets(parts).revoke(request.tenant_id, queries.path_id(request.ids["secret_id"]), only=request.only)
    return no_content()


def get_usage(parts: Parts, request: Request) -> Response:
    used = usage(parts.database, parts.clock, request.tenant_id)
    limits = used.limits
    return answer(
        200,
        {
            "schedules": {"used": used.schedules, "limit": limits.schedules},
            "smallest_interval_seconds": limits.interval_seconds,
            "payload_bytes": limits.payload_bytes,
            "requests_per_second": limits.requests_per_second,
            "runs_of_the_last_24_hours": used.runs,
        },
    )


def _key(key: ApiKey) -> dict[str, Any]:
    moments = ("created_at", "expires_at", "revoked_at", "last_used_at")
    return {
        "id": str(key.id),
        "name": key.name,
        "prefix": key.prefix,
        "scopes": list(key.scopes),
        **{name: (moment := getattr(key, name)) and written(moment) for name in moments},
    }


def _secret(secret: SecretInForce) -> dict[str, Any]:
    return {
        "id": str(secret.id),
        "created_at": written(secret.created_at),
        "expires_at": secret.expires_at and written(secret.expires_at),
    }


def _key_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """What an API key is to be: name, scopes, expires_at; InvalidInput."""
    read = fields.read(document, _KEY, required=["scopes"])
    if not read["scopes"] or len(set(read["scopes"])) < len(read["scopes"]):
        raise fields.refused("/scopes", f"must be one or more of {', '.join(Scope)}, each once")
    return read


def _overlap_of(document: Mapping[str, Any]) -> timedelta:
    """How long the old signing secrets go on signing; InvalidInput."""
    most = int(MAX_OVERLAP.total_seconds())
    read = fields.read(document, {"overlap_seconds": fields.whole(0, most)})
    return timedelta(seconds=read.get("overlap_seconds", DEFAULT_OVERLAP.total_seconds()))


def _credentials(parts: Parts) -> Credentials:
    return Credentials(database=parts.database, clock=parts.clock)


def _secrets(parts: Parts) -> SigningSecrets:
    return SigningSecrets(database=parts.database, clock=parts.clock)
