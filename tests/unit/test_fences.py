"""Fences: which deleted tasks leave their last attempt behind."""

import pytest

from fairlane.core.fences import FENCE_MICROSECONDS, leaves_fence
from fairlane.core.states import State
from tests.unit.make import NOW, SECOND


@pytest.mark.parametrize(
    ("state", "attempt", "ended_at", "pruned", "leaves"),
    [
        (State.COMPLETED, 1, NOW, False, True),
        (State.COMPLETED, 1, NOW, True, False),
        (State.CANCELLED, 1, NOW, True, True),
        (State.CANCELLED, 0, NOW, False, False),
        (State.DEAD_LETTER, 4, NOW - FENCE_MICROSECONDS + SECOND, False, True),
        (State.DEAD_LETTER, 4, NOW - FENCE_MICROSECONDS, False, False),
    ],
)
def test_who_leaves_a_fence(
    state: State, attempt: int, ended_at: int, pruned: bool, leaves: bool
) -> None:
    assert leaves_fence(state, attempt, ended_at, NOW, pruned=pruned) is leaves
