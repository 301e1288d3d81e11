"""The operations of a bound token: what is outside of its bounds does not exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from fairlane.core.bounded import BoundOperations
from fairlane.core.errors import (
    BatchTooLarge,
    Conflict,
    DuplicateTask,
    IdempotencyConflict,
    InvalidTaskId,
    OutOfBounds,
    TaskIdTaken,
    UnknownDependency,
)
from fairlane.core.filters import EVERYTHING, Filter, Found, Page, Total
from fairlane.core.flow import Flow, Mode, Op, perform
from fairlane.core.ids import numbered
from fairlane.core.model import (
    Accepted,
    Cancelled,
    Deleted,
    Membership,
    NewTask,
    NewWorker,
    Replayed,
    Report,
    Start,
    Swept,
    Verdict,
)
from fairlane.core.ownership import Bounds
from fairlane.core.reruns import Rerun
from fairlane.core.states import State
from fairlane.core.store import Operations
from fairlane.core.submission import new_task
from fairlane.core.why import Reason
from tests.unit.make import NOW, facts, stored, task_id

BOUNDS = Bounds("acme", own=True, queues=frozenset({"a"}))
MINE, THEIRS, NONE = task_id(1), task_id(2), task_id(3)
TASKS = {
    MINE: stored(task_id=MINE, owner="acme", queue="a"),
    THEIRS: stored(task_id=THEIRS, owner="other", queue="a"),
}
QUEUED = frozenset({State.QUEUED})
NARROWED = Filter(owner="acme", queues=frozenset({"a"}))


class Engine:
    """Answers from canned values. Every operation exists, and `asked` records it."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., Op[Any]]:
        def build(*args: Any, **how: Any) -> Op[Any]:
            def start() -> Flow[Any]:
                return (yield (name, *args, *how.items()))

            return Op(name, Mode.WRITE, start)

        return build

    def answer(self, request: tuple[Any, ...]) -> Any:
        self.asked.append(request)
        match request:
            case ("get" | "heads", ids):
                return [TASKS.get(id) for id in ids]
            case ("cancel" | "replay" | "delete" as verb, ids, *_):
                kind = {"cancel": Cancelled, "replay": Replayed, "delete": Deleted}[verb]
                return [kind(id, applied=True, state=State.QUEUED) for id in ids]
        return self.answers[request[0]]


def bound(engine: Engine) -> BoundOperations:
    return BoundOperations(cast(Operations, engine), BOUNDS)


def run(engine: Engine, op: Op[Any]) -> Any:
    return perform(op.flow(), engine.answer)


def owned(**options: Any) -> NewTask:
    return BOUNDS.own_task(new_task("t", queue="a", **options))


class TestSubmit:
    def submit(self, *tasks: NewTask, answers: Sequence[Accepted] = ()) -> list[Accepted]:
        self.engine = Engine(submit=list(answers))
        answer: list[Accepted] = run(self.engine, bound(self.engine).submit(tasks))
        return answer

    @property
    def stored(self) -> bool:
        return "submit" in [request[0] for request in self.engine.asked]

    def test_what_is_within_the_bounds(self) -> None:
        first, second = owned(), owned(depends_on=[MINE])
        answers = [Accepted(each.task_id, State.QUEUED, NOW) for each in (first, second)]
        assert self.submit(first, second, answers=answers) == answers
        assert ("submit", (first, second)) in self.engine.asked

    def test_nothing(self) -> None:
        assert self.submit() == []

    def test_a_task_that_nobody_has_brought_within_them(self) -> None:
        with pytest.raises(OutOfBounds):
            self.submit(owned(), new_task("t", queue="a"))
        assert self.engine.asked == []

    def test_an_id_that_a_foreign_task_has(self) -> None:
        with pytest.raises(TaskIdTaken):
            self.submit(owned(), owned(task_id=THEIRS))
        assert not self.stored

    def test_an_id_that_a_foreign_task_has_taken_since(self) -> None:
        mine = owned(task_id=NONE)
        TASKS[NONE] = replace(TASKS[THEIRS], task_id=NONE)
        known = Accepted(NONE, State.QUEUED, NOW, known=True)
        engine = Engine()
        try:
            with pytest.raises(TaskIdTaken):
                run(engine, bound(engine).check_known([mine], [known]))
        finally:
            del TASKS[NONE]

    def test_an_id_of_ones_own_task(self) -> None:
        known = Accepted(MINE, State.QUEUED, NOW, known=True)
        assert self.submit(owned(task_id=MINE), answers=[known]) == [known]

    @pytest.mark.parametrize("parent", [THEIRS])
    def test_a_parent_that_is_not_ones_own(self, parent: str) -> None:
        with pytest.raises(UnknownDependency) as caught:
            self.submit(owned(depends_on=[MINE, parent]))
        assert caught.value.message == UnknownDependency().message, "as for an unknown task"
        assert not self.stored

    @pytest.mark.parametrize(
        ("options", "error"),
        [({"idempotency_key": "k"}, IdempotencyConflict), ({"unique": True}, DuplicateTask)],
    )
    def test_a_key_of_the_subject_whose_task_may_not_be_shown(
        self, options: dict[str, Any], error: type[Conflict]
    ) -> None:
        known = Accepted(THEIRS, State.QUEUED, NOW, known=True)
        with pytest.raises(error):
            self.submit(owned(**options), answers=[known])

    def test_in_two_halves(self) -> None:
        engine = Engine()
        ops = bound(engine)
        task = owned()
        run(engine, ops.check_new([task]))
        run(engine, ops.check_known([task], [Accepted(task.task_id, State.QUEUED, NOW)]))
        with pytest.raises(TaskIdTaken):
            run(engine, ops.check_new([owned(task_id=THEIRS)]))

    def test_parents_are_looked_up_a_batch_at_a_time(self) -> None:
        parents = [task_id(100 + number) for number in range(1_050)]
        tasks = [owned(depends_on=parents[at : at + 100]) for at in range(0, 1_050, 100)]
        self.submit(*tasks, answers=[Accepted(each.task_id, State.QUEUED, NOW) for each in tasks])
        assert [len(ids) for name, ids in self.engine.asked if name == "heads"] == [11, 1_000, 50]


class TestRead:
    def test_tasks(self) -> None:
        engine = Engine()
        found = run(engine, bound(engine).get([THEIRS, MINE, NONE]))
        assert found == [None, TASKS[MINE], None]
        assert run(engine, bound(engine).heads([THEIRS, MINE, NONE])) == found

    def test_lists_and_counts(self) -> None:
        page, found = Page([TASKS[MINE]], None), Found([MINE], None)
        engine = Engine(page=page, find=found, total=Total(1, exact=True))
        ops = bound(engine)
        assert run(engine, ops.page(EVERYTHING, 10)) == page
        assert run(engine, ops.find(EVERYTHING, 5, "c")) == found
        assert run(engine, ops.total(EVERYTHING)) == Total(1, exact=True)
        assert engine.asked == [
            ("page", NARROWED, 10, None),
            ("find", NARROWED, 5, "c"),
            ("total", NARROWED),
        ]
        for op in (ops.page(Filter(owner="x"), 1), ops.find(Filter(owner="x"), 1)):
            with pytest.raises(OutOfBounds):
                run(engine, op)

    def test_positions(self) -> None:
        engine = Engine(position=["one", "two", None])
        assert run(engine, bound(engine).position([MINE, THEIRS, NONE])) == ["one", None, None]

    def test_why(self) -> None:
        reasons = [Reason("position", "It is next.")]
        engine = Engine(why=reasons)
        assert run(engine, bound(engine).why(MINE)) == reasons
        assert run(engine, bound(engine).why(THEIRS)) is None
        assert run(engine, bound(engine).why(NONE)) is None
        with pytest.raises(InvalidTaskId):
            run(engine, bound(engine).why("x"))

    def test_definitions_of_types(self) -> None:
        engine = Engine(definition=None)
        assert run(engine, bound(engine).definition("work")) is None
        assert engine.asked == [("definition", "work")]

    def test_of_the_facts_only_the_time(self) -> None:
        engine = Engine(facts=facts(now=5))
        found = run(engine, bound(engine).facts())
        assert found.now == 5
        assert not any((found.lanes, found.tallies, found.streams, found.workers, found.samples))


class TestChange:
    @pytest.mark.parametrize("verb", ["cancel", "replay", "delete"])
    def test_by_id(self, verb: str) -> None:
        engine = Engine()
        change = getattr(bound(engine), verb)
        theirs, mine, none = run(engine, change([THEIRS, MINE, NONE], among=QUEUED))
        assert (theirs.task_id, theirs.applied, theirs.state) == (THEIRS, False, None)
        assert (mine.task_id, mine.applied) == (MINE, True)
        assert none == replace(theirs, task_id=NONE), "as for an unknown task"
        assert engine.asked[-1][:2] == (verb, [MINE])
        assert ("among", QUEUED) in engine.asked[-1]
        engine.asked.clear()
        assert not run(engine, change([THEIRS]))[0].applied
        assert engine.asked == [("heads", [THEIRS])], "nothing is left to change"
        with pytest.raises(BatchTooLarge):
            run(engine, change([THEIRS] * 501))

    def test_a_replay_is_on_the_terms_that_were_given(self) -> None:
        engine = Engine()
        run(engine, bound(engine).replay([MINE], reset_retry_count=False, level=9))
        assert {("reset_retry_count", False), ("level", 9)} < set(engine.asked[-1][2:])

    @pytest.mark.parametrize("verb", ["cancel_where", "replay_where", "delete_where"])
    def test_by_filter(self, verb: str) -> None:
        engine = Engine(**{verb: Swept(1, 1, None)})
        change = getattr(bound(engine), verb)
        assert run(engine, change(EVERYTHING, "c")) == Swept(1, 1, None)
        assert engine.asked[0][:3] == (verb, NARROWED, "c")
        with pytest.raises(OutOfBounds):
            run(engine, change(Filter(queues=frozenset({"b"}))))
        assert len(engine.asked) == 1

    def test_a_replay_by_filter_is_on_the_terms_that_were_given(self) -> None:
        engine = Engine(replay_where=Swept(1, 1, None))
        op = bound(engine).replay_where(EVERYTHING, reset_retry_count=False, level=9)
        run(engine, op)
        assert engine.asked[0][3:] == (("reset_retry_count", False), ("level", 9))


class TestWorkers:
    @pytest.mark.parametrize("queues", [None, frozenset({"a"})])
    def test_register_for_the_queues_of_their_token(self, queues: frozenset[str] | None) -> None:
        engine = Engine(register="w", forget=True)
        assert run(engine, bound(engine).register(NewWorker("w", queues=queues))) == "w"
        assert engine.asked == [("register", NewWorker("w", queues=frozenset({"a"})))]
        assert run(engine, bound(engine).forget("w"))

    def test_register_for_no_others(self) -> None:
        engine = Engine()
        with pytest.raises(OutOfBounds):
            run(engine, bound(engine).register(NewWorker("w", queues=frozenset({"a", "b"}))))
        assert engine.asked == []

    def test_read_what_they_hold(self) -> None:
        engine = Engine(holdings="these")
        assert run(engine, bound(engine).holdings("w", 5, "c")) == "these"
        assert engine.asked == [("holdings", "w", 5, "c")]

    def test_count_what_completes_in_their_queues(self) -> None:
        engine = Engine(completions={"t": 7})
        assert run(engine, bound(engine).completions(["t"])) == {"t": 7}
        assert engine.asked == [("completions", ["t"], frozenset({"a"}))]
        with pytest.raises(OutOfBounds):
            run(engine, bound(engine).completions(["t"], frozenset({"b"})))

    @pytest.mark.parametrize("verb", ["start", "progress", "disown"])
    def test_reports_tell_nothing_of_foreign_tasks(self, verb: str) -> None:
        ids = [MINE, THEIRS, NONE, MINE]
        verdicts = [Verdict.STALE, Verdict.STALE, Verdict.MISSING, Verdict.APPLIED]
        engine = Engine(**{verb: verdicts})
        kinds: dict[str, Any] = {"start": Start, "progress": Report, "disown": lambda *run: run}
        reports = [kinds[verb](id, 1) for id in ids]
        told = run(engine, getattr(bound(engine), verb)("w", reports))
        assert told == [Verdict.STALE, Verdict.MISSING, Verdict.MISSING, Verdict.APPLIED]
        assert run(engine, bound(engine).judge(ids, verdicts)) == told

    def test_what_applies_is_not_looked_up(self) -> None:
        engine = Engine()
        run(engine, bound(engine).judge([MINE], [Verdict.APPLIED]))
        assert engine.asked == []


class TestWorkflows:
    def test_tasks_that_are_not_ones_own_are_not_among_its_tasks(self) -> None:
        workflow_id = numbered(MINE, -1)
        membership = Membership("a", 2)
        before = dict(TASKS)
        for each, task in before.items():
            TASKS[each] = replace(task, workflow_id=workflow_id, membership=membership)
        engine = Engine()
        try:
            found = run(engine, bound(engine).workflow(workflow_id))
            assert [node.task_id for node in found.nodes] == [MINE]
            answers = run(engine, bound(engine).cancel_workflow(workflow_id))
            ended = replace(TASKS[MINE], state=State.FAILED)
            TASKS[MINE] = ended
            deleted = run(engine, bound(engine).delete_workflow(workflow_id))
            applied = Replayed(MINE, applied=True, state=State.FAILED)
            engine = Engine(rerun=[applied], reopen_workflow=True)
            resumed = run(engine, bound(engine).resume_workflow(workflow_id))
            assert not run(engine, bound(engine).reopen_workflow(numbered(workflow_id, -1_000)))
            assert not run(engine, bound(engine).forget_workflow(workflow_id))
            TASKS[MINE] = replace(ended, membership=Membership("a", 1))
            whole = Engine(forget_workflow=True)
            assert run(whole, bound(whole).forget_workflow(workflow_id))
        finally:
            TASKS.update(before)
        assert [answer.task_id for answer in answers] == [MINE]
        assert [answer.task_id for answer in deleted] == [MINE]
        assert resumed == [applied]
        assert ("rerun", [Rerun.of(ended)]) in engine.asked
        assert "reopen_workflow" in [name for name, *_ in engine.asked]

    def test_tasks_that_are_not_ones_own_are_not_run_again(self) -> None:
        theirs, mine = Rerun(THEIRS, 1), Rerun(MINE, 1)
        applied = Replayed(MINE, applied=True, state=State.FAILED)
        engine = Engine(rerun=[applied])
        answers = run(engine, bound(engine).rerun([theirs, mine]))
        assert answers == [Replayed(THEIRS, applied=False, state=None), applied]
        assert engine.asked[-1] == ("rerun", [mine])
        assert run(engine, bound(engine).rerun([theirs]))[0].state is None
        assert len(engine.asked) == 3, "nothing is left to rerun"
        assert run(Engine(rerun=None), bound(engine).rerun([mine])) is None


def test_no_other_operation_exists() -> None:
    """An operation that is added to stores is not open to bound tokens by oversight."""
    offered = {name for name in vars(BoundOperations) if not name.startswith("_")}
    everything = {name for name in dir(Operations) if not name.startswith("_")}
    assert offered - everything == {"check_new", "check_known", "judge"}
    assert offered & everything == {
        *("submit", "get", "heads", "find", "page", "total", "position", "why", "facts"),
        *("cancel", "replay", "delete", "cancel_where", "replay_where", "delete_where"),
        *("definition", "register", "forget", "start", "progress", "holdings", "disown"),
        *("completions", "workflow", "cancel_workflow", "submit_workflow", "workflow_page"),
        *("resume_workflow", "delete_workflow", "reopen_workflow", "forget_workflow"),
        "rerun",
        "workflow_id_for",
    }


def test_the_tasks_of_these_tests() -> None:
    assert [id for id in TASKS if BOUNDS.admits(TASKS[id])] == [MINE]
