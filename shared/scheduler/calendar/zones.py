"""Time zones of the pinned tzdata package and of nothing else: PYTHONTZPATH and the image's files have no say."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from zoneinfo import ZoneInfo

from scheduler.calendar.text import quoted
from scheduler.errors import InvalidExpression

_PACKAGE = "tzdata"
# In the package's list, but it is the mark of a machine nobody set up ("-00"), not a place's time.
_NOT_A_ZONE = "Factory"
_LONGEST_NAME = 64
# How like a known name one has to be; less brings Shanghai for Hanoi.
_NEAR = 0.85
_HINTS = {
    "CST": "America/Chicago or Asia/Shanghai",
    "PST": "America/Los_Angeles",
    "EDT": "America/New_York",
    "CDT": "America/Chicago",
    "MDT": "America/Denver",
    "PDT": "America/Los_Angeles",
    "BST": "Europe/London",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "AEST": "Australia/Sydney",
    "CEST": "Europe/Berlin",
    "Z": "UTC",
    "ASIA/BEIJING": "Asia/Shanghai",
    "US/PACIFIC-NEW": "US/Pacific",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ZoneData:
    """A release of zone data. `version`: as IANA writes it, such as 2026f. `folder`: its compiled files, by their names."""

    version: str
    folder: Traversable


class _Source:
    """What is read: the package, unless other data was put in its place. All that was computed from it goes with it."""

    def __init__(self) -> None:
        self.replacement: ZoneData | None = None
        self.caches: list[Callable[[], None]] = []

    def replace(self, data: ZoneData | None) -> None:
        self.replacement = data
        for clear in self.caches:
            clear()


_source = _Source()


def forget_with_zones(clear: Callable[[], None]) -> None:
    """Registers a cache of what follows from zone data, to be cleared when that changes."""
    _source.caches.append(clear)


@contextmanager
def reading(data: ZoneData) -> Iterator[None]:
    """Reads other data inside, for all threads; what its folder has not is read from the package."""
    before = _source.replacement
    _source.replace(data)
    try:
        yield
    finally:
        _source.replace(before)


def tzdata_version() -> str:
    """The IANA version of the zone data, such as 2026f."""
    return _source.replacement.version if _source.replacement else _package_version()


@lru_cache(maxsize=1)
def _package_version() -> str:
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
    """The zone, read once. InvalidExpression for a name that is not one."""
    validate(name)
    with _file(name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


forget_with_zones(zone.cache_clear)


def _file(name: str) -> Traversable:
    path = name.split("/")
    if _source.replacement:
        found = _source.replacement.folder.joinpath(*path)
        if found.is_file():
            return found
    return resources.files(_PACKAGE).joinpath("zoneinfo", *path)


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
    close = difflib.get_close_matches(name.lower(), sorted(folded), n=1, cutoff=_NEAR)
    return folded[close[0]] if close else None
