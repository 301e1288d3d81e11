"""The journal: what goes in comes out, in order, with names instead of numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.ids import new_ids
from fairlane.core.journal import Passage, decode, encode, place_of
from fairlane.core.lanes import Lane
from fairlane.core.model import Event, moment
from tests.unit.make import TASK_ID, quick

LANES = {7: Lane(7, "bulk", "email", ("gpu",))}
AT = 1_772_366_400_000_000


def told(passage: Passage) -> list[Event]:
    return list(passage.events("c1", AT, LANES.get))


def test_transitions_of_tasks_are_told_in_full_and_in_order() -> None:
    one, other = new_ids(2)
    passage = Passage("complete", "w1", 7, 5, [other, one], [2, 1], [0.25, None])
    assert told(passage) == [
        Event(
            cursor="c1",
            verb="complete",
            at=moment(AT),
            task_id=task_id,
            type="email",
            queue="bulk",
            level=5,
            attempt=attempt,
            worker_id="w1",
            seconds=seconds,
        )
        for task_id, attempt, seconds in ((other, 2, 0.25), (one, 1, None))
    ]


def test_without_attempts_and_durations_the_attempt_is_0_and_the_duration_unknown() -> None:
    events = told(Passage("submit", lane=7, task_ids=new_ids(3)))
    assert [(e.level, e.attempt, e.seconds, e.worker_id) for e in events] == [
        (0, 0, None, None)
    ] * 3


def test_a_transition_of_a_worker_has_nothing_of_a_task() -> None:
    assert told(Passage("joined", "w1")) == [
        Event(cursor="c1", verb="joined", at=moment(AT), worker_id="w1")
    ]


def test_a_lane_that_nobody_knows_leaves_type_and_queue_out() -> None:
    (event,) = told(Passage("submit", lane=99, level=5, task_ids=[TASK_ID]))
    assert (event.type, event.queue) == (None, None)
    assert (event.task_id, event.level) == (TASK_ID, 5)


def test_an_empty_entry_holds_nothing() -> None:
    assert decode(encode([])) == []


@st.composite
def passages(draw: st.DrawFn) -> Passage:
    size = draw(st.integers(0, 4))
    attempts = st.integers(0, 2**31)
    durations = st.none() | st.floats(0, 1e9)
    return Passage(
        draw(st.sampled_from(["submit", "claim", "complete"])),
        draw(st.none() | st.just("w1")),
        draw(st.sampled_from([7, 99])),
        draw(st.integers(0, 10)),
        new_ids(size),
        draw(st.just([]) | st.lists(attempts, min_size=size, max_size=size)),
        draw(st.just([]) | st.lists(durations, min_size=size, max_size=size)),
    )


@quick
@given(st.lists(passages(), max_size=3))
def test_a_stored_entry_tells_what_was_put_in(written: list[Passage]) -> None:
    read = decode(encode(written))
    assert [told(passage) for passage in read] == [told(passage) for passage in written]


def test_cursors_of_one_store_can_be_compared() -> None:
    assert place_of("9") < place_of("10")
    assert place_of("1700-9") < place_of("1700-10") < place_of("1701-0")


@pytest.mark.parametrize("cursor", ["", "x", "1-", "-", "1 2"])
def test_what_no_engine_made_is_no_place(cursor: str) -> None:
    with pytest.raises(ValueError, match="int"):
        place_of(cursor)
