"""The trail: what engines append, and what comes back."""

from fairlane.core import limits
from fairlane.core.model import Past, moment
from fairlane.core.states import State
from fairlane.core.trail import BYTES, ENTRY, replay_entry, run_entry, trail_of


def test_nothing_is_an_empty_trail() -> None:
    assert trail_of(None) == trail_of(b"") == ()


def test_what_is_appended_comes_back() -> None:
    stored = (
        run_entry(1, 10, 11, 20)
        + run_entry(2, 10, None, None)
        + replay_entry(9, State.DEAD_LETTER, 10, 30, 40)
        + replay_entry(2, State.SCHEDULED, 50, None, 60)
        + replay_entry(4, State.CANCELLED, 60, 70, 80, waits=True)
    )
    assert trail_of(stored) == (
        Past(
            attempt=1,
            version=None,
            state=None,
            ready_at=moment(10),
            happened_at=moment(11),
            next_at=moment(20),
        ),
        Past(
            attempt=2,
            version=None,
            state=None,
            ready_at=moment(10),
            happened_at=None,
            next_at=None,
        ),
        Past(
            attempt=None,
            version=9,
            state=State.DEAD_LETTER,
            ready_at=moment(10),
            happened_at=moment(30),
            next_at=moment(40),
        ),
        Past(
            attempt=None,
            version=2,
            state=State.SCHEDULED,
            ready_at=moment(50),
            happened_at=None,
            next_at=moment(60),
        ),
        Past(
            attempt=None,
            version=4,
            state=State.CANCELLED,
            ready_at=moment(60),
            happened_at=moment(70),
            next_at=moment(80),
            waits=True,
        ),
    )


def test_entries_have_one_size_and_a_number_of_them_is_kept() -> None:
    assert len(run_entry(2**31 - 1, 2**62, 2**62, 2**62)) == ENTRY.size == 32
    assert limits.TRAIL_ENTRIES * ENTRY.size == BYTES
