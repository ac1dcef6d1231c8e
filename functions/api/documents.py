"""What a tenant writes about a schedule, judged field by field, and the Definition that it means."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import fields
import instants
import queries
from fields import Judge
from scheduler.calendar import spec, zones
from scheduler.calendar.spec import Gap, OnExcluded, Overlap
from scheduler.errors import InvalidInput, Problem
from scheduler.schedules import AfterOutage, Definition, OverlapPolicy, Pause
from scheduler.timing import (
    MOST_CAP,
    MOST_GRACE_SECONDS,
    MOST_JITTER_SECONDS,
    MOST_LISTED_DATES,
    MOST_OCCURRENCES,
    MOST_RUNS,
    Exclude,
    Late,
    Misfire,
    Timing,
)
from scheduler.webhook.addresses import TargetPolicy
from scheduler.webhook.headers import check_headers
from scheduler.webhook.pointer import reference_token
from scheduler.webhook.request import body_bytes
from scheduler.webhook.retry import DEFAULT
from scheduler.webhook.retry_document import parse_retry, retry_document
from scheduler.webhook.target import check_url

_KINDS = ("cron", "rate", "at")
MOST_OWN_DATES = 400
MOST_LISTS = 10
MOST_REASON = 500
MOST_LABELS = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _headers(value: object, pointer: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise fields.refused(pointer, "must be an object of names and values")
    return check_headers(value, pointer)


def _payload(value: object, pointer: str) -> bytes:
    return body_bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":")), pointer)


def _list_name(value: object, pointer: str) -> str:
    name = fields.string(value, pointer)
    if not queries.NAME.fullmatch(name):
        raise fields.refused(pointer, "is no name of an exclusion list")
    return name


def labels(value: object, pointer: str) -> tuple[tuple[str, str], ...]:
    """Judges labels: pairs, sorted by their names."""
    if not isinstance(value, dict) or len(value) > MOST_LABELS:
        raise fields.refused(pointer, f"must be an object of {MOST_LABELS} words at most, and their values")
    bad = [key for key, text in value.items() if not _is_label(key, text)]
    if bad:
        detail = (
            "a label's name has 1 to 63 and its value 0 to 63 of letters, digits and . _ / -, a letter or digit first"
        )
        raise InvalidInput(*(Problem(pointer=f"{pointer}/{reference_token(key[:200])}", detail=detail) for key in bad))
    return tuple(sorted(value.items()))


def _is_label(key: str, text: object) -> bool:
    return bool(queries.LABEL_KEY.fullmatch(key) and isinstance(text, str) and queries.LABEL_VALUE.fullmatch(text))


SCHEDULE_NAME = fields.name(1, 200)
PAUSE: dict[str, Judge] = {"until": fields.instant, "reason": fields.text(1, MOST_REASON)}
_JUDGES: dict[str, Judge] = {
    "name": SCHEDULE_NAME,
    "description": fields.prose(1, 1000),
    "labels": labels,
    "cron": fields.checked(lambda text: spec.cron(text, "UTC")),
    "rate": fields.checked(lambda text: spec.rate(text, _EPOCH)),
    "at": fields.checked(lambda text: spec.at(text, "UTC")),
    "timezone": fields.checked(zones.validate),
    "dst": fields.nested({"gap": fields.choice(Gap), "overlap": fields.choice(Overlap)}),
    "start_at": fields.instant,
    "end_at": fields.instant,
    "max_runs": fields.whole(1, MOST_RUNS),
    "jitter_seconds": fields.whole(0, MOST_JITTER_SECONDS),
    "misfire": fields.nested(
        {
            "policy": fields.choice(Late),
            "grace_seconds": fields.whole(0, MOST_GRACE_SECONDS),
            "cap": fields.whole(1, MOST_CAP),
        }
    ),
    "exclude": fields.nested(
        {
            "dates": fields.several(fields.day, most=MOST_OWN_DATES),
            "lists": fields.several(_list_name, most=MOST_LISTS),
            "on_excluded": fields.choice((OnExcluded.SKIP, OnExcluded.NEXT_DAY)),
        }
    ),
    # Judged under the deployment's policy.
    "url": fields.string,
    "headers": _headers,
    "payload": _payload,
    "retry": parse_retry,
    "retry_client_errors": fields.boolean,
    "overlap": fields.choice(OverlapPolicy),
    "after_outage": fields.choice(AfterOutage),
}
FIELDS = tuple(_JUDGES)


def definition_of(document: Mapping[str, Any], policy: TargetPolicy) -> Definition:
    """The Definition that a document means; InvalidInput with every bad field at once."""
    return _definition(_read(document, policy, _JUDGES, required=["url"]))


def preview_of(document: Mapping[str, Any], policy: TargetPolicy) -> tuple[Timing, int]:
    """The timing of a schedule that may be created, and how many occurrences are asked for; InvalidInput as for a creation."""
    judges = _JUDGES | {"count": fields.whole(1, MOST_OCCURRENCES)}
    read = _read(document, policy, judges, required=[])
    return _timing(read), read.get("count", queries.DEFAULT_COUNT)


def pause_of(document: Mapping[str, Any]) -> Pause:
    """How long, and why; InvalidInput."""
    read = fields.read(document, PAUSE)
    return Pause(until=read.get("until"), reason=read.get("reason"))


def dates_of(document: Mapping[str, Any]) -> tuple[date, ...]:
    """The dates of an exclusion list; InvalidInput."""
    judges = {"dates": fields.several(fields.day, most=MOST_LISTED_DATES)}
    dates: tuple[date, ...] = fields.read(document, judges, required=["dates"])["dates"]
    return dates


def _read(
    document: Mapping[str, Any], policy: TargetPolicy, judges: dict[str, Judge], *, required: list[str]
) -> dict[str, Any]:
    problems = list(_kind_problems(document))
    try:
        read = fields.read(
            document, judges | {"url": fields.checked(lambda url: check_url(url, policy))}, required=required
        )
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput(*problems)
    return read


def edited(old: Definition, changes: dict[str, Any], policy: TargetPolicy) -> Definition:
    """The Definition after a change: each field given replaces that field whole, a timing kind the former kind too."""
    kept = fields_of(old)
    if any(changes.get(kind) is not None for kind in _KINDS):
        kept = {name: value for name, value in kept.items() if name not in _KINDS}
    new = definition_of(kept | {"payload": None} | changes, policy)
    return new if "payload" in changes else dataclasses.replace(new, payload=old.payload)


def fields_of(definition: Definition) -> dict[str, Any]:
    """The document that means this Definition, every optional field written out."""
    timing = definition.timing
    kinds = {"cron": timing.cron, "rate": timing.rate, "at": timing.at}
    return {
        "name": definition.name,
        "description": definition.description,
        "labels": dict(definition.labels),
        **{kind: text for kind, text in kinds.items() if text is not None},
        "timezone": timing.timezone,
        "dst": {"gap": timing.gap.value, "overlap": timing.overlap.value},
        "start_at": timing.start_at and instants.written(timing.start_at),
        "end_at": timing.end_at and instants.written(timing.end_at),
        "max_runs": timing.max_runs,
        "jitter_seconds": timing.jitter_seconds,
        "misfire": {
            "policy": timing.misfire.policy.value,
            "grace_seconds": timing.misfire.grace_seconds,
            "cap": timing.misfire.cap,
        },
        "exclude": {
            "dates": [day.isoformat() for day in timing.exclude.dates],
            "lists": list(timing.exclude.lists),
            "on_excluded": timing.exclude.on_excluded.value,
        },
        "url": definition.url,
        "headers": dict(definition.headers),
        "payload": None if definition.payload is None else json.loads(definition.payload),
        "retry": retry_document(definition.retry),
        "retry_client_errors": definition.retry_client_errors,
        "overlap": definition.overlap.value,
        "after_outage": definition.after_outage.value,
    }


def _timing(read: Mapping[str, Any]) -> Timing:
    dst, exclude = read.get("dst", {}), read.get("exclude", {})
    return Timing(
        cron=read.get("cron"),
        rate=read.get("rate"),
        at=read.get("at"),
        timezone=read.get("timezone", "UTC"),
        gap=dst.get("gap", Gap.SHIFT),
        overlap=dst.get("overlap", Overlap.FIRST),
        start_at=read.get("start_at"),
        end_at=read.get("end_at"),
        max_runs=read.get("max_runs"),
        jitter_seconds=read.get("jitter_seconds", 0),
        misfire=Misfire(**read.get("misfire", {})),
        exclude=Exclude(
            dates=tuple(sorted(set(exclude.get("dates", ())))),
            lists=tuple(sorted(set(exclude.get("lists", ())))),
            on_excluded=exclude.get("on_excluded", OnExcluded.SKIP),
        ),
    )


def _definition(read: Mapping[str, Any]) -> Definition:
    return Definition(
        name=read.get("name"),
        description=read.get("description"),
        labels=read.get("labels", ()),
        timing=_timing(read),
        url=read["url"],
        headers=read.get("headers", ()),
        payload=read.get("payload"),
        retry=read.get("retry", DEFAULT),
        retry_client_errors=read.get("retry_client_errors", True),
        overlap=read.get("overlap", OverlapPolicy.ALLOW),
        after_outage=read.get("after_outage", AfterOutage.ALL),
    )


def _kind_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    given = [kind for kind in _KINDS if document.get(kind) is not None]
    if not given:
        yield Problem(pointer="", detail="one of cron, rate and at is required")
    for kind in given[1:]:
        yield Problem(pointer=f"/{kind}", detail=f"can't be given beside {given[0]}: one of cron, rate and at")
