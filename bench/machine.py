"""What a benchmark ran on, printed above its numbers."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe() -> str:
    """One paragraph about the machine and the software."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    packages = ", ".join(
        f"{name} {_version(name)}"
        for name in ("msgspec", "asyncpg", "psycopg", "redis", "hiredis", "uvloop")
    )
    return (
        f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {packages}"
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"


class Steal:
    """The share of CPU time that other tenants took while a benchmark ran."""

    def __init__(self) -> None:
        self._begin = _jiffies()

    def percent(self) -> float:
        stolen, total = (now - then for now, then in zip(_jiffies(), self._begin, strict=True))
        return 100 * stolen / max(1, total)


def busy_percent(seconds: float = 0.2) -> float:
    """The share of all cores that is in use just now: by others, if nothing of ours runs.

    Steal tells only of other machines on the same hardware, not of neighbours on this one.
    """
    idle, total = _idle_jiffies()
    time.sleep(seconds)
    later_idle, later_total = _idle_jiffies()
    return 100 * (1 - (later_idle - idle) / max(1, later_total - total))


def _idle_jiffies() -> tuple[int, int]:
    fields = _cpu_fields()
    return fields[3] + fields[4], sum(fields[:8])


def _cpu_fields() -> list[int]:
    return [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]


def _jiffies() -> tuple[int, int]:
    fields = _cpu_fields()
    return fields[7], sum(fields[:8])
