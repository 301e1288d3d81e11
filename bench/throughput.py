"""Fairlane and the queues one would use instead, side by side in one run.

Every queue in its best ordinary configuration on two cores, tasks that do nothing with one small
argument, results stored. Fairlane's worker is the real one in a process of its own, with everything
on. By turns, several rounds, medians; what was measured while other tenants took more than 10 % of
the CPU is measured again. The tables are Markdown, and say which targets are met.

    make bench-peers
    python -m bench.throughput [--store URL] [--quick] [--only drain,latency] [--peers celery,rq]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import msgspec

from bench import contest, machine, stores, targets
from bench.contest import OURS, PEERS, Contender, Failed
from bench.limit import colours, measure, pair, together
from bench.loops import use_uvloop
from bench.targets import Results, Row

RATES_HEAD = (
    "| tasks/s | one by one | 100 in flight | in bulk | drain | all at once | ms p50 / p99 |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)
MEASURES = ("submit", "drain", "together", "latency", "footprint")


class Length(msgspec.Struct, frozen=True):
    """How long a run is."""

    rounds: int
    scale: float
    """Of the tasks that each queue drains."""
    submit_seconds: float
    samples: int
    latency_seconds: float
    footprint_tasks: int
    idle_seconds: float


FULL = Length(3, 1.0, 0.5, 200, 6.0, 100_000, 20.0)
QUICK = Length(1, 0.2, 0.2, 20, 2.0, 4_000, 3.0)


class Run:
    """The measurements on one store."""

    def __init__(self, url: str, length: Length, peers: Sequence[Contender], only: Sequence[str]):
        self._url = url
        self._length = length
        self._engine = contest.engine_of(url)
        self._peers = list(peers)
        self._only = only
        self._results = Results()
        self._latencies: dict[str, list[float]] = {}
        self._rows: list[Row] = []
        self._notes: list[str] = []
        self._others: list[float] = []

    def go(self) -> None:
        ours = OURS[self._engine]
        for turn in range(self._length.rounds):
            began, steal = time.monotonic(), machine.Steal()
            self._rates("submit", [ours["one"], *(p for p in self._peers if p.submits)], turn)
            self._rates("drain", [*ours.values(), *self._peers], turn)
            self._rates("together", [ours["one"]], turn)
            took = time.monotonic() - began
            _tell(f"round {turn + 1}: {took:.0f} s, {steal.percent():.0f} % steal")
        self._latency([ours["one"], *(peer for peer in self._peers if peer.submits)])
        self._footprint(ours["one"])

    def _raw(self, what: str, turn: int) -> None:
        """The bare loop, right before what is compared with it: a minute later is another time."""
        for colour in colours(self._url):
            with contest.empty(self._url) as url:
                asyncio.run(self._bare(what, url, colour, turn))

    async def _bare(self, what: str, url: str, colour: str, turn: int) -> None:
        suffix = ", sync" if colour == "sync" else ""
        async with pair(url, colour) as (loop, other):
            for batch in self._batches():
                who = f"raw {batch}{suffix}"
                if what == "together":
                    rate = await together(other, loop, batch)
                    self._results.add(who, what, rate, turn)
                    continue
                submitted, settled = await measure(loop, batch)
                if what == "drain":
                    self._results.add(who, what, settled, turn)
                else:
                    self._results.add(who, "one" if batch == 1 else "many", submitted, turn)

    def _batches(self) -> tuple[int, ...]:
        return (1, 100, 500) if self._engine == "sqlite" else (100, 500)

    def _measured(self, contender: Contender, what: str, tasks: int, seconds: float) -> Any:
        """What was found; None when it failed, and then the queue is left out from here on."""
        try:
            done = contest.measure(contender, what, self._url, tasks=tasks, seconds=seconds)
        except Failed as error:
            _tell(f"{contender.name}, {what}: {error}")
            last = str(error).splitlines()[-1:]
            self._notes.append(f"{contender.name} failed ({what}): {''.join(last)}")
            self._peers = [peer for peer in self._peers if peer is not contender]
            return None
        if done.steal > contest.STEAL_PERCENT:
            self._notes.append(f"{contender.name}, {what}: with {done.steal:.0f} % steal")
        self._others.append(done.others)
        if done.found.get("repeated"):
            self._notes.append(f"{contender.name} ran {done.found['repeated']} tasks twice")
        return done.found

    def _rates(self, what: str, contenders: Sequence[Contender], turn: int) -> None:
        if what not in self._only:
            return
        self._raw(what, turn)
        for contender in contenders:
            tasks = max(200, int(contender.tasks * self._length.scale))
            found = self._measured(contender, what, tasks, self._length.submit_seconds) or {}
            found.pop("repeated", None)
            for name, rate in found.items():
                self._results.add(contender.name, name, rate, turn)
            told = ", ".join(f"{name} {rate:,.0f}/s" for name, rate in found.items())
            _tell(f"  {contender.name}: {told}")

    def _latency(self, contenders: Sequence[Contender]) -> None:
        if "latency" not in self._only:
            return
        length = self._length
        for contender in contenders:
            found = self._measured(contender, "latency", length.samples, length.latency_seconds)
            if found is not None:
                self._latencies[contender.name] = found["latency"]
        ours = self._latencies.get(targets.OURS)
        if ours is None:
            return
        if self._engine != "sqlite":
            peers = {name: times for name, times in self._latencies.items() if times is not ours}
            self._rows += targets.latency_rows(ours, peers)
            return
        p50, p99 = targets.percentiles(ours)
        self._rows.append(targets.at_most("idle latency, p50, other process", p50, "ms", 10))
        self._rows.append(targets.at_most("idle latency, p99, other process", p99, "ms", 25))
        here = self._measured(
            OURS["sqlite"]["one"], "latency_here", length.samples, length.latency_seconds
        )
        if here is not None:
            p50, p99 = targets.percentiles(here["latency"])
            self._rows.append(targets.at_most("idle latency, p50, same process", p50, "ms", 1))
            self._notes.append(f"idle latency in the same process, p99: {p99:.2f} ms")

    def _footprint(self, ours: Contender) -> None:
        if "footprint" in self._only:
            tasks = self._length.footprint_tasks
            found = self._measured(ours, "footprint", tasks, self._length.idle_seconds)
            if found is not None:
                self._rows += targets.footprint_rows(found, tasks)

    # -- telling -----------------------------------------------------------------------------------

    def show(self) -> None:
        """The tables, as Markdown."""
        judge = targets.Judge(self._results, self._peers)
        rows = [*judge.rows_of(self._engine), *self._rows]
        print(f"\n{targets.HEAD}")
        for row in rows:
            print(row.line())
        print(f"\n{RATES_HEAD}")
        for name in self._names():
            cells = [
                _rate(self._results.typical(name, what))
                for what in ("one", "concurrent", "many", "drain", "together")
            ]
            times = self._latencies.get(name)
            latency = "{:.1f} / {:.1f}".format(*targets.percentiles(times)) if times else "–"
            print(f"| {name} | {' | '.join(cells)} | {latency} |")
        missed = sum(not row.met for row in rows)
        print(f"\n{len(rows) - missed} of {len(rows)} targets met.")
        for note in self._notes:
            print(f"- {note}")
        if self._others:
            busy = sum(share > contest.OTHERS_PERCENT for share in self._others)
            print(
                f"- Others used {median(self._others):.0f} % of the CPU in between (median); "
                f"{busy} of {len(self._others)} measurements began with more than "
                f"{contest.OTHERS_PERCENT} %{': not to be published' if busy else ''}"
            )

    def _names(self) -> list[str]:
        raw = [
            f"raw {batch}{suffix}"
            for suffix in (("", ", sync") if self._engine == "sqlite" else ("",))
            for batch in self._batches()
        ]
        ours = [contender.name for contender in OURS[self._engine].values()]
        return [*ours, *(peer.name for peer in self._peers), *raw]


def _rate(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:,.0f}"


def _tell(what: str) -> None:
    """How it goes on; the tables are for standard output."""
    print(what, file=sys.stderr, flush=True)


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    known = sorted({peer.module for peers in PEERS.values() for peer in peers})
    parser.add_argument("--quick", action="store_true", help="See that all works: no numbers.")
    parser.add_argument("--rounds", type=int, help=f"[default: {FULL.rounds}]")
    parser.add_argument(
        "--only", type=_words, default=list(MEASURES), help=f"Some of {','.join(MEASURES)}."
    )
    parser.add_argument("--peers", type=_words, default=known, help=f"Some of {','.join(known)}.")
    options = parser.parse_args()
    for given, allowed in ((options.only, MEASURES), (options.peers, known)):
        if wrong := sorted(set(given) - set(allowed)):
            parser.error(f"{', '.join(wrong)}: there is only {', '.join(allowed)}")
    return options


def main() -> None:
    options = _options()
    length = QUICK if options.quick else FULL
    if options.rounds:
        length = msgspec.structs.replace(length, rounds=options.rounds)
    print(machine.describe())
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}")
    for store in options.store or ("sqlite", "postgres", "redis"):
        with stores.opened(store) as (name, url):
            peers = [peer for peer in PEERS[contest.engine_of(url)] if peer.module in options.peers]
            print(f"\n## {name}\n")
            print(contest.describe(url, peers))
            steal, began = machine.Steal(), time.monotonic()
            run = Run(url, length, peers, options.only)
            run.go()
            run.show()
            took = time.monotonic() - began
            print(f"\n{length.rounds} rounds in {took:.0f} s, {steal.percent():.0f} % steal")


if __name__ == "__main__":
    use_uvloop()
    main()
