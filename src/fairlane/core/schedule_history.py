"""The last runs of schedules: the newest in the schedule's own document, the others in another one.

Each firing writes the schedule's document, so that one has to be small. When it has some runs, they
move to the other document, in a write of its own before the schedule is fired. If the process dies
in between, both documents have them, and whoever reads takes them once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from zlib import crc32

import msgspec

from fairlane.core.documents import Document, Documents, write
from fairlane.core.firing import NEVER
from fairlane.core.flow import Flow
from fairlane.core.schedules import Schedule, ScheduleRun, kept

KIND: Final = "schedule_runs"
_CLOSE: Final = 10

_Runs = tuple[ScheduleRun, ...]
_decoder: Final = msgspec.json.Decoder(_Runs)

replace = msgspec.structs.replace


def joined(self: Documents, schedules: Sequence[Schedule | None]) -> Flow[list[Schedule | None]]:
    """Return the schedules with all of their runs."""
    stored = yield from _read(self, [each.schedule_id for each in schedules if each is not None])
    return [
        None if each is None else _with_runs(each, _all_runs(stored.get(each.schedule_id), each))
        for each in schedules
    ]


def without_moved(schedule: Schedule) -> Schedule:
    """Return a schedule as it is stored once its runs have moved, if it has enough of them."""
    return _with_runs(schedule, ()) if _is_full(schedule) else schedule


def move(self: Documents, schedules: Sequence[Schedule]) -> Flow[None]:
    """Move the runs of those that have enough of them."""
    full = [each for each in schedules if _is_full(each)]
    stored = yield from _read(self, [each.schedule_id for each in full])
    puts = []
    for each in full:
        before = stored.get(each.schedule_id)
        value = msgspec.json.encode(_all_runs(before, each))
        version = 0 if before is None else before.version
        puts.append(Document(each.schedule_id, value, NEVER, version=version))
    if puts:
        yield from write(self, KIND, puts)


def drop(self: Documents, schedule_ids: Sequence[str]) -> Flow[None]:
    """Delete the runs of schedules that are to be deleted."""
    stored = yield from _read(self, schedule_ids)
    if stored:
        yield from write(self, KIND, [], list(stored.values()))


def _read(self: Documents, schedule_ids: Sequence[str]) -> Flow[dict[str, Document]]:
    if not schedule_ids:
        return {}
    _, found = yield from self.read_documents(KIND, schedule_ids)
    return {each.id: each for each in found if each is not None}


def _is_full(schedule: Schedule) -> bool:
    """Return whether its runs should move: not of all schedules that fire together at once."""
    spread = crc32(schedule.schedule_id.encode()) % _CLOSE
    return len(schedule.standing.runs) >= _CLOSE + spread


def _all_runs(stored: Document | None, schedule: Schedule) -> _Runs:
    newest = schedule.standing.runs
    if stored is None:
        return newest
    known = frozenset(newest)
    return kept([*(run for run in _decoded(stored) if run not in known), *newest])


def _decoded(stored: Document) -> Iterable[ScheduleRun]:
    try:
        return _decoder.decode(stored.value)
    except msgspec.DecodeError:
        return ()  # written by another version of Fairlane


def _with_runs(schedule: Schedule, runs: _Runs) -> Schedule:
    if runs == schedule.standing.runs:
        return schedule
    return replace(schedule, standing=replace(schedule.standing, runs=runs))
