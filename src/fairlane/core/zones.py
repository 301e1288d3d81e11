"""Time zones, from the package `tzdata` and nowhere else.

`zoneinfo` reads the files of the system first. Then two machines could disagree about a tick, and
there would be names that mean something else on each, such as `localtime`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import metadata, resources
from typing import Any, Final
from zoneinfo import ZoneInfo

from fairlane.core.errors import InvalidSchedule
from fairlane.core.text import shown

PACKAGE: Final = "tzdata"


class Zone(ZoneInfo):
    """A time zone. Unlike others that were read from a file, it can be copied and pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return zone_of, (self.key,)


def zone_of(name: str) -> Zone:
    """Return a time zone by its name. Raises InvalidSchedule."""
    if isinstance(name, str) and name in _names():
        return _read(name)
    raise InvalidSchedule(
        f"There is no time zone {shown(name)}. Use a name like Europe/Berlin or UTC: one that the "
        f"package tzdata has. Here that is version {metadata.version(PACKAGE)}."
    )


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    listed = resources.files(PACKAGE).joinpath("zones").read_text("ascii")
    return frozenset(listed.split())


@lru_cache(maxsize=256)
def _read(name: str) -> Zone:
    with resources.files(PACKAGE).joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return Zone.from_file(file, key=name)
