"""Zone names: exactly those of the pinned package, whatever the machine has, with a suggestion for near misses."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import metadata, resources
from itertools import pairwise
from pathlib import Path

import pytest
from scheduler.calendar import zones
from scheduler.calendar.spec import cron
from scheduler.errors import InvalidExpression
from zone_files import offset_changes

HERE = Path(__file__).parent
PSEUDO = ["localtime", "posixrules", "Factory", ":/etc/localtime", "right/UTC", "posix/UTC", "Etc/Unknown"]
NEAR_MISSES = [
    ("europe/paris", "write Europe/Paris"),
    ("EUROPE/PARIS", "write Europe/Paris"),
    ("Europe/Paris ", "write Europe/Paris"),
    ("Europe/Pariss", "write Europe/Paris"),
    ("paris", "write Europe/Paris"),
    ("New York", "write America/New_York"),
    ("US/Pacific-New", "write US/Pacific"),
    ("CST", "America/Chicago or Asia/Shanghai"),
    ("BST", "Europe/London"),
    ("Asia/Beijing", "write Asia/Shanghai"),
    ("Asia/Kolkatta", "write Asia/Kolkata"),
    ("America/NewYork", "write America/New_York"),
    # No wrong one rather than any.
    ("Asia/Hanoi", "write an IANA name"),
    ("EDT", "write America/New_York"),
    ("GMT+5", "Etc/GMT-2 for the fixed offset +02:00"),
    ("UTC+2", "Etc/GMT-2 for the fixed offset +02:00"),
    ("+02:00", "Etc/GMT-2 for the fixed offset +02:00"),
    ("Z", "write UTC"),
    ("", "Europe/Paris"),
    ("Europe", "Europe/Paris"),
    ("../../etc/passwd", "Europe/Paris"),
    ("Europe/Paris\x00", "Europe/Paris"),
    ("\ud800", "Europe/Paris"),
    ("x" * 4096, "Europe/Paris"),
]


@pytest.mark.parametrize("name", PSEUDO)
def test_a_pseudo_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidExpression, match="is not a time zone here"):
        cron("0 0 * * *", name)


@pytest.mark.parametrize(("name", "advice"), NEAR_MISSES)
def test_a_near_miss_is_refused_with_what_to_write(name: str, advice: str) -> None:
    with pytest.raises(InvalidExpression) as refusal:
        cron("0 0 * * *", name)
    assert refusal.value.field == "timezone"
    assert advice in refusal.value.detail
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("name", ["UTC", "EST", "GB", "Etc/GMT+5", "Europe/Kyiv", "Europe/Kiev", "America/Nuuk"])
def test_old_links_and_fixed_zones_are_names_too(name: str) -> None:
    assert cron("0 0 * * *", name).timezone == name


def test_each_name_of_the_package_can_be_read() -> None:
    noon = datetime(2027, 7, 1, 12, tzinfo=UTC)
    for name in zones.names():
        assert abs(noon.astimezone(zones.zone(name)).utcoffset() or timedelta(0)) < timedelta(hours=15), name


def test_a_name_that_was_accepted_once_stays_accepted() -> None:
    """The file only ever grows. A release that drops one of these must come with a link of our own to what it was."""
    once = (HERE / "accepted_zones.txt").read_text("ascii").split()
    assert set(once) <= zones.names()


def test_the_version_is_the_one_that_the_pinned_package_states() -> None:
    year, number = metadata.version("tzdata").split(".")
    assert zones.tzdata_version() == f"{year}{chr(ord('a') + int(number) - 1)}"


def test_the_package_rules_whatever_the_environment_and_the_image_say(tmp_path: Path) -> None:
    (tmp_path / "Europe").mkdir()
    utc = resources.files("tzdata").joinpath("zoneinfo", "UTC").read_bytes()
    (tmp_path / "Europe" / "Paris").write_bytes(utc)
    program = (
        "from datetime import UTC, datetime\n"
        "from zoneinfo import ZoneInfo\n"
        "from scheduler.calendar.occurrences import next_occurrence\n"
        "from scheduler.calendar.spec import cron\n"
        "noon = datetime(2027, 7, 1, 12, tzinfo=UTC)\n"
        "print(noon.astimezone(ZoneInfo('Europe/Paris')).hour)\n"
        "print(next_occurrence(cron('0 18 * * *', 'Europe/Paris'), noon))\n"
    )
    paths = {"PYTHONTZPATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ran = subprocess.run([sys.executable, "-c", program], env=paths, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["12", "2027-07-01 16:00:00+00:00"]


def test_no_zone_changes_oftener_or_farther_than_the_search_expects() -> None:
    """What the search for changes rests on, from 1970 and as far as the files' own tables go."""
    for name in zones.names():
        changes = [change for change in offset_changes(name) if change.at >= 0]
        assert all(later.at - earlier.at > 6 * 86_400 for earlier, later in pairwise(changes)), name
        assert all(abs(change.after - change.before) <= 86_400 for change in changes), name
        assert all(-12 * 3_600 <= change.after <= 14 * 3_600 for change in changes), name
