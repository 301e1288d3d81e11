"""Counters and journal entries of one transaction, written together at its end."""

from __future__ import annotations

from fairlane.core import journal, limits
from fairlane.core.flow import Flow
from fairlane.core.journal import Passage
from fairlane.core.states import State
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute, ExecuteMany

SQL = statements(__package__, "accounting")

Key = tuple[int, int, int, int, str, int]
"""A TallyKey as a plain tuple, which is several times faster to make."""

_QUEUED = State.QUEUED.code
_TRIM_EVERY = 256


class Accounts:
    """Collects what a transaction does, then posts it in three statements."""

    __slots__ = ("_counts", "_depths", "_passages", "ended")

    def __init__(self) -> None:
        self._passages: list[Passage] = []
        self._counts: dict[Key, tuple[int, float]] = {}
        self._depths: dict[tuple[int, int], int] = {}
        self.ended: dict[State, list[str]] = {}

    def mention(self, passage: Passage) -> None:
        """Add an entry to the journal."""
        self._passages.append(passage)

    def count(self, key: Key, times: int, seconds: float = 0.0) -> None:
        """Add to a counter."""
        before, spent = self._counts.get(key, (0, 0.0))
        self._counts[key] = (before + times, spent + seconds)
        lane, level, source, target, _, _ = key
        gained = (target == _QUEUED) - (source == _QUEUED)
        if gained:
            stream = (lane, level)
            self._depths[stream] = self._depths.get(stream, 0) + gained * times

    def ends(self, state: State, task_ids: list[str]) -> None:
        """Add tasks that ended, for `dependents.release_dependents`."""
        self.ended.setdefault(state, []).extend(task_ids)

    def post_depths(self) -> Flow[None]:
        """Write the depths of the streams, which a claim reads in the same transaction."""
        if self._depths:
            yield ExecuteMany(SQL["deepen"], [(*stream, n) for stream, n in self._depths.items()])
            self._depths.clear()

    def post(self, now: int) -> Flow[None]:
        """Write counters, depths and journal entries."""
        yield from self.post_depths()
        if self._counts:
            yield ExecuteMany(SQL["count"], [(*key, *count) for key, count in self._counts.items()])
        if self._passages:
            entry = bytearray(journal.encode(self._passages))
            number = (yield Execute(SQL["append"], (now, entry))).lastrowid
            if number % _TRIM_EVERY == 0:
                yield Execute(SQL["trim"], (number - limits.JOURNAL_ENTRIES,))


class Group:
    """Tasks of one lane and level that go through the same transition in one batch."""

    __slots__ = ("attempts", "seconds", "task_ids")

    def __init__(self) -> None:
        self.task_ids: list[str] = []
        self.attempts: list[int] = []
        self.seconds: list[float | None] = []

    def passage(self, verb: str, worker_id: str | None, lane: int, level: int) -> Passage:
        """Return the group as the journal has it."""
        return Passage(verb, worker_id, lane, level, self.task_ids, self.attempts, self.seconds)
