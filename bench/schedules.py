"""How fast are schedules fired that are due together, how late are they, what do idle ones cost?

- burst: 10,000 schedules with full histories, of some hundred rules, are due in the same second.
  Target: their tasks are stored within 2 s, on PostgreSQL within 4 s.
- lag: 1,000 schedules fire every ten seconds, spread over time, while a scheduler runs as in every
  worker. Target: half of the ticks are stored within 250 ms, 99 % within a second.
- idle: the scheduler's CPU time, and the store's, with 10,000 schedules none of which is due.
  Target: at most 0.2 % of a core.

    python -m bench.schedules [--store sqlite] [--seconds 60]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations, cycle, islice
from pathlib import Path
from typing import Any

import msgspec

from bench import machine, stores
from bench.loops import use_uvloop
from bench.targets import HEAD, Row, at_most
from fairlane import engines
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.documents import Document, Order, Written
from fairlane.core.firing import NEVER
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import new_id
from fairlane.core.priority import MICROSECONDS
from fairlane.core.recurrence import Recurrence, cron, every
from fairlane.core.schedule_history import KIND as HISTORY
from fairlane.core.schedules import NewSchedule, Outcome, ScheduleRun, Standing, new_schedule
from fairlane.core.scheduling import KIND
from fairlane.core.submission import new_task
from fairlane.core.tick_counts import LAG_BOUNDS
from fairlane.core.zones import zone_of
from fairlane.scheduler import SWEEP_SECONDS, Scheduler

BURST, STEADY, IDLE = 10_000, 1_000, 10_000
PARTS = ("burst", "lag", "idle")
PERIOD = 10
CLOSE = 15
ZONES = (
    "Africa/Lagos",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/London",
    "Pacific/Apia",
    "Pacific/Chatham",
    "UTC",
)
TARGET_SECONDS = {"postgres": 4.0}
_standing = msgspec.json.Decoder(Standing)


def rules_at(at: datetime) -> Iterator[Recurrence]:
    """Yield different rules, all of which fire at this full minute."""
    for count in range(7):
        for others in combinations(range(1, 7), count):
            for name in ZONES:
                local = at.astimezone(zone_of(name))
                days = sorted(
                    {local.isoweekday() % 7, *((local.isoweekday() + n) % 7 for n in others)}
                )
                listed = ",".join(map(str, days))
                yield cron(f"{local.minute} {local.hour} * * {listed}", name)
    since = int(at.timestamp())
    for seconds in range(86_400, 86_400 + 300):
        yield every(seconds, since % seconds)


async def put(backend: Backend, schedules: Iterator[NewSchedule]) -> None:
    while batch := list(islice(schedules, limits.SCHEDULE_PAGE)):
        await backend.run(backend.ops.put_schedules(batch))


def scheduled(number: int, rule: Recurrence) -> NewSchedule:
    task = new_task(f"report-{number % 10}", {"customer": number, "format": "pdf"})
    return new_schedule(f"customer-{number}", rule, task, overlap="allow")


@writes
def fill_history(self: Any) -> Flow[None]:
    """Give every schedule as many runs as are kept, the last few of them in its own document."""
    after = None
    for start in range(0, limits.SCHEDULES, limits.SCHEDULE_PAGE):
        now, found = yield from self.list_documents(KIND, Order.OLDEST, 100, after)
        ran = [
            ScheduleRun(now - n * 86_400 * MICROSECONDS, Outcome.FIRED, new_id())
            for n in range(limits.SCHEDULE_RUNS, 0, -1)
        ]
        puts, others = [], []
        for number, each in enumerate(found, start):
            close = len(ran) - number % CLOSE
            puts.append(_with_runs(each, tuple(ran[close:])))
            others.append(Document(each.id, msgspec.json.encode(ran[:close]), NEVER))
        assert (yield from self.write_documents(KIND, puts)) is Written.DONE
        assert (yield from self.write_documents(HISTORY, others)) is Written.DONE
        after = (found[-1].at, found[-1].id)


def _with_runs(stored: Document, runs: tuple[ScheduleRun, ...]) -> Document:
    line, _, rest = stored.value.partition(b"\n")
    standing = msgspec.structs.replace(_standing.decode(line), runs=runs)
    return msgspec.structs.replace(stored, value=msgspec.json.encode(standing) + b"\n" + rest)


async def clock(backend: Backend) -> float:
    return (await backend.run(backend.ops.facts())).now / MICROSECONDS


async def burst(backend: Backend, name: str) -> Row:
    """How long it takes to fire everything that is due at once."""
    now = datetime.fromtimestamp(await clock(backend), UTC)
    at = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=2)
    rules = list(rules_at(at))
    schedules = (scheduled(n, rule) for n, rule in zip(range(BURST), cycle(rules), strict=False))
    await put(backend, schedules)
    await backend.run(fill_history(backend.ops))
    await backend.run(backend.ops.shift_clock((at - now).total_seconds() + 0.5))
    began, used, fired = time.perf_counter(), time.process_time(), 0
    more = True
    while more:
        answer = await backend.run(backend.ops.fire_due())
        fired, more = fired + len(answer.handled), answer.more
    took, cpu = time.perf_counter() - began, time.process_time() - used
    assert fired == BURST, fired
    assert (await backend.run(backend.ops.tick_counts())).outcomes == {Outcome.FIRED: BURST}
    print(f"  {len(rules):,} rules; {fired:,} fired in {took:.2f} s, {cpu:.2f} s of CPU time here")
    return at_most(f"{BURST:,} due at once", took, "s", TARGET_SECONDS.get(name, 2.0))


async def lag(backend: Backend, seconds: float) -> list[Row]:
    """How late ticks are fired that are spread over time."""
    rules = (every(PERIOD, PERIOD * n / STEADY) for n in range(STEADY))
    await put(backend, (scheduled(n, rule) for n, rule in enumerate(rules)))
    await with_scheduler(backend, seconds)
    counts = await backend.run(backend.ops.tick_counts())
    fired = sum(counts.lags)
    assert counts.outcomes == {Outcome.FIRED: fired}, counts.outcomes
    assert fired >= STEADY * (seconds / PERIOD - 1), fired
    buckets = dict(zip((*LAG_BOUNDS, float("inf")), counts.lags, strict=True))
    print(f"  {fired:,} ticks, {counts.lag_sum / fired * 1_000:.0f} ms late on average: {buckets}")
    return [
        at_most(
            f"lag of {STEADY:,} schedules, p{share:.0%}".rstrip("%"),
            bound_of(buckets, share),
            "s",
            limit,
        )
        for share, limit in ((0.5, 0.25), (0.99, 1.0))
    ]


def bound_of(buckets: dict[float, int], share: float) -> float:
    """The upper bound of the bucket below which this share of all lies."""
    needed, total = share * sum(buckets.values()), 0
    for bound, count in buckets.items():
        total += count
        if total >= needed:
            return bound
    return float("inf")


async def with_scheduler(backend: Backend, seconds: float) -> None:
    scheduler = Scheduler(backend, pace=2.5)
    scheduler.lead(float("inf"))
    running = asyncio.create_task(scheduler.run())
    await asyncio.sleep(seconds)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def idle(backend: Backend, seconds: float) -> list[Row]:
    """What the scheduler and the store cost while nothing is due."""
    await put(backend, (scheduled(n, every(30 * 86_400, 15 * 86_400 + n)) for n in range(IDLE)))
    await backend.run(fill_history(backend.ops))
    scheduler = Scheduler(backend, pace=2.5)
    scheduler.lead(float("inf"))
    used, began = time.process_time(), time.perf_counter()
    steps = 0
    while not await scheduler.step():  # the sweep at the beginning
        steps += 1
    cpu, took = time.process_time() - used, time.perf_counter() - began
    print(
        f"  the first sweep of {IDLE:,}: {steps} steps, {took:.2f} s, {cpu:.2f} s of CPU time here"
    )
    without = await cpu_within(seconds)  # a store has work of its own
    running = asyncio.create_task(scheduler.run())
    share = 100 * (await cpu_within(seconds) - without) / seconds
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    print(f"  the store by itself: {100 * without / seconds:.2f} % of a core")
    hourly = 100 * cpu / SWEEP_SECONDS
    what = f"{IDLE:,} idle schedules, with the store, share of a core"
    return [at_most(what, max(0.0, share) + hourly, "%", 0.2)]


async def cpu_within(seconds: float) -> float:
    """Seconds of CPU time that this process and the store use meanwhile.

    Of the store's processes those count that are there all the time: what Redis' child has used
    that rewrites its file is gone when the child is.
    """
    here, before = time.process_time(), cpu_of_servers()
    await asyncio.sleep(seconds)
    after = cpu_of_servers()
    store = sum(after[pid] - before[pid] for pid in before.keys() & after.keys())
    return time.process_time() - here + store


def cpu_of_servers() -> dict[int, float]:
    """Seconds of CPU time that each process has used which this one has started."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid], used[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {pid: used[pid] / os.sysconf("SC_CLK_TCK") for pid in ours - {os.getpid()}}


async def measure(store: str, parts: Sequence[str], seconds: float) -> None:
    rows: list[Row] = []
    for part in parts:
        with stores.opened(store) as (name, url):
            async with engines.open(url) as backend:
                await backend.run(backend.ops.migrate())
                steal = machine.Steal()
                print(f"{name}: {part}")
                if part == "burst":
                    rows.append(await burst(backend, store))
                elif part == "lag":
                    rows += await lag(backend, seconds)
                else:
                    rows += await idle(backend, seconds)
                print(f"  steal {steal.percent():.0f} %, others use {machine.busy_percent():.0f} %")
    print(f"\n{store}\n\n{HEAD}")
    for row in rows:
        print(row.line())
    print()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to watch lag and CPU")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part")
    options = parser.parse_args()
    print(machine.describe())
    for store in options.store or ("sqlite", "postgres", "redis"):
        await measure(store, options.part or PARTS, options.seconds)


if __name__ == "__main__":
    use_uvloop()
    asyncio.run(main())
