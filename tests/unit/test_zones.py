"""Time zones come from the package `tzdata`, whatever the system has."""

from __future__ import annotations

import copy
import pickle
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from fairlane.core import zones
from fairlane.core.errors import InvalidSchedule
from fairlane.core.recurrence import cron
from fairlane.core.zones import zone_of

BERLIN = "Europe/Berlin"
SUMMER = datetime(2026, 7, 1, tzinfo=UTC)


def listed() -> list[str]:
    return resources.files("tzdata").joinpath("zones").read_text().split()


def test_every_name_of_the_list_is_known() -> None:
    assert len(listed()) > 400
    for name in listed():
        assert str(zone_of(name)) == name
        cron("30 2 * * *", name)


@pytest.mark.parametrize(
    "odd",
    [
        *("localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "Europe"),
        *("europe/berlin", "Mars/Base", "../../etc/passwd", "/etc/localtime", "", "\0", "é"),
        *("\ud800", "Europe/Berlin/", "Europe//Berlin", "zones", "__init__.py", 5, None, [BERLIN]),
    ],
)
def test_other_names_are_refused(odd: Any) -> None:
    """Although the system may have a file that is called so."""
    with pytest.raises(InvalidSchedule, match=r"There is no time zone .* like Europe/Berlin or"):
        zone_of(odd)
    with pytest.raises(InvalidSchedule, match="the package tzdata has"):
        cron("@daily", odd)


def test_the_files_of_the_system_do_not_count(tmp_path: Path) -> None:
    """As on an image whose database of time zones is old, or was changed."""
    (tmp_path / "Europe").mkdir()
    utc = resources.files("tzdata").joinpath("zoneinfo", "UTC").read_bytes()
    (tmp_path / BERLIN).write_bytes(utc)
    zoneinfo.reset_tzpath([tmp_path])
    try:
        system = zoneinfo.ZoneInfo.no_cache(BERLIN)
        ours = zones._read.__wrapped__(BERLIN)
    finally:
        zoneinfo.reset_tzpath()
    assert SUMMER.replace(tzinfo=system).utcoffset() == timedelta(0)
    assert SUMMER.replace(tzinfo=ours).utcoffset() == timedelta(hours=2)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda time: pickle.loads(pickle.dumps(time))])
def test_a_time_in_a_zone_can_be_copied(again: Any) -> None:
    """Handlers pass the tick on to other processes."""
    time = SUMMER.replace(tzinfo=zone_of(BERLIN))
    assert again(time) == time
    assert again(time).tzinfo is zone_of(BERLIN)
