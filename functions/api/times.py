"""The routes about time: what a schedule will do, what it did not do and why, and the lists of excluded dates."""

from uuid import UUID, uuid4

import queries
from answers import answer, exclusion_list_document, foresight_document, no_content, skipped_document
from bodies import read_object
from documents import dates_of, preview_of
from parts import Parts, Request
from response import Response
from scheduler.foresight import foresee, foresee_new
from scheduler.skipped import list_skipped

_LARGEST_ID = 2**63 - 1


def list_skipped_ranges(parts: Parts, request: Request) -> Response:
    schedule_id = request.schedule_id
    limit, (before, last_id) = queries.page(request.query, queries.NEWEST)
    keyset = before, min(last_id.int, _LARGEST_ID)
    found = list_skipped(parts.database, request.tenant_id, schedule_id, before=keyset, most=limit + 1)
    shown = found[:limit]
    last = queries.cursor(shown[-1].last_scheduled_for, UUID(int=shown[-1].id)) if len(found) > limit else None
    return answer(200, {"skipped": [skipped_document(each) for each in shown], "next_cursor": last})


def preview_new_schedule(parts: Parts, request: Request) -> Response:
    timing, count = preview_of(read_object(request.event), parts.policy)
    foreseen = foresee_new(parts.database, parts.clock, request.tenant_id, timing, count)
    return answer(200, foresight_document(foreseen))


def preview_schedule(parts: Parts, request: Request) -> Response:
    schedule_id, count = request.schedule_id, queries.count(request.query)
    return answer(200, foresight_document(foresee(parts.scheduling, request.tenant_id, schedule_id, count)))


def list_exclusion_lists(parts: Parts, request: Request) -> Response:
    limit, after = queries.page(request.query, queries.OLDEST)
    found = parts.exclusion_lists.list(request.tenant_id, after=after, most=limit + 1)
    shown = found[:limit]
    last = queries.cursor(shown[-1].created_at, shown[-1].id) if len(found) > limit else None
    return answer(200, {"exclusion_lists": [exclusion_list_document(each) for each in shown], "next_cursor": last})


def get_exclusion_list(parts: Parts, request: Request) -> Response:
    return answer(200, exclusion_list_document(parts.exclusion_lists.get(request.tenant_id, _name(request))))


def put_exclusion_list(parts: Parts, request: Request) -> Response:
    name, dates = _name(request), dates_of(read_object(request.event))
    put = parts.exclusion_lists.put(request.tenant_id, uuid4(), name, dates)
    return answer(200, exclusion_list_document(put))


def delete_exclusion_list(parts: Parts, request: Request) -> Response:
    parts.exclusion_lists.delete(request.tenant_id, _name(request))
    return no_content()


def _name(request: Request) -> str:
    return queries.path_name(request.ids["name"])
