"""Many transitions in the log at once.

A worker claims and settles up to a thousand tasks in one go, and `logging` takes longer over a line
than the worker over a task. Where all that is made of them is lines of our own JSON, those are put
together here: they differ in little else than the task's id. A few have a line each. Many share
one, with lists of their ids: who completes 50,000 a second does not want 100,000 lines of it.
Anyone else (a handler of another kind, a filter) is handed a record for each of them.
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

MANY: Final = 10
"""From so many on they share a line,"""
MOST: Final = 100
"""and so many at most: Docker cuts lines at 16 KB."""
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
        at = 0
        for (spec, *kind), alike in _groups(tasks):
            ids = [task.task_id for task in alike]
            durations = seconds and seconds[at : at + len(alike)]
            at += len(alike)
            pattern, shared = None, len(alike) >= MANY
            if spec.trace_id is None and _harmless(ids):
                pattern = self._pattern((formatter, event, shared, *kind), alike[0])
            if pattern is None:
                those = zip(alike, durations or repeat(None), strict=False)
                lines += [formatter.format(Transition(event, *each).record()) for each in those]
            elif shared:
                lines += _shared(pattern, now, ids, durations)
            else:
                lines += _filled(pattern, now, ids, durations)
        return lines

    def _pattern(self, kind: tuple[object, ...], like: Claimed) -> Pattern | None:
        known = self._patterns
        if kind not in known:
            if len(known) >= _PATTERNS:
                known.clear()
            formatter, event, shared, *_ = kind
            assert isinstance(formatter, JsonFormatter)
            known[kind] = _pattern(str(event), like, formatter, shared=bool(shared))
        return known[kind]


def _groups(tasks: Sequence[Claimed]) -> Iterator[tuple[Any, Sequence[Claimed]]]:
    """Those next to each other that differ in nothing but their id; all are of one worker."""
    if _all_alike(tasks):
        yield _kind(tasks[0]), tasks
        return
    for kind, group in groupby(tasks, _kind):
        yield kind, list(group)


def _all_alike(tasks: Sequence[Claimed]) -> bool:
    """As most are. A loop sees it in half the time that it takes to compare their kinds."""
    first = tasks[0]
    spec, type, queue = first.spec, first.type, first.queue
    level, attempt = first.level, first.attempt
    for task in tasks:
        if (
            task.spec is not spec
            or task.type != type
            or task.queue != queue
            or task.level != level
            or task.attempt != attempt
        ):
            return False
    return True


_kind: Final = attrgetter("spec", "type", "queue", "level", "attempt")


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


def _shared(
    pattern: Pattern, now: str, ids: list[str], durations: Sequence[float | None] | None
) -> Iterator[str]:
    opening, before, between, rest = pattern
    for at in range(0, len(ids), MOST):
        some = ids[at : at + MOST]
        those = '","'.join(some)
        traces = those.replace("-", "")
        line = f'{opening}{now}{before}{those}{between}{traces}{rest},"count":{len(some)}'
        if durations is None:
            yield f"{line}}}"
        else:
            yield f'{line},"{DURATION}":[{_spelled(durations[at : at + MOST])}]}}'


def _spelled(durations: Sequence[float | None]) -> str:
    # To spell a float takes longer than all the rest, and what comes by the dozen is short.
    return ",".join(
        [
            "null"
            if seconds is None
            else _SHORT[int(seconds * 1e6 + 0.5)]
            if 0 <= seconds < _SHORT_SECONDS
            else f"{seconds:.6f}"
            for seconds in durations
        ]
    )


_SHORT_SECONDS: Final = 0.001
_SHORT: Final = [f"{number / 1e6:.6f}" for number in range(int(_SHORT_SECONDS * 1e6) + 1)]


def _pattern(
    event: str, like: Claimed, formatter: JsonFormatter, *, shared: bool
) -> Pattern | None:
    """None: there is something in the line that looks like what is to be replaced."""
    transition = Transition(event, msgspec.structs.replace(like, task_id=_ID))
    record = transition.record(shared=shared)
    record.created = 0
    line = formatter.format(record)
    for mark in (_TIME, _ID, _TRACE):
        line = line.replace(mark, "\n")
    parts = line.removesuffix("}").split("\n")
    return Pattern(*parts) if len(parts) == len(Pattern._fields) else None
