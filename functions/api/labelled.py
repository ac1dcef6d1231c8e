"""The routes that change all schedules that carry some labels; imported when they are asked for, as those of `times`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import fields
from answers import answer
from bodies import read_object
from documents import PAUSE, labels
from parts import Parts, Request
from response import Response
from scheduler.labels import Labelled
from scheduler.schedules import Pause


def pause_labelled(parts: Parts, request: Request) -> Response:
    labels, pause = _paused_labels_of(read_object(request.event))
    return answer(200, asdict(_labelled(parts, request, labels).pause(pause)))


def resume_labelled(parts: Parts, request: Request) -> Response:
    return answer(200, asdict(_labelled(parts, request, _labels_of(read_object(request.event))).resume()))


def _labelled(parts: Parts, request: Request, labels: dict[str, str]) -> Labelled:
    return Labelled(
        scheduling=parts.scheduling,
        tenant_id=request.tenant_id,
        labels=labels,
        changed_by=request.key_id,
        more_time=request.more_time,
    )


def _labels_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Which schedules are meant; InvalidInput."""
    return dict(fields.read(document, {"labels": labels}, required=["labels"])["labels"])


def _paused_labels_of(document: Mapping[str, Any]) -> tuple[dict[str, str], Pause]:
    """Which schedules are meant, how long and why; InvalidInput."""
    read = fields.read(document, {"labels": labels, **PAUSE}, required=["labels"])
    return dict(read["labels"]), Pause(until=read.get("until"), reason=read.get("reason"))
