"""What a queue has to be able to do to be measured."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

URL = "FAIRLANE_BENCH_URL"
"""The variable in the environment that names the store, for workers and for who submits."""
CHOICE = "FAIRLANE_BENCH_CHOICE"
"""The one that names the configuration, for queues that are measured in several."""

Command = Sequence[str]


class Peer(Protocol):
    """A queue in its best ordinary configuration on two cores, whose handler does nothing."""

    CONCURRENT: bool
    """Whether several submissions can be under way at once."""

    async def open(self) -> None:
        """Connect, on an empty store, and set up whatever has to be there."""

    async def submit(self, value: int) -> None:
        """Submit one task with one small argument; returns when it is stored."""

    def workers(self) -> Sequence[Command]:
        """What to run: a command for each worker (which may have processes of its own)."""

    async def finished(self) -> int:
        """How many tasks have ended well; where results are kept, how many results there are."""

    async def close(self) -> None: ...


@runtime_checkable
class SubmitsMany(Protocol):
    """A queue with a way to submit many tasks in one go."""

    async def submit_many(self, values: Sequence[int]) -> None: ...


@runtime_checkable
class SubmitsSync(Protocol):
    """A queue that is used from ordinary code and from an event loop alike."""

    def submit_sync(self, value: int) -> None: ...


def url() -> str:
    return os.environ[URL]


def choice(default: str) -> str:
    return os.environ.get(CHOICE) or default


def module(*arguments: str) -> Command:
    """A command that runs a module of this environment."""
    return [sys.executable, "-m", *arguments]
