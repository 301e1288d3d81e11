"""The states by name, by stored number and by group."""

import pytest

from fairlane.core.states import LIVE, NOWHERE, TERMINAL, WAITING, State

STORED = {
    "scheduled": 1,
    "queued": 2,
    "executing": 3,
    "retrying": 4,
    "completed": 5,
    "failed": 6,
    "dead_letter": 7,
    "cancelled": 8,
}
"""Written into databases: this table may grow, and no line of it may ever change."""


def test_the_states_are_those_of_the_specification() -> None:
    assert {str(state): state.code for state in State} == STORED


@pytest.mark.parametrize("state", State)
def test_a_stored_number_gives_its_state_back(state: State) -> None:
    assert State.of(state.code) is state


def test_no_state_is_stored_as_nowhere() -> None:
    assert NOWHERE not in STORED.values()


def test_four_states_are_terminal() -> None:
    assert {"completed", "failed", "dead_letter", "cancelled"} == TERMINAL


def test_a_task_waits_runs_or_has_ended() -> None:
    assert {"scheduled", "queued", "retrying"} == WAITING
    assert WAITING | {State.EXECUTING} == LIVE
    assert set(State) == LIVE | TERMINAL
    assert not LIVE & TERMINAL
