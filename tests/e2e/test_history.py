"""The checker itself: every invariant notices what it is there for, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlane import State
from fairlane.core.inputs import TaskInput
from fairlane.core.machine import DOOM
from fairlane.core.model import Attempt, Membership
from tests.e2e.history.checker import INVARIANTS, check, verdict
from tests.e2e.history.holding import GAP_SECONDS, Held, Spells
from tests.e2e.history.keeping import UNSETTLED_SECONDS
from tests.e2e.history.lines import (
    End,
    Fail,
    Healed,
    History,
    Invoke,
    Killed,
    Ok,
    Recorder,
    Start,
    Unknown,
    digest,
)
from tests.e2e.history.made_up import LEASE, WORKER, Story, at
from tests.e2e.history.terms import Terms, Violation

TERMS = Terms(
    lease=LEASE,
    overtakes=0,
    longest_wait=5.0,
    concurrency={"work": 1},
    rates={"work": 1.0},
    transactional=frozenset({"work"}),
)
TOO_LONG = 2 * LEASE + UNSETTLED_SECONDS + 1
"""A worker may not hold for so long what it does not run."""
Spoil = Callable[[Story], None]


def broken(story: Story) -> dict[str, list[Violation]]:
    """What is wrong, by invariant."""
    found: dict[str, list[Violation]] = {}
    for each in check(*story.told(), TERMS):
        found.setdefault(each.invariant, []).append(each)
    return found


def test_a_good_history_passes() -> None:
    story = Story(3)
    story.submit("t3", 30.5, answer=Unknown)  # of which nothing came
    story.submit("refused", 31, answer=Fail)
    story.lines.append(Healed(at=9, wall=9, pids=(7,)))
    assert broken(story) == {}


# --- what each must notice ------------------------------------------------------------------------


def vanished(story: Story) -> None:
    del story.tasks["t1"]
    story.rows = [("t2", State.COMPLETED)]


def only_in_the_api(story: Story) -> None:
    story.rows = [("t2", State.COMPLETED)]


def in_dead_hands(story: Story) -> None:
    story.change("t1", state=State.EXECUTING, worker_id="gone")


def stored_twice_for_one_call(story: Story) -> None:
    story.change("t2", payload=b"t1")


def nobody_asked(story: Story) -> None:
    story.lines = [
        line
        for line in story.lines
        if not isinstance(line, Invoke) or line.payload != digest(b"t1")
    ]


def was_refused(story: Story) -> None:
    nobody_asked(story)
    story.submit("t1", 10, answer=Fail)


def payload_changed(story: Story) -> None:
    story.submit("other", 5, answer=Unknown)
    story.change("t1", payload=b"other")


def result_changed(story: Story) -> None:
    story.change("t1", result=b"2")


def two_outcomes_of_one_attempt(story: Story) -> None:
    (attempt,) = story.tasks["t1"].attempts
    story.change("t1", attempts=(attempt, attempt))


def settled_twice(story: Story) -> None:
    story.event("complete", "t1", 14)


def ended_and_went_on(story: Story) -> None:
    story.event("due", "t1", 14)


def fence_issued_again(story: Story) -> None:
    story.event("release", "t1", 11.5)
    story.events.sort(key=lambda event: event.at)
    story.event("claim", "t1", 14)


def stale_outcome_taken(story: Story) -> None:
    story.events = [event for event in story.events if event.verb != "complete"]
    story.event("claim", "t1", 15, 2)
    story.event("complete", "t1", 16, 1)


def fence_begun_twice(story: Story) -> None:
    story.run("t1", 14, 15, worker="worker-2")


def begun_beyond_the_last_fence(story: Story) -> None:
    story.run("t1", 14, 15, attempt=2)


def begun_too_often(story: Story) -> None:
    for attempt in range(2, 7):
        story.run("t1", 10.0 + attempt, None, attempt)
    story.change("t1", attempt=6)


def completed_without_a_run(story: Story) -> None:
    story.without(Start, "t1")


def completed_without_an_end(story: Story) -> None:
    story.without(End, "t1")


def begun_before_its_time(story: Story) -> None:
    story.change("t1", run_at=at(11.5))


def claimed_after_expiry(story: Story) -> None:
    story.change("t1", expires_at=at(10.5))


def begun_after_cancel(story: Story) -> None:
    story.ask("cancel", 10.5, "t1", found="queued")


def claimed_while_paused(story: Story) -> None:
    story.ask("pause", 10)
    story.ask("resume", 15)


def claimed_in_an_endless_pause(story: Story) -> None:
    story.ask("pause", 15)


def completed_after_cancel(story: Story) -> None:
    story.ask("cancel", 11.5, "t1", found="executing")


def journal_completes_what_was_cancelled(story: Story) -> None:
    story.events = [event for event in story.events if event.verb != "complete"]
    story.event("cancel", "t1", 11.5)
    story.event("complete", "t1", 12)


def overtaken(story: Story) -> None:
    story.change("t1", created_at=at(25), ready_at=at(25))


def starved(story: Story) -> None:
    story.change("t1", ready_at=at(5))


def two_of_one_key(story: Story) -> None:
    story.change("t1", idempotency_key="k")
    story.change("t2", idempotency_key="k")


def key_told_otherwise(story: Story) -> None:
    story.change("t1", idempotency_key="k")
    story.submit("t2", 22, key="k")


def too_many_at_once(story: Story) -> None:
    story.events = [event for event in story.events if event.verb != "complete"]


def too_fast(story: Story) -> None:
    story.event("claim", "t3", 20.1)
    story.events.sort(key=lambda event: event.at)


def overlapped(story: Story) -> None:
    story.run("t1", 11.5, 12.5, attempt=2)
    story.change("t1", attempt=2)


def effect_twice(story: Story) -> None:
    story.effects = {"t1": 2, "t2": 1}


def effect_missing(story: Story) -> None:
    story.effects = {"t1": 1}


def effect_of_nobody(story: Story) -> None:
    story.effects = {"t1": 1, "t2": 1, "t9": 1}


def counters_off(story: Story) -> None:
    story.counted = {State.COMPLETED: 3}


def in_two_places(story: Story) -> None:
    story.rows = [("t1", State.QUEUED), ("t1", State.COMPLETED), ("t2", State.COMPLETED)]
    story.counted = {State.COMPLETED: 2, State.QUEUED: 1}


def in_no_place(story: Story) -> None:
    story.rows = [("t1", None), ("t2", State.COMPLETED)]
    story.counted = {State.COMPLETED: 1}


def api_says_otherwise(story: Story) -> None:
    story.rows = [("t1", State.FAILED), ("t2", State.COMPLETED)]
    story.counted = {State.COMPLETED: 1, State.FAILED: 1}


def idle_after_trouble(story: Story) -> None:
    story.lines.append(Healed(at=22, wall=22, pids=(7,)))


def taken_over_late(story: Story) -> None:
    story.lines.append(Killed(at=12, wall=12, worker="worker-0"))
    story.run("t1", 10.5, None, attempt=1, worker="worker-0")
    story.without(Start, "t1")
    story.run("t1", 10.5, None, attempt=1, worker="worker-0")
    story.run("t1", 40, 41, attempt=2)
    story.change("t1", attempt=2)


def never_taken_over(story: Story) -> None:
    story.lines.append(Killed(at=12, wall=12, worker=WORKER))
    story.without(End, "t1")


def child_before_parent(story: Story) -> None:
    story.change("t1", depends_on=("t2",))


def child_of_a_failure(story: Story) -> None:
    story.change("t1", state=State.FAILED)
    story.change("t2", depends_on=("t1",))


def family(story: Story) -> None:
    """The second task takes the result of the first one."""
    parents = ("t1",)
    story.change("t2", depends_on=parents, inputs={"got": TaskInput(parents)})
    story.take("t2", 1)


def took_another_result(story: Story) -> None:
    family(story)
    story.change("t1", result=b"2")


def took_them_in_another_order(story: Story) -> None:
    given = ("t1", "t2")
    story.change("t1", result=b'["t1"]')
    story.change(
        "t2", result=b'["t2"]', depends_on=given, inputs={"got": TaskInput(given, many=True)}
    )
    story.take("t2", [["t2"], ["t1"]])


def took_them_in_another_nesting(story: Story) -> None:
    given = ("t1", "t1", "t1")
    nested = TaskInput(given, many=True, nesting=(2, -1, -1, -1))
    story.change("t2", depends_on=("t1",), inputs={"got": nested})
    story.take("t2", [1, [1, 1]])


def took_a_failure_for_a_result(story: Story) -> None:
    family(story)
    story.change("t1", state=State.FAILED)
    story.change("t2", tolerant=True)


def doomed_by_nobody(story: Story) -> None:
    story.change("t2", state=State.CANCELLED, depends_on=("t1",), error=DOOM.error)
    story.without(Start, "t2")


def doomed_though_it_goes_on(story: Story) -> None:
    doomed_by_nobody(story)
    story.change("t1", state=State.FAILED)
    story.change("t2", tolerant=True)


def doomed_and_run(story: Story) -> None:
    story.change("t1", state=State.FAILED)
    story.change("t2", state=State.CANCELLED, depends_on=("t1",), error=DOOM.error)


def not_doomed(story: Story) -> None:
    story.change("t1", state=State.DEAD_LETTER)
    story.change("t2", state=State.QUEUED, depends_on=("t1",))
    story.without(Start, "t2")


def half_a_workflow(story: Story) -> None:
    story.change("t1", workflow_id="w", membership=Membership("a", 2))


def held_and_ended(story: Story) -> None:
    story.hold("t1", 11, 12 + TOO_LONG)


def held_and_never_begun(story: Story) -> None:
    story.hold("t1", 11, 11 + TOO_LONG)
    story.without(Start, "t1")


def held_long_before_it_began(story: Story) -> None:
    story.hold("t1", 11 - TOO_LONG, 12)


def held_and_run_by_another(story: Story) -> None:
    story.hold("t1", 11, 11 + TOO_LONG)
    story.without(Start, "t1")
    story.run("t1", 11, None, worker="worker-2")


CAUGHT: list[tuple[str, Spoil]] = [
    ("I1", vanished),
    ("I1", only_in_the_api),
    ("I1", in_dead_hands),
    ("I1", stored_twice_for_one_call),
    ("I2", nobody_asked),
    ("I2", was_refused),
    ("I2", payload_changed),
    ("I2", result_changed),
    ("I3", two_outcomes_of_one_attempt),
    ("I3", settled_twice),
    ("I3", ended_and_went_on),
    ("I4", fence_issued_again),
    ("I4", stale_outcome_taken),
    ("I4", fence_begun_twice),
    ("I4", begun_beyond_the_last_fence),
    ("I5", begun_too_often),
    ("I6", completed_without_a_run),
    ("I6", completed_without_an_end),
    ("I7", begun_before_its_time),
    ("I7", claimed_after_expiry),
    ("I7", begun_after_cancel),
    ("I7", claimed_while_paused),
    ("I7", claimed_in_an_endless_pause),
    ("I8", completed_after_cancel),
    ("I8", journal_completes_what_was_cancelled),
    ("I9", overtaken),
    ("I10", starved),
    ("I11", two_of_one_key),
    ("I11", key_told_otherwise),
    ("I12", too_many_at_once),
    ("I13", too_fast),
    ("I14", overlapped),
    ("I15", effect_twice),
    ("I15", effect_missing),
    ("I15", effect_of_nobody),
    ("I16", counters_off),
    ("I16", in_two_places),
    ("I16", in_no_place),
    ("I16", api_says_otherwise),
    ("I17", idle_after_trouble),
    ("I17", taken_over_late),
    ("I17", never_taken_over),
    ("I18", child_before_parent),
    ("I18", child_of_a_failure),
    ("I21", held_and_ended),
    ("I21", held_and_never_begun),
    ("I21", held_long_before_it_began),
    ("I21", held_and_run_by_another),
    ("I22", took_another_result),
    ("I22", took_them_in_another_order),
    ("I22", took_them_in_another_nesting),
    ("I22", took_a_failure_for_a_result),
    ("I23", doomed_by_nobody),
    ("I23", doomed_though_it_goes_on),
    ("I23", doomed_and_run),
    ("I23", not_doomed),
    ("I24", half_a_workflow),
]


@pytest.mark.parametrize(
    ("name", "spoil"), CAUGHT, ids=lambda value: getattr(value, "__name__", "")
)
def test_it_is_noticed(name: str, spoil: Spoil) -> None:
    good = Story()
    good.effects = {"t1": 1, "t2": 1}
    assert broken(good) == {}
    spoil(good)
    story, dump = good.told()
    violations = list(INVARIANTS[name](story, dump, TERMS))
    assert violations
    assert all(each.invariant == name for each in violations)
    assert str(violations[0]) in verdict(story, dump, violations)


def test_every_invariant_is_tried() -> None:
    assert {name for name, _ in CAUGHT} == set(INVARIANTS)


# --- what is right, though it looks wrong ---------------------------------------------------------


def test_what_others_took_away_may_overlap() -> None:
    story = Story()
    lost = Attempt(1, WORKER, at(11), at(11.4), "lost")
    done = Attempt(2, WORKER, at(11.5), at(13), "completed")
    story.change("t1", attempt=2, attempts=(lost, done))
    story.events = [event for event in story.events if event.task_id != "t1"]
    story.run("t1", 11.5, 12.5, attempt=2)
    assert broken(story) == {}


def test_what_is_not_drained_may_wait_or_run() -> None:
    story = Story()
    story.change("t1", state=State.EXECUTING, worker_id=WORKER)
    story.without(End, "t1")
    story.hold("t1", 11, 11 + 2 * TOO_LONG)
    story.change("t2", state=State.RETRYING)
    assert broken(story) == {}


def test_a_worker_takes_its_time_to_notice_what_it_holds() -> None:
    story = Story()
    story.hold("t1", 11 - TOO_LONG + 2, 12 + TOO_LONG - 2)
    assert broken(story) == {}


def test_what_was_held_before_and_after_a_gap_is_not_known_between() -> None:
    story = Story()
    story.hold("t1", 11, 20)
    story.hold("t1", 20 + TOO_LONG, 30 + TOO_LONG)
    assert broken(story) == {}


def test_a_child_takes_what_its_parents_left() -> None:
    story = Story(4)
    family(story)
    story.change("t3", state=State.FAILED)
    given = ("t1", "t1", "t3")
    nested = TaskInput(given, many=True, nesting=(2, -1, 1, -1, -1))
    story.change("t4", depends_on=("t1", "t3"), inputs={"got": nested}, tolerant=True)
    story.take(
        "t4", [[1, [1]], {"task_id": "t3", "state": "failed", "message": "no", "code": None}]
    )
    found = check(*story.told(), TERMS)
    assert not [each for each in found if each.invariant in {"I22", "I23", "I24"}]


def test_a_schedule_asks_for_many_tasks() -> None:
    story = Story()
    nobody_asked(story)
    payload = digest(b"t1")
    asked = Invoke(at=5, wall=5, call="schedule", op="schedule", payload=payload)
    story.lines += [asked, Ok(at=6, wall=6, call="schedule")]
    story.change("t2", payload=b"t1")
    story.without(Ok, "t2")
    assert broken(story) == {}


def test_what_cannot_hold_is_left_out() -> None:
    story = Story()
    counters_off(story)
    assert broken(story)
    assert check(*story.told(), TERMS, without=["I16"]) == []


def test_a_replay_begins_a_new_life() -> None:
    story = Story(1, state=State.FAILED)
    story.events[-1] = story.events[0]
    story.events = story.events[1:-1]
    story.event("fail", "t1", 13)
    story.ask("replay", 14, "t1")
    story.event("replay", "t1", 14)
    story.event("claim", "t1", 15, 2)
    story.run("t1", 15, 16, 2)
    story.event("complete", "t1", 16, 2)
    story.change("t1", state=State.COMPLETED, attempt=2)
    assert broken(story) == {}


def test_dead_letters_need_no_heir() -> None:
    story = Story()
    story.lines.append(Killed(at=12, wall=12, worker=WORKER))
    story.without(End, "t1")
    story.change("t1", state=State.DEAD_LETTER, result=None)
    story.event("dead_letter", "t1", 18)
    story.events = [
        event for event in story.events if (event.verb, event.task_id) != ("complete", "t1")
    ]
    story.events.sort(key=lambda event: event.at)
    assert broken(story) == {}


# --- looks ----------------------------------------------------------------------------------------

ONE, OTHER = Held("t1", 1, WORKER), Held("t2", 1, WORKER)


def looked(*looks: tuple[float, set[Held]]) -> list[tuple[Held, float, float]]:
    """What becomes of looks, each of which takes a second to be answered."""
    spells = Spells()
    for moment, found in looks:
        spells.look(moment, moment + 1, dict.fromkeys(found, LEASE))
    assert {each.lease for each in spells.all()} <= {LEASE}
    return sorted((each.held, each.since, each.until) for each in spells.all())


def test_what_every_look_finds_is_one_spell() -> None:
    """From the answer to the first question to the last question: it is certain no longer."""
    found = looked((10, {ONE}), (12, {ONE, OTHER}), (14, {ONE, OTHER}))
    assert found == [(ONE, 11, 14), (OTHER, 13, 14)]


def test_a_look_that_does_not_find_it_ends_a_spell() -> None:
    found = looked((10, {ONE}), (12, {ONE}), (14, set()), (16, {ONE}), (18, {ONE}))
    assert found == [(ONE, 11, 12), (ONE, 17, 18)]


def test_so_does_a_time_without_looks() -> None:
    late = 12 + GAP_SECONDS + 1
    found = looked((10, {ONE}), (12, {ONE}), (late, {ONE}), (late + 2, {ONE}))
    assert found == [(ONE, 11, 12), (ONE, late + 1, late + 2)]


def test_what_one_look_found_was_held_for_a_moment() -> None:
    assert looked((10, {ONE}), (12, set())) == []


# --- lines ----------------------------------------------------------------------------------------


def test_lines_of_several_writers_are_read_back(tmp_path: Path) -> None:
    clients, handlers = Recorder(tmp_path / "clients"), Recorder(tmp_path / "handlers")
    clients.write(Invoke, call="1", op="submit", payload="p", key="k")
    clients.write(Ok, call="1", task="t1")
    clients.write(Invoke, call="2", op="submit")
    handlers.write(Start, task="t1", attempt=1, worker="w", pid=os.getpid())
    handlers.write(End, task="t1", attempt=1, worker="w", pid=os.getpid(), result="r")
    handlers.write(Start, task="t1", attempt=2, worker="w", pid=os.getpid())
    clients.close()
    handlers.close()
    history = History.read(tmp_path / "clients", tmp_path / "handlers")
    first, second = history.calls
    assert first.ok is not None
    assert (first.ok.task, second.answer.__class__) == ("t1", Unknown)
    assert [run.end is not None for run in history.runs["t1"]] == [True, False]
    assert sorted(line.at for line in history.lines) == [line.at for line in history.lines]
