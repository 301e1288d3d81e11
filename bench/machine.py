"""What a benchmark ran on, printed above its numbers."""

from __future__ import annotations

import os
import platform
import sqlite3
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


def _jiffies() -> tuple[int, int]:
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return fields[7], sum(fields[:8])
