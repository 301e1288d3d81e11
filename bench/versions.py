"""This version of Fairlane beside an older one, by turns on the same store.

    python -m bench.versions 21d7557 [--store redis] [--rounds 10] [--measure drain] [--tasks 60000]
    python -m bench.versions fb8cafc --measure post

The older version is a commit of this repository, checked out into a temporary worktree. Both are
measured by the benchmark of this one, in this environment. Single rounds scatter by a quarter on a
shared machine, because others slow some of them down: read the median of the ratios, the ratio of
the best rounds, and the CPU time of the worker or server, which scatters less.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench import contest, http, machine, stores

NOW = "this version"
POST = "post"
"""Submissions over HTTP, one task each. The other measures are those of `bench.peers.run`."""
POST_SECONDS = 3.0
COST = "cpu_us"
"""CPU time of a task: the least is the best. Of everything else it is the most."""
DRAINS = {"sqlite": 100_000, "postgres": 60_000, "redis": 150_000}
"""About two seconds of work, so that the start of a worker does not decide."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("revision", help="the older version: anything that Git resolves")
    parser.add_argument("--measure", choices=("drain", "submit", "together", POST), default="drain")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tasks", type=int, help="how many tasks a round drains")
    stores.add_argument(parser)
    options = parser.parse_args()
    print(machine.describe())
    with older(options.revision) as tree:
        trees = {options.revision: tree, NOW: contest.ROOT}
        for store in options.store or ("sqlite", "postgres", "redis"):
            with stores.opened(store) as (name, url):
                tasks = options.tasks or DRAINS[contest.engine_of(url)]
                much = f"{POST_SECONDS:g} s" if options.measure == POST else f"{tasks} tasks"
                print(f"\n## {name}: {options.measure}, {much}, {options.rounds} rounds\n")
                compare(trees, options.measure, url, tasks, options.rounds)


@contextmanager
def older(revision: str) -> Iterator[Path]:
    """A worktree of that commit."""
    with tempfile.TemporaryDirectory(prefix="fairlane-older-") as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--detach", str(tree), revision)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=contest.ROOT, check=True, capture_output=True)


def compare(trees: dict[str, Path], measure: str, url: str, tasks: int, rounds: int) -> None:
    """Print what each round found, and the ratios of this version to the older one."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in trees}
    for turn in range(rounds):
        for name in sorted(trees, reverse=bool(turn % 2)):
            for key, value in measured(trees[name] / "src", measure, url, tasks).items():
                found[name].setdefault(key, []).append(value)
    (old, now) = found.values()
    ratios_of = "ratio of medians | median of ratios | from – to | ratio of the best"
    print("| | " + " | ".join(trees) + f" | {ratios_of} |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for key in now:
        before, after = old.get(key), now[key]
        if before and all(before):
            best = min if key == COST else max
            ratios = sorted(new / was for new, was in zip(after, before, strict=True))
            print(
                f"| {key} | {median(before):,.4g} | {median(after):,.4g} "
                f"| {median(after) / median(before):.3f} | {median(ratios):.3f} "
                f"| {ratios[0]:.2f} – {ratios[-1]:.2f} | {best(after) / best(before):.3f} |"
            )


def measured(source: Path, measure: str, url: str, tasks: int) -> dict[str, Any]:
    """What one version reaches on an empty store."""
    if measure == POST:
        return posted(source, url)
    ours = contest.OURS[contest.engine_of(url)]["one"]
    contender = msgspec.structs.replace(ours, source=source)
    return contest.measure(contender, measure, url, tasks=tasks).found


def posted(source: Path, url: str) -> dict[str, float]:
    """Tasks that a server takes in a second, and its CPU time for each."""
    with contest.empty(url) as store, http.fairlane_server(store, source) as target:
        busy = target.cpu_seconds()
        result = http.loaded(target.url, batch=1, rate=0.0, seconds=POST_SECONDS)
        busy = target.cpu_seconds() - busy
    assert result.failures == 0
    return {"post": result.tasks_per_second, COST: 1e6 * busy / result.answered}


if __name__ == "__main__":
    main()
