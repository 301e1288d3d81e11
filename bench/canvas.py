"""What do Fairlane and Celery make of workflows that are hard for queues? Both on Redis.

- A gather with a task that fails, and one that takes the results: Celery's chord.
- Gathers in each other: what is sent and stored grows with the tasks, or faster.
- A gather that is cancelled as a whole while two of its twenty tasks run.

    make bench-peers
    python -m bench.canvas
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from bench import machine, stores
from bench.contest import ENVIRONMENTS, ROOT
from bench.peers.peer import URL

QUEUES = {"Fairlane": sys.executable, "Celery": str(ENVIRONMENTS / "peers" / "bin" / "python")}
TIMEOUT_SECONDS = 300


def ask(name: str, python: str) -> dict[str, Any]:
    """What one of them did."""
    with stores.opened("redis") as (_, url):
        process = subprocess.run(
            [python, "-m", "bench.peers.canvas", name.lower()],
            cwd=ROOT,
            env={**os.environ, URL: url, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    if process.returncode:
        raise SystemExit(process.stderr[-2_000:])
    found: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return found


def show(found: dict[str, dict[str, Any]]) -> None:
    """As Markdown."""
    print("\n| a gather with a task that fails | callback | results of the five others | told |")
    print("|---|---|---:|---|")
    for name, each in found.items():
        fails = each["one_fails"]
        print(f"| {name} | {fails['callback']} | {fails['others']} | {fails['told']} |")
    print(
        "\n| nested, deep | tasks | " + " | ".join(f"{name}: sent, stored" for name in found) + " |"
    )
    print("|---:|---:|" + "---:|" * len(found))
    for sizes in zip(*(each["sizes"] for each in found.values()), strict=True):
        cells = [f"{each['sent']:,}, {each['stored']:,}" for each in sizes]
        print(f"| {sizes[0]['depth']} | {sizes[0]['tasks']} | " + " | ".join(cells) + " |")
    print("\n| cancelled by | members that began before | after | callbacks that ran |")
    print("|---|---:|---:|---:|")
    for name, each in found.items():
        for one in each["cancellations"]:
            cells = [one["began_before"], one["began_after"], one["callbacks"]]
            print(f"| {name}: `{one['how']}` | " + " | ".join(map(str, cells)) + " |")


def main() -> None:
    print(machine.describe())
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}")
    show({name: ask(name, python) for name, python in QUEUES.items()})


if __name__ == "__main__":
    main()
