"""Expanding results: every engine does so when it reads tasks, whoever compressed them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from msgspec.structs import replace

from fairlane.core.compression import damaged, data_of, is_compressed
from fairlane.core.errors import DriverMissing
from fairlane.core.extras import import_extra
from fairlane.core.flow import TURN, Flow
from fairlane.core.model import Task
from fairlane.core.raw_json import check_json

TURN_BYTES: Final = 1024 * 1024
"""After so many bytes others get a turn: 1 MiB takes up to 15 ms."""


def expand(value: bytes) -> bytes:
    """Return a result as it was before it was compressed.

    One that is damaged is returned with a mark of that, and without the library as it is stored:
    others can still be read. `fairlane.core.compression.check_expanded` refuses both.
    """
    if not is_compressed(value):
        return value
    decompress = _decompress()
    if decompress is None:
        return value
    try:
        plain = decompress(data_of(value))
        check_json(plain)  # readers put it into their own JSON as it is
    except ValueError:
        return damaged(value)
    return plain


def expanded(task: Task | None) -> Task | None:
    """Return a task with its plain result."""
    if task is None or task.result is None or not is_compressed(task.result):
        return task
    return replace(task, result=expand(task.result))


def expand_tasks(tasks: Iterable[Task | None]) -> Flow[list[Task | None]]:
    """Return tasks with plain results, inside any operation."""
    found: list[Task | None] = []
    expanded = 0
    for task in tasks:
        if task is None or task.result is None or not is_compressed(task.result):
            found.append(task)
            continue
        result = expand(task.result)
        found.append(replace(task, result=result))
        expanded += len(result)
        if expanded >= TURN_BYTES:
            expanded = 0
            yield TURN
    return found


@cache
def _decompress() -> Callable[[bytes], bytes] | None:
    """Return the function; None if its library is not installed."""
    try:
        name = "fairlane.engines.compression.driver"
        driver = import_extra(name, "compression", "The library for compression")
    except DriverMissing:
        return None
    found: Callable[[bytes], bytes] = driver.decompress
    return found
