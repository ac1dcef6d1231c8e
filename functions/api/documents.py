"""What a tenant writes about a schedule, judged field by field, and the Definition that it means."""

import dataclasses
import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import instants
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails, PydanticCustomError
from scheduler.calendar import spec, zones
from scheduler.calendar.spec import Gap, Overlap
from scheduler.errors import InvalidExpression, InvalidInput, Problem
from scheduler.schedules import AfterOutage, Definition, OverlapPolicy
from scheduler.timing import Timing
from scheduler.webhook.addresses import TargetPolicy
from scheduler.webhook.headers import check_headers
from scheduler.webhook.pointer import reference_token
from scheduler.webhook.request import body_bytes
from scheduler.webhook.retry import DEFAULT, RetryPolicy
from scheduler.webhook.retry_document import parse_retry, retry_document
from scheduler.webhook.target import check_url

_KINDS = ("cron", "rate", "at")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REFUSED = "refused"
# Of an unknown field's name as it is shown.
_LONGEST_NAME = 200


type _Judge = Callable[[Any, ValidationInfo], Any]


def _reading(judge: _Judge) -> BeforeValidator:
    """Makes the field's value out of what was sent. What `judge` raises as InvalidInput is handed on as it is."""
    return BeforeValidator(_handing_on(judge))


def _checked(judge: _Judge) -> AfterValidator:
    """Leaves the text as it is, if `judge` does not raise InvalidInput."""

    def check(value: Any, info: ValidationInfo) -> Any:
        judge(value, info)
        return value

    return AfterValidator(_handing_on(check))


def _handing_on(judge: _Judge) -> _Judge:
    def validate(value: Any, info: ValidationInfo) -> Any:
        try:
            return judge(value, info)
        except InvalidInput as error:
            problems = _placed(error, f"/{info.field_name}")
        raise PydanticCustomError(_REFUSED, "refused", {"problems": problems})

    return validate


def _placed(error: InvalidInput, pointer: str) -> tuple[Problem, ...]:
    if isinstance(error, InvalidExpression):
        return (Problem(pointer=pointer, detail=str(error)),)
    return error.problems


def _name(text: str, _: ValidationInfo) -> None:
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise InvalidInput(Problem(pointer="/name", detail="must not hold control characters or lone surrogates"))


def _instant(value: object, info: ValidationInfo) -> datetime:
    return instants.read(value, f"/{info.field_name}")


def _headers(value: object, _: ValidationInfo) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise InvalidInput(Problem(pointer="/headers", detail="must be an object of names and values"))
    return check_headers(value)


def _payload(value: object, _: ValidationInfo) -> bytes:
    return body_bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":")), pointer="/payload")


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Dst(_Strict):
    gap: Literal["shift", "skip"] | None = None
    overlap: Literal["first", "last", "both"] | None = None


class _Document(_Strict):
    """Null is the same as absent, in every field."""

    name: Annotated[str, Field(min_length=1, max_length=200), _checked(_name)] | None = None
    cron: Annotated[str, _checked(lambda text, _: spec.cron(text, "UTC"))] | None = None
    rate: Annotated[str, _checked(lambda text, _: spec.rate(text, _EPOCH))] | None = None
    at: Annotated[str, _checked(lambda text, _: spec.at(text, "UTC"))] | None = None
    timezone: Annotated[str, _checked(lambda text, _: zones.validate(text))] | None = None
    dst: _Dst | None = None
    start_at: Annotated[datetime, _reading(_instant)] | None = None
    end_at: Annotated[datetime, _reading(_instant)] | None = None
    url: Annotated[str, _checked(lambda text, info: check_url(text, info.context))]
    headers: Annotated[tuple[tuple[str, str], ...], _reading(_headers)] | None = None
    payload: Annotated[bytes, _reading(_payload)] | None = None
    retry: Annotated[RetryPolicy, _reading(lambda value, _: parse_retry(value))] | None = None
    retry_client_errors: bool | None = None
    overlap: Literal["allow", "skip", "queue"] | None = None
    after_outage: Literal["all", "latest", "none"] | None = None


FIELDS = tuple(_Document.model_fields)


def definition_of(document: Mapping[str, Any], policy: TargetPolicy) -> Definition:
    """The Definition that a document means; InvalidInput with every bad field at once."""
    problems = list(_kind_problems(document))
    try:
        fields = _Document.model_validate(document, context=policy)
    except ValidationError as error:
        problems += [
            problem
            for details in error.errors(include_url=False, include_input=False)
            for problem in _problems(details)
        ]
    if problems:
        raise InvalidInput(*problems)
    return _definition(fields)


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
        **{kind: text for kind, text in kinds.items() if text is not None},
        "timezone": timing.timezone,
        "dst": {"gap": timing.gap.value, "overlap": timing.overlap.value},
        "start_at": timing.start_at and instants.written(timing.start_at),
        "end_at": timing.end_at and instants.written(timing.end_at),
        "url": definition.url,
        "headers": dict(definition.headers),
        "payload": None if definition.payload is None else json.loads(definition.payload),
        "retry": retry_document(definition.retry),
        "retry_client_errors": definition.retry_client_errors,
        "overlap": definition.overlap.value,
        "after_outage": definition.after_outage.value,
    }


def _definition(fields: _Document) -> Definition:
    dst = fields.dst or _Dst()
    timing = Timing(
        cron=fields.cron,
        rate=fields.rate,
        at=fields.at,
        timezone=fields.timezone or "UTC",
        gap=Gap(dst.gap or Gap.SHIFT),
        overlap=Overlap(dst.overlap or Overlap.FIRST),
        start_at=fields.start_at,
        end_at=fields.end_at,
    )
    return Definition(
        name=fields.name,
        timing=timing,
        url=fields.url,
        headers=fields.headers or (),
        payload=fields.payload,
        retry=fields.retry or DEFAULT,
        retry_client_errors=fields.retry_client_errors is not False,
        overlap=OverlapPolicy(fields.overlap or OverlapPolicy.ALLOW),
        after_outage=AfterOutage(fields.after_outage or AfterOutage.ALL),
    )


def _kind_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    given = [kind for kind in _KINDS if document.get(kind) is not None]
    if not given:
        yield Problem(pointer="", detail="one of cron, rate and at is required")
    for kind in given[1:]:
        yield Problem(pointer=f"/{kind}", detail=f"can't be given beside {given[0]}: one of cron, rate and at")


def _problems(details: ErrorDetails) -> Iterator[Problem]:
    if details["type"] == _REFUSED:
        yield from details["ctx"]["problems"]
        return
    pointer = "".join(f"/{reference_token(str(token)[:_LONGEST_NAME])}" for token in details["loc"])
    yield Problem(pointer=pointer, detail=_sentence(details))


def _sentence(details: ErrorDetails) -> str:
    match details["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            fields = FIELDS if len(details["loc"]) == 1 else _Dst.model_fields
            return f"is not a field here; the fields are {', '.join(fields)}"
        case "model_type":
            return "must be an object"
        case "string_type":
            return "must be a string"
        case "string_unicode":
            return "must not hold lone surrogates, in a name or a value"
        case _:
            return details["msg"]
