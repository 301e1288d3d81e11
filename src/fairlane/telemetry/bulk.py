"""Many transitions in the log at once.

A worker claims and settles up to a thousand tasks in one go, and `logging` takes longer over a line
than the worker over a task. Where all that is made of them is lines of our own JSON, those are put
together here: they differ in little else than the task's id. Anyone else (a handler of another
kind, a filter) is handed a record for each of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from fairlane.core.model import Claimed
from fairlane.telemetry.logs import FINISHED, JsonFormatter, stamp
from fairlane.telemetry.transitions import DURATION, Transition, logger

_PATTERNS: Final = 1_000
"""So many are remembered."""
_HANDLERS: Final = (logging.StreamHandler, logging.FileHandler)
_DIGITS: Final = b"0123456789abcdef-"

# What stands in a pattern for time, id and trace.
_TIME: Final = stamp(0)
_ID: Final = "00000000-0000-0000-0000-000000000000"
_TRACE: Final = _ID.replace("-", "")


class Pattern(NamedTuple):
    """The line of tasks that are alike, cut where their time, id and trace belong."""

    opening: str
    before: str
    between: str
    rest: str


class Teller:
    """Logs what one worker does, and remembers what its lines look like."""

    def __init__(self) -> None:
        self._patterns: dict[tuple[object, ...], Pattern | None] = {}

    def tell(
        self,
        event: str,
        tasks: Sequence[Claimed],
        seconds: Sequence[float | None] | None = None,
    ) -> None:
        """This happened to these tasks, of which each had run for so long."""
        if not tasks:
            return
        handlers = _handlers()
        if handlers is None:
            for task, duration in zip(tasks, seconds or repeat(None), strict=False):
                Transition(event, task, duration).log()
            return
        for handler, formatter in handlers:
            lines = "\n".join(self._lines(event, tasks, seconds, formatter))
            handler.handle(_standing_for(lines))

    def _lines(
        self,
        event: str,
        tasks: Sequence[Claimed],
        seconds: Sequence[float | None] | None,
        formatter: JsonFormatter,
    ) -> list[str]:
        now = stamp(time.time())
        lines: list[str] = []
        for (spec, *kind), alike in _groups(tasks):
            ids = [task.task_id for task in alike]
            durations = seconds and seconds[len(lines) : len(lines) + len(alike)]
            pattern = None
            if spec.trace_id is None and _harmless(ids):
                pattern = self._pattern((formatter, event, *kind), alike[0])
            if pattern is None:
                those = zip(alike, durations or repeat(None), strict=False)
                lines += [formatter.format(Transition(event, *each).record()) for each in those]
            else:
                lines += _filled(pattern, now, ids, durations)
        return lines

    def _pattern(self, kind: tuple[object, ...], like: Claimed) -> Pattern | None:
        known = self._patterns
        if kind not in known:
            if len(known) >= _PATTERNS:
                known.clear()
            formatter, event, *_ = kind
            assert isinstance(formatter, JsonFormatter)
            known[kind] = _pattern(str(event), like, formatter)
        return known[kind]


def _groups(tasks: Sequence[Claimed]) -> Iterator[tuple[Any, Sequence[Claimed]]]:
    """Those next to each other that differ in nothing but their id."""
    kinds = list(map(_alike, tasks))
    if kinds.count(kinds[0]) == len(kinds):  # as most are, and this is the quickest way to see it
        yield kinds[0], tasks
        return
    for kind, group in groupby(tasks, _alike):
        yield kind, list(group)


_alike: Final = attrgetter("spec", "type", "queue", "level", "attempt", "worker_id")


def _handlers() -> list[tuple[logging.Handler, JsonFormatter]] | None:
    """All that would be handed a record, if they make nothing of it but a line of JSON."""
    if logger.filters or not logger.isEnabledFor(logging.INFO):
        return None
    found = []
    source: logging.Logger | None = logger
    while source is not None:
        for handler in source.handlers:
            formatter = handler.formatter
            if type(handler) not in _HANDLERS or handler.filters:
                return None
            if type(formatter) is not JsonFormatter:
                return None
            if handler.level <= logging.INFO:
                found.append((handler, formatter))
        source = source.parent if source.propagate else None
    return found or None


def _standing_for(lines: str) -> logging.LogRecord:
    """One record in place of theirs; its formatter has made them already."""
    return logging.makeLogRecord(
        {"name": logger.name, "levelno": logging.INFO, "levelname": "INFO", FINISHED: lines}
    )


def _harmless(ids: list[str]) -> bool:
    """Whether there is nothing in them that may need to be escaped."""
    text = "".join(ids)
    return text.isascii() and not text.encode().translate(None, _DIGITS)


def _filled(
    pattern: Pattern, now: str, ids: list[str], durations: Sequence[float | None] | None
) -> list[str]:
    opening, before, between, rest = pattern
    before = f"{opening}{now}{before}"
    untimed, timed = f"{rest}}}", f'{rest},"{DURATION}":'
    if durations is None:
        return [f"{before}{id}{between}{id.replace('-', '')}{untimed}" for id in ids]
    return [
        f"{before}{id}{between}{id.replace('-', '')}{untimed}"
        if seconds is None
        else f"{before}{id}{between}{id.replace('-', '')}{timed}{seconds:.6f}}}"
        for id, seconds in zip(ids, durations, strict=True)
    ]


def _pattern(event: str, like: Claimed, formatter: JsonFormatter) -> Pattern | None:
    """None: there is something in the line that looks like what is to be replaced."""
    record = Transition(event, msgspec.structs.replace(like, task_id=_ID)).record()
    record.created = 0
    line = formatter.format(record)
    for mark in (_TIME, _ID, _TRACE):
        line = line.replace(mark, "\n")
    parts = line.removesuffix("}").split("\n")
    return Pattern(*parts) if len(parts) == len(Pattern._fields) else None
