"""Points in time as the API writes and reads them (RFC 3339)."""

import re
from datetime import UTC, datetime

from scheduler.errors import InvalidInput, Problem

_TEXT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.0+)?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])",
    re.IGNORECASE,
)
# The years for which occurrences are computed.
_FIRST, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9900, 1, 1, tzinfo=UTC)


def written(moment: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SSZ`, with six more digits where it is not a whole second."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def read(text: object, pointer: str) -> datetime:
    """The instant, in UTC and whole seconds. InvalidInput: no offset, no such date, a fraction, not in 1970 to 9899."""
    if not isinstance(text, str) or not _TEXT.fullmatch(text):
        detail = "must be an instant in whole seconds with its offset, such as 2026-12-24T18:00:00Z or …T18:00:00+01:00"
        raise InvalidInput(Problem(pointer=pointer, detail=detail))
    try:
        moment = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(Problem(pointer=pointer, detail=f"is no date and time: {error}")) from None
    if not _FIRST <= moment < _END:
        raise InvalidInput(Problem(pointer=pointer, detail="must be in the years 1970 to 9899"))
    return moment
