"""The books of one transaction: its transitions counted, and written to the journal."""

from __future__ import annotations

from fairlane.core import journal, limits
from fairlane.core.flow import Flow
from fairlane.core.journal import Line
from fairlane.core.states import State
from fairlane.core.tally import bucket_of
from fairlane.engines.files import statements
from fairlane.engines.sqlite.driver import Execute, ExecuteMany

SQL = statements(__package__, "ledger")

Key = tuple[int, int, int, int, str, int]
"""A TallyKey as a plain tuple, which is several times faster to make."""

_QUEUED = State.QUEUED.code
_TRIM_EVERY = 256


class Ledger:
    """Gathers what a transaction does, then posts it in three statements."""

    __slots__ = ("_counts", "_depths", "_lines", "_seconds")

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._counts: dict[Key, int] = {}
        self._seconds: dict[Key, float] = {}
        self._depths: dict[tuple[int, int], int] = {}

    def add(
        self,
        verb: str,
        task_id: str,
        lane: int,
        level: int,
        attempt: int,
        source: int,
        target: int,
        *,
        worker_id: str | None = None,
        label: str = "",
        seconds: float | None = None,
    ) -> None:
        """One task's transition."""
        line: Line = (verb, task_id, lane, level, attempt, worker_id, seconds)
        key = (lane, level, source, target, label, bucket_of(seconds))
        self.add_alike([line], key, seconds=seconds or 0.0)

    def add_alike(self, lines: list[Line], *keys: Key, seconds: float = 0.0) -> None:
        """Transitions that are all counted under the same keys, and took so long together."""
        self._lines += lines
        for key in keys:
            self._count(key, len(lines))
            if seconds:
                self._seconds[key] = self._seconds.get(key, 0.0) + seconds

    def mention(self, line: Line) -> None:
        """Something for the journal that is no transition of a task."""
        self._lines.append(line)

    def _count(self, key: Key, times: int) -> None:
        self._counts[key] = self._counts.get(key, 0) + times
        lane, level, source, target, _, _ = key
        gained = (target == _QUEUED) - (source == _QUEUED)
        if gained:
            stream = (lane, level)
            self._depths[stream] = self._depths.get(stream, 0) + gained * times

    def post_depths(self) -> Flow[None]:
        """Write how deep the streams are by now, for whoever reads them in this transaction."""
        if self._depths:
            yield ExecuteMany(SQL["deepen"], [(*stream, n) for stream, n in self._depths.items()])
            self._depths.clear()

    def post(self, now: int) -> Flow[None]:
        """Write the books."""
        yield from self.post_depths()
        if self._counts:
            yield ExecuteMany(
                SQL["count"],
                [(*key, n, self._seconds.get(key, 0.0)) for key, n in self._counts.items()],
            )
        if self._lines:
            entry = bytearray(journal.encode(self._lines))
            ((number,),) = yield Execute(SQL["append"], (now, entry))
            if number % _TRIM_EVERY == 0:
                yield Execute(SQL["trim"], (number - limits.JOURNAL_ENTRIES,))
