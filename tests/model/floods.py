"""A store whose claims queue only a few due tasks at once, so that programs have floods.

In a flood a claim chooses by lane, level and due time which due tasks it queues. A retry has its
place by its due time then, until it is queued, and what expires or depends on others takes turns:
the model knows nothing of that, so no task of such a program retries, expires or has parents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.model import Ask, Grant, NewTask
from fairlane.core.submission import new_task
from tests.model import programs
from tests.model.driving import Pair
from tests.model.programs import Choices, Do

BATCH = 3
"""As many tasks as a claim of these programs hands out at most."""


class Floods(Pair):
    """A pair whose store queues so few due tasks in a claim. Others move the rest after it."""

    floods = 0
    """How many claims found more due tasks than they queued at once."""

    def claim(
        self, worker: int, request: str, slots: int, heard: int | None, **options: Any
    ) -> None:
        times = [task.due for task in self.model.tasks.values() if task.due is not None]
        self.floods += sum(due <= self.model.now for due in times) > BATCH
        super().claim(worker, request, slots, heard, **options)
        self.move_due()

    def claim_again(self, worker: int) -> None:
        super().claim_again(worker)
        self.move_due()

    def grant(self, ask: Ask) -> Grant:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limits, "BATCH", BATCH)
            return super().grant(ask)


def submit(choices: Choices, delays: Sequence[int] = (0, 10, 50)) -> Do:
    batch = [_new_task(choices, delays) for _ in range(choices.one(4, 8, 12))]
    return lambda pair: pair.submit(batch)


def _new_task(choices: Choices, delays: Sequence[int]) -> NewTask:
    """The types that may have a limit come first more often than not."""
    type, lowest = choices.one(("a", 8), ("a", 8), ("b", 5), ("c", 0))
    return new_task(
        type,
        {"n": choices.number(2)},
        queue=choices.one(*programs.QUEUES),
        priority=lowest + choices.number(3),
        required_capabilities=choices.one((), (), ("gpu",)),
        max_retries=0,
        delay_seconds=choices.one(*delays),
    )


def claim(choices: Choices) -> Do:
    """No more than a batch."""
    return programs.claim(choices, (1, 1, 2), (0, 1))


def flood(choices: Choices) -> Do:
    """Several tasks become due, and are claimed."""
    submits, advances, claims = submit(choices, (10,)), programs.advance(choices), claim(choices)

    def do(pair: Pair) -> None:
        for step in (submits, advances, claims):
            step(pair)

    return do


def limit(choices: Choices) -> Do:
    """Most types have a limit at any time."""
    type = choices.one("a", "b")
    rate, concurrency = choices.one((0.05, None), (None, 1), (None, 2), (None, 2), (0.0, 0))
    return lambda pair: pair.limit(type, rate, concurrency)


STEPS: tuple[tuple[Callable[[Choices], Do], int], ...] = (
    (flood, 8),
    (submit, 2),
    (claim, 5),
    (limit, 5),
    (programs.settle, 8),
    (programs.reap, 1),
    (programs.move_due, 1),
    (programs.cancel, 1),
    (programs.replay, 1),
    (programs.pause, 1),
    (programs.limit, 1),
    (programs.break_circuits, 1),
    (programs.change_settings, 1),
    (programs.advance, 2),
    (programs.register, 1),
    (programs.mark, 1),
    (programs.restart, 1),
)
