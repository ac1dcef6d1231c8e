"""Time zones of the pinned tzdata package and of nothing else: PYTHONTZPATH and the image's files have no say."""

import difflib
from functools import lru_cache
from importlib import import_module, resources
from zoneinfo import ZoneInfo

from scheduler.calendar.text import quoted
from scheduler.errors import InvalidExpression

_PACKAGE = "tzdata"
# In the package's list, but it is the mark of a machine nobody set up ("-00"), not a place's time.
_NOT_A_ZONE = "Factory"
_LONGEST_NAME = 64
_HINTS = {
    "CST": "America/Chicago or Asia/Shanghai",
    "PST": "America/Los_Angeles",
    "BST": "Europe/London",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "AEST": "Australia/Sydney",
    "CEST": "Europe/Berlin",
    "Z": "UTC",
    "ASIA/BEIJING": "Asia/Shanghai",
    "US/PACIFIC-NEW": "US/Pacific",
}


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """The IANA version of the pinned package, such as 2026f."""
    return str(import_module(_PACKAGE).IANA_VERSION)


@lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """The names that a schedule may say, old links among them."""
    listed = resources.files(_PACKAGE).joinpath("zones").read_text(encoding="ascii")
    return frozenset(listed.split()) - {_NOT_A_ZONE}


def validate(name: str) -> None:
    """InvalidExpression, with the name to write where one is near, unless it is exactly a zone's name."""
    if name not in names():
        raise InvalidExpression("timezone", f"{quoted(name)} is not a time zone here; {_suggestion(name)}")


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The zone, read once from the package. InvalidExpression for a name that is not one."""
    validate(name)
    with resources.files(_PACKAGE).joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _suggestion(name: str) -> str:
    near = _near(name.strip()) if len(name) <= _LONGEST_NAME else None
    return f"write {near}" if near else "write an IANA name such as Europe/Paris, or UTC"


def _near(name: str) -> str | None:
    folded = {known.lower(): known for known in names()}
    if name.lower() in folded:
        return folded[name.lower()]
    if name.upper() in _HINTS:
        return _HINTS[name.upper()]
    if any(character in name for character in "+:") or name[-1:].isdigit():
        return "a place such as Europe/Paris, or Etc/GMT-2 for the fixed offset +02:00 (its sign is turned round)"
    cities = {known.rpartition("/")[2]: folded[known] for known in sorted(folded)}
    city = name.lower().replace(" ", "_")
    if city in cities:
        return cities[city]
    close = difflib.get_close_matches(name.lower(), sorted(folded), n=1, cutoff=0.75)
    return folded[close[0]] if close else None
