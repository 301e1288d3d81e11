"""What Fairlane aims at, engine by engine, and whether a run got there.

A target is a ratio within one run: to a peer, or to the bare loop of `bench.limit`. Of each round
the ratio is taken, and of the ratios the median.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median, quantiles

import msgspec

from bench.contest import Contender

DOUBTFUL = 1.25
"""Our claims and settlements overlap, the bare loop does one by one: a little above 1 can be."""
OURS = "Fairlane, one"
THREADS = "Fairlane, threads"
TWO = "Fairlane, two"


class Results:
    """Rates by round, under who and what was measured."""

    def __init__(self) -> None:
        self._rates: dict[tuple[str, str], dict[int, float]] = {}

    def add(self, who: str, what: str, rate: float, turn: int) -> None:
        self._rates.setdefault((who, what), {})[turn] = rate

    def of(self, who: str, what: str) -> dict[int, float]:
        """By round; empty if it was not measured."""
        return self._rates.get((who, what), {})

    def best(self, those: Iterable[str], what: str) -> dict[int, float]:
        """The highest of each round."""
        best: dict[int, float] = {}
        for who in those:
            for turn, rate in self.of(who, what).items():
                best[turn] = max(rate, best.get(turn, 0.0))
        return best

    def typical(self, who: str, what: str) -> float | None:
        rates = self.of(who, what)
        return median(rates.values()) if rates else None


class Row(msgspec.Struct, frozen=True):
    """One target and how near we are."""

    what: str
    ours: str
    against: str
    theirs: str
    ratio: str
    target: str
    met: bool
    doubtful: bool = False
    """It would be well above what a bare loop can do: more likely the machine was not the same."""

    def line(self) -> str:
        cells = (self.what, self.ours, self.against, self.theirs, self.ratio, self.target)
        verdict = "**doubtful**" if self.doubtful else "yes" if self.met else "**no**"
        return f"| {' | '.join(cells)} | {verdict} |"


HEAD = (
    "| what | Fairlane | against | there | ratio | target | met |\n"
    "|---|---:|---|---:|---:|---:|---|"
)


class Judge:
    """Gathers the rows of one engine. What was not measured has none."""

    def __init__(self, results: Results, peers: Sequence[Contender]) -> None:
        self._results = results
        self._peers = [peer.name for peer in peers]
        self._keeping = [peer.name for peer in peers if peer.keeps_results]
        self.rows: list[Row] = []

    def rows_of(self, engine: str) -> list[Row]:
        match engine:
            case "redis":
                self._redis()
            case "postgres":
                self._postgres()
            case _:
                self._sqlite()
        return self.rows

    def _redis(self) -> None:
        drain = "drain, one process"
        self._beside(drain, OURS, "drain", "the best peer with results", self._keeping, 7.0)
        self._beside_raw(drain, "drain", ("raw 100", "raw 500"), 0.45)
        self._beside("drain, def on threads", THREADS, "drain", "Dramatiq", ["Dramatiq"], 3.0)
        self._beside("submit, one by one", OURS, "one", "the best peer", self._peers, 1.0)
        self._beside("submit, 100 in flight", OURS, "concurrent", "the best peer", self._peers, 5.0)
        self._beside_raw("submit_many", "many", ("raw 500",), 0.60)
        self._beside_raw("all at once", "together", ("raw 500",), 0.50)

    def _postgres(self) -> None:
        drain, two = "drain, one process", "drain, two processes"
        for name in ("PgQueuer, 100 × 2", "PgQueuer, 500 × 2"):
            self._beside(two, TWO, "drain", name, [name], 1.0)
        self._beside(drain, OURS, "drain", "PgQueuer, 10 × 1", ["PgQueuer, 10 × 1"], 5.0)
        for name in ("SAQ", "Procrastinate"):
            self._beside(drain, OURS, "drain", name, [name], 25.0)
        self._beside_raw(drain, "drain", ("raw 100", "raw 500"), 0.50)
        procrastinate = "Procrastinate, threads"
        self._beside("drain, def on threads", THREADS, "drain", procrastinate, [procrastinate], 8.0)
        self._beside("submit, one by one", OURS, "one", "the best peer", self._peers, 1.0)
        self._beside(
            "submit, 100 in flight", OURS, "concurrent", "the best peer", self._peers, 10.0
        )
        self._beside_raw("submit_many", "many", ("raw 500",), 0.60)
        self._beside("submit_many", OURS, "many", "PgQueuer", ["PgQueuer, 10 × 1"], 1.0)
        self._beside_raw("all at once", "together", ("raw 500",), 0.50)

    def _sqlite(self) -> None:
        drain = "drain, one process"
        self._beside(drain, OURS, "drain", "Huey", ["Huey"], 10.0)
        self._beside(drain, OURS, "drain", "Huey, sync off", ["Huey, sync off"], 3.0)
        self._beside_raw(drain, "drain", ("raw 100", "raw 500"), 0.50)
        self._beside("drain, def on threads", THREADS, "drain", "Huey", ["Huey"], 1.0)
        self._beside_raw("submit, one by one", "one", ("raw 1",), 0.80)
        self._beside_raw("submit_sync, one by one", "sync", ("raw 1, sync",), 0.80, raw="one")
        self._beside_raw("submit, 100 in flight", "concurrent", ("raw 100",), 0.50, raw="many")
        self._beside_raw("submit_many", "many", ("raw 500",), 0.60)
        self._beside_raw("all at once", "together", ("raw 500",), 0.50)

    def _beside_raw(
        self, row: str, what: str, loops: Sequence[str], target: float, raw: str | None = None
    ) -> None:
        name = "the bare loop, " + " or ".join(loop.removeprefix("raw ") for loop in loops)
        theirs = self._results.best(loops, raw or what)
        self._compare(row, self._results.of(OURS, what), name, theirs, target, DOUBTFUL)

    def _beside(
        self, row: str, who: str, what: str, name: str, peers: Sequence[str], target: float
    ) -> None:
        theirs = self._results.best(peers, what)
        self._compare(row, self._results.of(who, what), name, theirs, target)

    def _compare(
        self,
        row: str,
        ours: dict[int, float],
        name: str,
        theirs: dict[int, float],
        target: float,
        doubtful: float = float("inf"),
    ) -> None:
        both = sorted(ours.keys() & theirs.keys())
        if not both:
            return
        ratio = median(ours[turn] / theirs[turn] for turn in both)
        mine, other = (median(rates[turn] for turn in both) for rates in (ours, theirs))
        self.rows.append(
            Row(
                row,
                f"{mine:,.0f}/s",
                name,
                f"{other:,.0f}/s",
                f"{ratio:.2f}",
                f"≥ {target:g}",
                target <= ratio <= doubtful,
                ratio > doubtful,
            )
        )


# --- what is no rate ------------------------------------------------------------------------------


def percentiles(times: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    return median(times), quantiles(times, n=100, method="inclusive")[98]


def latency_rows(ours: Sequence[float], theirs: Mapping[str, Sequence[float]]) -> list[Row]:
    """Below every peer."""
    rows = []
    for part, name in enumerate(("p50", "p99")):
        mine = percentiles(ours)[part]
        if not theirs:
            continue
        peer, best = min(
            ((peer, percentiles(times)[part]) for peer, times in theirs.items()),
            key=lambda pair: pair[1],
        )
        rows.append(
            Row(
                f"idle latency, {name}",
                f"{mine:.2f} ms",
                f"{peer}, the best peer",
                f"{best:.2f} ms",
                f"{mine / best:.2f}",
                "< 1",
                mine < best,
            )
        )
    return rows


def at_most(what: str, value: float, unit: str, limit: float) -> Row:
    """A target that is a number by itself."""
    return Row(what, f"{value:.2f} {unit}", "–", "–", "–", f"≤ {limit:g} {unit}", value <= limit)


def footprint_rows(found: dict[str, float], tasks: int) -> list[Row]:
    """Memory above the process after its imports, its growth, and the idle share of a core."""
    mega = 1_000_000
    above, growth = found["all"] - found["imported"], found["all"] - found["half"]
    return [
        at_most(f"worker memory above imports after {tasks:,} tasks", above / mega, "MB", 15),
        at_most("its growth over the second half", growth / mega, "MB", 1),
        at_most("idle worker, share of a core", 100 * found["idle"], "%", 1),
    ]
