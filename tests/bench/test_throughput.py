"""The measuring itself: what it counts has happened, and what it judges it judges rightly."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import contest
from bench.contest import Contender, Failed
from bench.peers.crew import Crew, Stalled
from bench.peers.marks import FOLDER, Marks, Seen
from bench.peers.peer import Command
from bench.targets import Judge, Results, footprint_rows, latency_rows


def test_marks_are_seen_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    marks, seen = Marks(), Seen(tmp_path)
    assert (seen.count(), seen.starts()) == (0, [])
    for _ in range(3):
        marks.made()
    assert seen.count() == len(seen.starts()) == 3
    (imported,) = seen.memory().values()
    assert imported > 1_000_000


def test_every_task_of_a_drain_ran_once(tmp_path: Path) -> None:
    ours = contest.OURS["sqlite"]["one"]
    found = contest.measure(ours, "drain", f"sqlite:///{tmp_path}/tasks.db", tasks=300).found
    assert found["repeated"] == 0
    assert found["drain"] > 0


def test_a_queue_that_is_not_installed_is_told(tmp_path: Path) -> None:
    missing = Contender("Missing", "missing", 1, environment="no-such-environment")
    with pytest.raises(Failed, match="make bench-peers"):
        contest.measure(missing, "drain", f"sqlite:///{tmp_path}/tasks.db", tasks=1)


class Broken:
    """A queue whose worker gives up at once."""

    CONCURRENT = False

    async def open(self) -> None: ...

    async def submit(self, value: int) -> None: ...

    def workers(self) -> Sequence[Command]:
        return [[sys.executable, "-c", "raise SystemExit('out of order')"]]

    async def finished(self) -> int:
        return 0

    async def close(self) -> None: ...


async def test_a_worker_that_ends_by_itself_is_told() -> None:
    with Crew(Broken()) as crew, pytest.raises(Stalled, match="out of order"):
        await crew.done(1)


def test_a_ratio_is_the_median_of_the_rounds() -> None:
    results = Results()
    for turn, (ours, theirs) in enumerate([(50.0, 10.0), (80.0, 10.0), (900.0, 100.0)]):
        results.add("Fairlane, one", "drain", ours, turn)
        results.add("Dramatiq", "drain", theirs, turn)
        results.add("Huey", "drain", theirs / 2, turn)
    results.add("Fairlane, one", "one", 5.0, 0)  # which no peer was measured for
    peers = [Contender("Dramatiq", "dramatiq", 1), Contender("Huey", "huey", 1)]
    (row,) = Judge(results, peers).rows_of("redis")
    assert (row.what, row.ratio, row.target, row.met) == ("drain, one process", "8.00", "≥ 7", True)


def test_a_missed_target_says_so() -> None:
    results = Results()
    results.add("Fairlane, one", "many", 59.0, 0)
    results.add("raw 500", "many", 100.0, 0)
    (row,) = Judge(results, []).rows_of("sqlite")
    assert not row.met
    assert row.line().endswith("| 0.59 | ≥ 0.6 | **no** |")


def test_what_a_bare_loop_cannot_do_is_doubted() -> None:
    results = Results()
    results.add("Fairlane, one", "together", 273.0, 0)
    results.add("raw 500", "together", 100.0, 0)
    (row,) = Judge(results, []).rows_of("sqlite")
    assert not row.met
    assert row.line().endswith("| 2.73 | ≥ 0.5 | **doubtful** |")


def test_latency_is_below_every_peer_or_missed() -> None:
    ours, slow, quick = [1.0] * 100, [2.0] * 100, [1.5] * 98 + [0.5] * 2
    p50, p99 = latency_rows(ours, {"slow": slow, "quick": quick})
    assert (p50.against, p50.met, p99.met) == ("quick, the best peer", True, True)
    p50, _ = latency_rows(slow, {"quick": quick})
    assert not p50.met


def test_memory_counts_from_the_imports() -> None:
    found = {"imported": 30e6, "half": 41e6, "all": 46e6, "idle": 0.011}
    above, growth, idle = footprint_rows(found, 100_000)
    assert (above.ours, above.met) == ("16.00 MB", False)
    assert (growth.ours, growth.met) == ("5.00 MB", False)
    assert (idle.ours, idle.met) == ("1.10 %", False)
