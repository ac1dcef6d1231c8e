"""The routes about time: what a schedule will do, what it did not do and why, and the lists of excluded dates.

They are asked for seldom, and imported when they are: a cold start that serves the others does not pay for them.
"""

from typing import Any
from uuid import UUID, uuid4

import queries
from answers import answer, no_content, state
from bodies import read_object
from documents import dates_of, preview_of
from instants import written
from parts import Parts, Request
from response import Response
from scheduler.exclusion_lists import ExclusionList, ExclusionLists
from scheduler.foresight import ForeseenOccurrence, Foresight, foresee, foresee_new
from scheduler.skipped_ranges import SkippedRange, list_skipped
from scheduler.timing import MOST_OCCURRENCES

_LARGEST_ID = 2**63 - 1
_SKIPPED, _LISTS = queries.page("skipped"), queries.page("exclusion-lists")


def list_skipped_ranges(parts: Parts, request: Request) -> Response:
    schedule_id, asked = request.schedule_id, queries.read(request.query, _SKIPPED)
    limit, (before, last_id) = asked.get("limit", queries.DEFAULT_LIMIT), asked.get("cursor", queries.NEWEST)
    keyset = before, min(last_id.int, _LARGEST_ID)
    found = list_skipped(parts.database, request.tenant_id, schedule_id, before=keyset, most=limit + 1)
    shown = found[:limit]
    last = (
        queries.cursor("skipped", shown[-1].last_scheduled_for, UUID(int=shown[-1].id)) if len(found) > limit else None
    )
    return answer(200, {"skipped": [skipped_document(each) for each in shown], "next_cursor": last})


def preview_new_schedule(parts: Parts, request: Request) -> Response:
    timing, count = preview_of(read_object(request.event), parts.policy)
    foreseen = foresee_new(parts.database, parts.clock, request.tenant_id, timing, count)
    return answer(200, foresight_document(foreseen))


def preview_schedule(parts: Parts, request: Request) -> Response:
    schedule_id, asked = request.schedule_id, queries.read(request.query, {"count": queries.number(MOST_OCCURRENCES)})
    count = asked.get("count", queries.DEFAULT_COUNT)
    return answer(200, foresight_document(foresee(parts.scheduling, request.tenant_id, schedule_id, count)))


def list_exclusion_lists(parts: Parts, request: Request) -> Response:
    asked = queries.read(request.query, _LISTS)
    limit, after = asked.get("limit", queries.DEFAULT_LIMIT), asked.get("cursor", queries.OLDEST)
    found = _lists(parts).list(request.tenant_id, after=after, most=limit + 1)
    shown = found[:limit]
    last = queries.cursor("exclusion-lists", shown[-1].created_at, shown[-1].id) if len(found) > limit else None
    return answer(200, {"exclusion_lists": [exclusion_list_document(each) for each in shown], "next_cursor": last})


def get_exclusion_list(parts: Parts, request: Request) -> Response:
    found = _lists(parts).get(request.tenant_id, _name(request))
    return state(200, exclusion_list_document(found), found.tag)


def put_exclusion_list(parts: Parts, request: Request) -> Response:
    name, dates = _name(request), dates_of(read_object(request.event))
    put, made = _lists(parts).put(request.tenant_id, uuid4(), name, dates, only=request.only)
    return state(201 if made else 200, exclusion_list_document(put), put.tag)


def delete_exclusion_list(parts: Parts, request: Request) -> Response:
    _lists(parts).delete(request.tenant_id, _name(request), only=request.only)
    return no_content()


def _name(request: Request) -> str:
    return queries.path_name(request.ids["name"])


def _lists(parts: Parts) -> ExclusionLists:
    return ExclusionLists(database=parts.database, clock=parts.clock, retention=parts.scheduling.retention)


def foresight_document(foreseen: Foresight) -> dict[str, Any]:
    """What a schedule will do."""
    return {
        "description": foreseen.description,
        "timezone": foreseen.timezone,
        "occurrences": [_occurrence_document(each) for each in foreseen.occurrences],
    }


def _occurrence_document(foreseen: ForeseenOccurrence) -> dict[str, Any]:
    occurrence = foreseen.occurrence
    return {
        "scheduled_for": written(occurrence.scheduled_for),
        "local": occurrence.local.isoformat(),
        "due_at": foreseen.due_at and written(foreseen.due_at),
        "dst_shifted": occurrence.dst_shifted,
        "dst_repeated": occurrence.dst_repeated,
        "excluded": occurrence.excluded,
        "jittered": foreseen.jittered,
    }


def skipped_document(skipped: SkippedRange) -> dict[str, Any]:
    """What was expected and is no run."""
    return {
        "first_scheduled_for": written(skipped.first_scheduled_for),
        "last_scheduled_for": written(skipped.last_scheduled_for),
        "occurrences": skipped.occurrences,
        "reason": skipped.reason.value,
        "recorded_at": written(skipped.recorded_at),
    }


def exclusion_list_document(exclusion_list: ExclusionList) -> dict[str, Any]:
    """A list of excluded dates."""
    return {
        "name": exclusion_list.name,
        "dates": [day.isoformat() for day in exclusion_list.dates],
        "created_at": written(exclusion_list.created_at),
        "updated_at": written(exclusion_list.updated_at),
    }
