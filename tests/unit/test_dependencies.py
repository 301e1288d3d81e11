"""Tasks that wait for others: what a parent's state means, and which parents can be named."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.dependencies import (
    Dependency,
    OnParentFailure,
    check_batch,
    checked_parents,
    checked_policy,
    dependency_on,
    dependency_on_all,
    parents_elsewhere,
)
from fairlane.core.errors import BatchTooLarge, InvalidDependencies, InvalidTaskId
from fairlane.core.model import NewTask
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.unit.make import TASK_ID, quick, task_id


class TestBond:
    TABLE = (
        # the parent, what it means, and what it means to a task that goes on in any case
        (State.SCHEDULED, Dependency.PENDING, Dependency.PENDING),
        (State.QUEUED, Dependency.PENDING, Dependency.PENDING),
        (State.EXECUTING, Dependency.PENDING, Dependency.PENDING),
        (State.RETRYING, Dependency.PENDING, Dependency.PENDING),
        (State.COMPLETED, Dependency.MET, Dependency.MET),
        (State.FAILED, Dependency.BROKEN, Dependency.MET),
        (State.DEAD_LETTER, Dependency.BROKEN, Dependency.MET),
        (State.CANCELLED, Dependency.BROKEN, Dependency.MET),
    )

    @pytest.mark.parametrize(("parent", "strict", "tolerant"), TABLE)
    def test_a_child_waits_for_the_end_and_then_goes_by_it(
        self, parent: State, strict: Dependency, tolerant: Dependency
    ) -> None:
        assert dependency_on(parent, tolerant=False) is strict
        assert dependency_on(parent, tolerant=True) is tolerant

    def test_every_state_of_a_parent_means_something(self) -> None:
        assert {parent for parent, _, _ in self.TABLE} == set(State)


class TestAllParents:
    @pytest.mark.parametrize(
        ("parents", "strict", "tolerant"),
        [
            ([], Dependency.MET, Dependency.MET),
            ([State.COMPLETED], Dependency.MET, Dependency.MET),
            ([State.COMPLETED, State.QUEUED], Dependency.PENDING, Dependency.PENDING),
            ([State.COMPLETED, State.CANCELLED], Dependency.BROKEN, Dependency.MET),
            ([State.FAILED, State.QUEUED], Dependency.BROKEN, Dependency.PENDING),
            ([None, State.QUEUED], Dependency.BROKEN, Dependency.PENDING),
            ([None], Dependency.BROKEN, Dependency.MET),
        ],
    )
    def test_the_worst_one_counts_and_one_that_is_gone_is_bad(
        self, parents: list[State | None], strict: Dependency, tolerant: Dependency
    ) -> None:
        assert dependency_on_all(parents, tolerant=False) is strict
        assert dependency_on_all(reversed(parents), tolerant=False) is strict
        assert dependency_on_all(parents, tolerant=True) is tolerant


class TestParents:
    @pytest.mark.parametrize("none", [None, (), [], set(), frozenset(), {}], ids=repr)
    def test_there_may_be_none(self, none: Any) -> None:
        assert checked_parents(none) == ()

    @pytest.mark.parametrize(
        "given",
        [
            [task_id(3), task_id(1), task_id(3), task_id(2), task_id(1)],
            (task_id(3), task_id(1), task_id(2)),
            {task_id(3): "", task_id(1): "", task_id(2): ""},
        ],
        ids=["list", "tuple", "dict"],
    )
    def test_each_counts_once_in_the_order_given(self, given: Any) -> None:
        assert checked_parents(given) == (task_id(3), task_id(1), task_id(2))

    def test_they_may_come_one_by_one(self) -> None:
        assert checked_parents(iter([TASK_ID])) == (TASK_ID,)

    @pytest.mark.parametrize("given", [TASK_ID, "", 5, True, 1.5], ids=repr)
    def test_what_is_no_list_is_refused(self, given: Any) -> None:
        with pytest.raises(InvalidDependencies, match=r"is a list of task ids\. Got .*\.$"):
            checked_parents(given)

    @pytest.mark.parametrize("parent", ["", "1", TASK_ID.upper(), None, 5, [TASK_ID]], ids=repr)
    def test_what_is_no_task_id_is_refused(self, parent: Any) -> None:
        with pytest.raises(InvalidTaskId, match="A task id is a UUID"):
            checked_parents([TASK_ID, parent])

    def test_999_and_no_more(self) -> None:
        parents = [task_id(number) for number in range(1_000)]
        assert checked_parents(parents[:999]) == tuple(parents[:999])
        assert len(checked_parents(parents[:999] * 2)) == 999, "each counts once"
        with pytest.raises(InvalidDependencies, match="at most 999 others, not 1,000: gather them"):
            checked_parents(parents)


class TestBatch:
    def test_tasks_and_their_parents_are_counted(self) -> None:
        parents = [task_id(number) for number in range(999)]
        wide = new_task("t", depends_on=parents)
        check_batch([wide] * 100)
        check_batch([new_task("t")] * 1_000)
        with pytest.raises(BatchTooLarge, match="at most 100,000 parents together, not 100,899"):
            check_batch([wide] * 101)
        with pytest.raises(BatchTooLarge, match="At most 1,000 tasks are stored at once"):
            check_batch([new_task("t")] * 1_001)


class TestPolicy:
    @pytest.mark.parametrize(
        ("given", "policy"),
        [
            ("cancel", OnParentFailure.CANCEL),
            ("continue", OnParentFailure.CONTINUE),
            (OnParentFailure.CANCEL, OnParentFailure.CANCEL),
            (OnParentFailure.CONTINUE, OnParentFailure.CONTINUE),
        ],
    )
    def test_there_are_two(self, given: str, policy: OnParentFailure) -> None:
        assert checked_policy(given) is policy

    @pytest.mark.parametrize("given", ["", "CANCEL", "skip", None, True, 0, ["cancel"]], ids=repr)
    def test_any_other_is_refused(self, given: Any) -> None:
        with pytest.raises(InvalidDependencies, match=r"is cancel or continue\. Got .*\.$"):
            checked_policy(given)


def batch(*tasks: tuple[int, list[int]]) -> list[NewTask]:
    """New tasks by number, each with the numbers of its parents."""
    return [
        new_task("email", task_id=task_id(number), depends_on=[task_id(each) for each in parents])
        for number, parents in tasks
    ]


class TestParentsElsewhere:
    @pytest.mark.parametrize(
        ("tasks", "elsewhere"),
        [
            ([], []),
            ([(1, [])], []),
            ([(1, [8])], [8]),
            ([(1, [9, 8])], [9, 8]),
            ([(1, [9]), (2, [8, 9]), (3, [9])], [9, 8]),
            ([(1, []), (2, [1])], []),
            ([(1, []), (2, [1]), (3, [2, 1])], []),
            ([(1, []), (2, [1, 9])], [9]),
        ],
    )
    def test_they_are_those_that_do_not_come_earlier_in_the_batch(
        self, tasks: list[tuple[int, list[int]]], elsewhere: list[int]
    ) -> None:
        assert parents_elsewhere(batch(*tasks)) == [task_id(number) for number in elsewhere]

    def test_a_task_is_not_its_own_parent(self) -> None:
        assert parents_elsewhere(batch((1, [1]))) == [task_id(1)]

    def test_a_parent_that_comes_later_must_be_there_already(self) -> None:
        assert parents_elsewhere(batch((1, [2]), (2, []))) == [task_id(2)]
        assert parents_elsewhere(batch((1, [2]), (2, [1]))) == [task_id(2)], "no circle is accepted"

    @quick
    @given(
        st.lists(
            st.tuples(st.integers(0, 9), st.lists(st.integers(0, 12), max_size=4, unique=True)),
            max_size=8,
            unique_by=lambda task: task[0],
        )
    )
    def test_with_them_stored_every_parent_is_known_when_its_child_comes(
        self, tasks: list[tuple[int, list[int]]]
    ) -> None:
        elsewhere = parents_elsewhere(batch(*tasks))
        assert len(set(elsewhere)) == len(elsewhere)
        known = set(elsewhere)
        needed = set()
        before: set[str] = set()
        for task in batch(*tasks):
            assert known.issuperset(task.depends_on)
            needed.update(set(task.depends_on) - before)
            known.add(task.task_id)
            before.add(task.task_id)
        assert set(elsewhere) == needed, "and none is asked for in vain"
