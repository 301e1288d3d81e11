"""Run the same workflows on Celery or Fairlane, and report what each did.

    python -m bench.peers.canvas celery|fairlane

It runs in the environment of the queue, on an empty Redis that the environment names, and prints
what it found as a line of JSON; `bench.canvas` calls it for both.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from redis import Redis

from bench.peers.peer import Command, url

MEMBERS = 6
DEPTHS = range(1, 9)
WIDTH = 20
NAP_SECONDS = 0.5
TIMEOUT_SECONDS = 30.0

Found = dict[str, Any]


class Canvas(Protocol):
    """A queue that runs workflows, with one worker of two slots."""

    def open(self) -> None:
        """Set up what has to be there on an empty Redis."""

    def worker(self) -> Command: ...

    def one_fails(self) -> Found:
        """Run a gather of several, the second of which fails, and something that takes the results.

        `callback`: what became of that, `told`: what the caller learns, `others`: how many of the
        other results can be read.
        """

    def submit_nested(self, depth: int) -> None:
        """Submit gathers of two in each other, so deep, each followed by what takes the results."""

    def begin_tree(self) -> list[Callable[[], None]]:
        """Submit a gather of many that nap, and what takes their results. Return the ways there are
        to cancel it as a whole, with names."""


def noted(what: str) -> int:
    """How often handlers have noted something."""
    with Redis.from_url(url()) as client:
        return int(client.get(f"noted:{what}") or 0)


def reached(what: str, count: int) -> bool:
    return noted(what) >= count


def note(what: str) -> None:
    with Redis.from_url(url()) as client:
        client.incr(f"noted:{what}")


def wait(enough: Callable[[], bool]) -> bool:
    """Wait; return whether it came."""
    until = time.monotonic() + TIMEOUT_SECONDS
    while not enough():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def sizes(canvas: Canvas) -> list[Found]:
    """What is sent to Redis, and stored there, for nested gathers that nobody runs yet."""
    found = []
    with Redis.from_url(url()) as client:

        def sent() -> int:
            return int(client.info("stats")["total_net_input_bytes"])

        def stored() -> int:
            return int(client.info("memory")["used_memory"])

        canvas.submit_nested(1)  # connections and scripts do not count
        for depth in DEPTHS:
            before = (sent(), stored())
            began = time.perf_counter()
            canvas.submit_nested(depth)
            seconds = time.perf_counter() - began
            found.append(
                {
                    "depth": depth,
                    # 2 ** depth leaves, and one that takes results for each gather
                    "tasks": 2 ** (depth + 1) - 1,
                    "sent": sent() - before[0],
                    "stored": stored() - before[1],
                    "milliseconds": 1_000 * seconds,
                }
            )
        client.flushdb()
    canvas.open()
    return found


def cancellations(canvas: Canvas) -> list[Found]:
    """How many members began after the whole was cancelled, for each way to do it."""
    found: list[Found] = []
    for number in range(len(canvas.begin_tree())):
        drained()
        before = noted("nap")
        cancel = canvas.begin_tree()[number]
        assert wait(partial(reached, "nap", before + 2)), "nothing began"
        total = noted("total")
        cancel()
        begun = noted("nap")
        drained()
        found.append(
            {
                "how": cancel.__doc__,
                "members": WIDTH,
                "began_before": begun - before,
                "began_after": noted("nap") - begun,
                "callbacks": noted("total") - total,
            }
        )
    return found


def drained() -> None:
    """Wait until no handler has begun for some time: there is no other way to know for all."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < 4 * NAP_SECONDS:
        now = noted("nap")
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.05)


def main(name: str) -> None:
    canvas: Canvas = import_module(f"bench.peers.canvas_{name}").canvas()
    canvas.open()
    found: Found = {"sizes": sizes(canvas)}
    worker = subprocess.Popen(canvas.worker(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        found["one_fails"] = canvas.one_fails()
        found["cancellations"] = cancellations(canvas)
    finally:
        worker.terminate()
        worker.wait()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
