"""Records of workflows: submission, the list, and what the maintenance notes about ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.bounded import BoundOperations
from fairlane.core.documents import Document
from fairlane.core.errors import (
    InvalidCursor,
    InvalidFilter,
    InvalidInputs,
    InvalidWorkflow,
    TaskIdConflict,
)
from fairlane.core.flow import Flow, Op, reads, writes
from fairlane.core.ids import numbered
from fairlane.core.inputs import Input, checked_inputs
from fairlane.core.membership import checked_on_failure, placed
from fairlane.core.merging import NodeOutcome, ParentResult, merged
from fairlane.core.model import (
    Accepted,
    Cancelled,
    Membership,
    NewTask,
    OnFailure,
    Spec,
    Task,
    TaskError,
)
from fairlane.core.ownership import Bounds
from fairlane.core.states import LIVE, State
from fairlane.core.store_settings import StoreSettings
from fairlane.core.submission import new_task
from fairlane.core.workflow_graph import GraphNode, order
from fairlane.core.workflow_keys import workflow_id_for
from fairlane.core.workflow_list import (
    ALL,
    WorkflowFilter,
    WorkflowPage,
    new_workflow_filter,
    workflow_page,
)
from fairlane.core.workflow_records import ENDS, KIND, submit_workflow, watch_id
from fairlane.core.workflow_watch import (
    Watched,
    WorkflowEnds,
    WorkflowNews,
    ends_of,
    forget_workflow,
    reopen_workflow,
    watch_workflows,
    workflow_news,
)
from fairlane.core.workflows import WorkflowState
from tests.unit.make import NOON, NOW, stored, task_id
from tests.unit.shelf import Shelf, once

SECOND = 1_000_000
W, OTHER = task_id(1_000), task_id(5_000)


class Store(Shelf):
    """Documents, and tasks with their place in a workflow."""

    ended_at: datetime | None = NOON

    @reads
    def heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        yield from ()
        return [self._head(each) for each in task_ids]

    def _head(self, task_id: str) -> Task | None:
        if task_id not in self.states:
            return None
        state, spec = self.states[task_id], self.tasks[task_id].spec
        return stored(
            task_id=task_id,
            state=state,
            workflow_id=spec.workflow_id,
            membership=spec.membership,
            depends_on=spec.depends_on,
            tolerant=spec.tolerant,
            completed_at=None if state in LIVE else self.ended_at,
        )

    @writes
    def submit(self, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
        yield from ()
        return [
            Accepted(each.task_id, self.states[each.task_id], NOW, known=True) for each in tasks
        ]

    @writes
    def cancel(self, task_ids: Sequence[str]) -> Flow[list[Cancelled]]:
        yield from ()
        self.states |= dict.fromkeys(task_ids, State.CANCELLED)
        return []

    @reads
    def settings(self) -> Flow[StoreSettings]:
        yield from ()
        return StoreSettings()

    # -- operations

    def begin(self, tasks: Sequence[NewTask]) -> list[Accepted]:
        return self.run(submit_workflow(self, tasks))

    def page(self, filter: WorkflowFilter = ALL, *args: Any) -> WorkflowPage:
        return self.run(workflow_page(self, filter, *args))

    def watch(self, seconds: float = 60) -> Watched:
        self.now += int(seconds * SECOND)
        return self.run(watch_workflows(self))

    def end(self, state: State = State.COMPLETED, first: str = W) -> None:
        self.states |= {each: state for each in self.states if each > first}

    @property
    def kept(self) -> set[str]:
        return set(self.of(KIND))


def members(count: int = 2, workflow_id: str = W, **membership: Any) -> list[NewTask]:
    options = membership.pop("options", {})
    return [
        placed(
            new_task("t", **options),
            workflow_id,
            number,
            Membership(f"n{number}", count, **{"name": "order", **membership}),
            [],
            {},
        )
        for number in range(1, count + 1)
    ]


@pytest.fixture
def store() -> Store:
    return Store()


class TestSubmission:
    def test_a_record_and_a_watch_are_stored_with_the_tasks(self, store: Store) -> None:
        answers = store.begin(members())
        assert [answer.known for answer in answers] == [False, False]
        assert store.kept == {W, watch_id(W)}
        (found,) = store.page().workflows
        assert (found.workflow_id, found.tasks, found.state) == (W, 2, "running")

    def test_again_it_is_known(self, store: Store) -> None:
        store.begin(members())
        assert all(answer.known for answer in store.begin(members()))

    def test_another_one_with_its_id_is_refused(self, store: Store) -> None:
        store.begin(members())
        for other in (members(3), members(name="x")):
            with pytest.raises(TaskIdConflict):
                store.begin(other)

    def test_deleted_tasks_are_stored_again(self, store: Store) -> None:
        store.begin(members())
        del store.states[numbered(W, 1)]
        assert [answer.known for answer in store.begin(members())] == [False, True]

    def test_a_record_that_cannot_be_read_is_replaced(self, store: Store) -> None:
        store.of(KIND)[W] = Document(W, b"?", NOW, version=1)
        assert store.page().workflows == []
        store.begin(members())
        assert len(store.page().workflows) == 1

    def test_another_process_was_faster(self, store: Store) -> None:
        store.interfere = once(lambda: store.begin(members()))
        assert all(answer.known for answer in store.begin(members()))

    @pytest.mark.parametrize(
        "tasks",
        [
            [],
            members()[:1],
            [new_task("t")],
            [members()[0], new_task("t")],
            [members()[0], members()[0]],
            [members()[0], members(2, OTHER)[1]],
            [members()[0], members(name="x")[1]],
            [members()[0], members(on_failure=OnFailure.CANCEL)[1]],
        ],
    )
    def test_what_is_no_whole_workflow(self, store: Store, tasks: list[NewTask]) -> None:
        with pytest.raises(InvalidWorkflow):
            store.begin(tasks)

    def test_tags_that_all_of_them_have(self, store: Store) -> None:
        first, second = members(options={"tags": {"a": "b"}})
        spec = replace(second.spec, tags={"a": "b", "c": "d"})
        store.begin([first, replace(second, spec=spec)])
        for tags, seen in ({"a": "b"}, 1), ({"c": "d"}, 0):
            bounds = Bounds("me", tags=tags)
            assert len(store.page(WorkflowFilter(bounds=bounds)).workflows) == seen

    def test_policies(self) -> None:
        assert checked_on_failure("cancel") is OnFailure.CANCEL
        with pytest.raises(InvalidWorkflow, match="continue or cancel"):
            checked_on_failure("stop")


class TestList:
    def test_what_a_token_may_see(self, store: Store) -> None:
        store.begin(members())
        for bounds, seen in [
            (Bounds("me", own=True), 0),
            (Bounds("me", queues=frozenset({"default", "a"})), 1),
            (Bounds("me", queues=frozenset({"a"})), 0),
        ]:
            assert len(store.page(WorkflowFilter(bounds=bounds)).workflows) == seen

    def test_filters(self, store: Store) -> None:
        store.begin(members())
        assert len(store.page(new_workflow_filter("running", "order")).workflows) == 1
        assert store.page(new_workflow_filter(["failed"])).workflows == []
        assert store.page(new_workflow_filter(name="x")).workflows == []
        for wrong in ("gone", [5], 5):
            with pytest.raises(InvalidFilter):
                new_workflow_filter(wrong)

    def test_pages(self, store: Store) -> None:
        for workflow_id in (W, OTHER):
            store.begin(members(2, workflow_id))
            store.now += 1
        first = store.page(ALL, 1)
        assert [each.workflow_id for each in first.workflows] == [OTHER]
        second = store.page(ALL, 1, first.next_cursor)
        assert [each.workflow_id for each in second.workflows] == [W]
        assert second.next_cursor is None
        for wrong in ("x", f"-1:{W}", "1:x"):
            with pytest.raises(InvalidCursor):
                store.page(ALL, 1, wrong)
        for limit in (0, 101):
            with pytest.raises(InvalidFilter):
                store.page(ALL, limit)

    def test_a_page_reads_so_much(self, store: Store) -> None:
        for number in range(3):
            store.begin(members(999, task_id(10_000 * (number + 1))))
            store.now += 1
        page = store.page()
        assert len(page.workflows) == 3  # the last one begins below the limit
        ended = [each for each in store.of(KIND).values() if each.at > 0]
        assert len(ended) == 3

    def test_many_records(self, store: Store) -> None:
        for number in range(limits.WORKFLOW_PAGE - 1):
            store.begin(members(1, task_id(10 * (number + 1))))
        assert store.page(new_workflow_filter(name="x")).next_cursor is None
        for number in range(limits.WORKFLOW_PAGE - 1, 2 * limits.WORKFLOW_PAGE):
            store.begin(members(1, task_id(10 * (number + 1))))
        page = store.page(new_workflow_filter(name="x"))
        assert (page.workflows, page.next_cursor is None) == ([], False)

    def test_one_that_ended_is_told_by_its_record(self, store: Store) -> None:
        store.begin(members())
        store.end()
        store.watch()
        store.states.clear()
        (found,) = store.page().workflows
        assert (found.state, found.counts) == ("completed", {State.COMPLETED: 2})

    def test_one_that_was_replayed_runs(self, store: Store) -> None:
        store.begin(members())
        store.end(State.FAILED)
        store.watch()
        (found,) = store.page().workflows
        assert found.state is WorkflowState.FAILED
        store.states[numbered(W, 1)] = State.QUEUED
        (found,) = store.page().workflows
        assert (found.state, found.ended_at) == ("running", None)
        store.states[numbered(W, 1)] = store.states[numbered(W, 2)] = State.COMPLETED
        (found,) = store.page().workflows
        assert found.state is WorkflowState.COMPLETED
        del store.states[numbered(W, 1)]
        (found,) = store.page().workflows
        assert found.state is WorkflowState.FAILED  # what is left does not tell how it ended

    def test_one_whose_tasks_are_gone(self, store: Store) -> None:
        store.begin(members())
        store.states.clear()
        (found,) = store.page().workflows
        assert (found.state, found.counts) == ("running", {})

    def test_a_record_expires(self, store: Store) -> None:
        store.begin(members())
        store.end()
        store.watch()
        store.now += 8 * 86_400 * SECOND
        assert store.page().workflows == []


class TestReopen:
    def test_its_next_end_is_noted(self, store: Store) -> None:
        store.begin(members())
        store.end(State.FAILED)
        store.watch()
        assert store.run(reopen_workflow(store, W))
        store.end(State.COMPLETED)
        (found,) = store.page().workflows
        assert found.state is WorkflowState.COMPLETED
        assert store.watch().ended == {W: WorkflowState.COMPLETED}
        assert store.run(workflow_news(store)).ends.number == 2
        store.now += 6 * 86_400 * SECOND
        assert len(store.page().workflows) == 1

    def test_one_that_runs(self, store: Store) -> None:
        store.begin(members())
        kept = store.of(KIND)
        assert not store.run(reopen_workflow(store, W))
        assert store.of(KIND) == kept

    def test_one_that_nobody_looks_at_any_more(self, store: Store) -> None:
        store.begin(members())
        del store.of(KIND)[watch_id(W)]
        assert store.run(reopen_workflow(store, W))
        assert watch_id(W) in store.kept

    def test_one_without_a_record(self, store: Store) -> None:
        assert not store.run(reopen_workflow(store, W))
        assert store.kept == set()


class TestForget:
    def test_nothing_is_left(self, store: Store) -> None:
        store.begin(members())
        assert store.run(forget_workflow(store, W))
        assert store.kept == set()
        assert not store.run(forget_workflow(store, W))


class TestWatch:
    def test_nothing_is_due(self, store: Store) -> None:
        assert store.watch() == Watched({})
        store.begin(members())
        assert store.watch(0.5) == Watched({})

    def test_an_end_is_noted_and_counted_once(self, store: Store) -> None:
        for workflow_id in (W, OTHER):
            store.begin(members(2, workflow_id))
            store.end(State.COMPLETED, workflow_id)
            assert store.watch().ended == {workflow_id: WorkflowState.COMPLETED}
            assert store.watch().ended == {}
        assert store.kept == {W, OTHER, ENDS}
        assert ends_of(store.of(KIND)[ENDS]).states == {WorkflowState.COMPLETED: 2}

    def test_looks_become_rare(self, store: Store) -> None:
        store.begin(members())
        pauses = []
        for _ in range(12):
            store.watch()
            pauses.append(float(store.of(KIND)[watch_id(W)].value))
        assert pauses[:2] == [1.5, 2.25]
        assert pauses[-1] == limits.WORKFLOW_WATCH_SECONDS_MOST
        watch = store.of(KIND)[watch_id(W)]
        store.of(KIND)[watch_id(W)] = replace(watch, value=b"?")
        store.watch()
        assert store.of(KIND)[watch_id(W)].value == b"1.5"

    def test_an_end_without_a_time_is_now(self, store: Store) -> None:
        store.begin(members())
        store.end()
        store.ended_at = None
        store.watch()
        (found,) = store.page().workflows
        assert found.ended_at is not None

    def test_without_its_record_nothing_is_noted(self, store: Store) -> None:
        store.begin(members())
        del store.of(KIND)[W]
        store.end()
        assert store.watch().ended == {}
        assert store.kept == set()

    def test_without_its_tasks_it_is_forgotten(self, store: Store) -> None:
        store.begin(members())
        store.states.clear()
        assert store.watch().ended == {}
        assert store.kept == set()

    def test_one_that_was_noted_before_is_not_counted(self, store: Store) -> None:
        store.begin(members())
        watch = store.of(KIND)[watch_id(W)]
        store.end()
        store.watch()
        store.of(KIND)[watch_id(W)] = watch
        assert store.watch().ended == {}
        assert ends_of(store.of(KIND)[ENDS]).states == {WorkflowState.COMPLETED: 1}

    def test_a_round_is_bounded(self, store: Store) -> None:
        for number in range(3):
            store.begin(members(600, task_id(10_000 * (number + 1))))
        store.end()
        rounds = [store.watch(), store.watch(0)]
        assert [(len(each.ended), each.more) for each in rounds] == [(2, True), (1, False)]

    def test_what_a_failure_leaves_is_cancelled(self, store: Store) -> None:
        store.begin(members(3, on_failure=OnFailure.CANCEL))
        assert store.watch().ended == {}
        store.states[numbered(W, 1)] = State.FAILED
        assert store.watch().ended == {W: WorkflowState.FAILED}
        assert store.states[numbered(W, 3)] is State.CANCELLED

    def test_others_go_on_by_default(self, store: Store) -> None:
        store.begin(members(3))
        store.states[numbered(W, 1)] = State.FAILED
        assert store.watch().ended == {}
        assert store.states[numbered(W, 3)] is State.QUEUED

    def test_news(self, store: Store) -> None:
        assert store.run(workflow_news(store)) == WorkflowNews(WorkflowEnds())
        store.begin(members())
        store.end()
        store.watch()
        store.begin(members(1, OTHER))
        news = store.run(workflow_news(store))
        assert [(each.workflow_id, each.tasks) for each in news.started] == [(W, 2), (OTHER, 1)]
        assert news.started[0].place == (NOW, W)
        (end,) = news.ends.recent
        assert (end.number, end.workflow_id, end.name, end.state) == (1, W, "order", "completed")
        assert news.ends.number == 1
        assert store.run(workflow_news(store, 0)).started == ()

    def test_no_counts(self) -> None:
        assert ends_of(None).states == {}


class TestKeys:
    def find(self, store: Store, key: str, workflow_id: str) -> str:
        return store.run(workflow_id_for(store, key, workflow_id))

    def test_the_first_id_counts_for_a_day(self, store: Store) -> None:
        assert self.find(store, "k", W) == W
        assert self.find(store, "k", OTHER) == W
        assert self.find(store, "l", OTHER) == OTHER
        store.now += 86_401 * SECOND
        assert self.find(store, "k", OTHER) == OTHER


class TestGraph:
    def nodes(self, **parents: Sequence[str]) -> list[GraphNode]:
        return [GraphNode(name, tuple(each)) for name, each in parents.items()]

    def test_the_order(self) -> None:
        assert order(self.nodes(c="ab", b="a", a="", d="cc")) == [2, 1, 0, 3]

    @pytest.mark.parametrize(
        ("nodes", "says"),
        [
            ([], "1 to 999 tasks, not 0"),
            ([GraphNode(str(n), ()) for n in range(1_000)], "not 1,000"),
            ([GraphNode("a", ()), GraphNode("a", ())], "Two tasks have the name 'a'"),
            ([GraphNode("a", ("b",))], "'a' waits for 'b'"),
            ([GraphNode("", ())], "The name of a workflow"),
            ([GraphNode("x", ("a",)), GraphNode("a", ("b",)), GraphNode("b", ("a",))], "'a', 'b'"),
            ([GraphNode(str(n), (str((n + 1) % 11),)) for n in range(11)], "'9' … wait"),
        ],
    )
    def test_what_does_not_fit(self, nodes: list[GraphNode], says: str) -> None:
        with pytest.raises(InvalidWorkflow, match=says):
            order(nodes)


class TestOutcomes:
    A, B, C = (numbered(W, number) for number in (1, 2, 3))

    def outcomes(self, *found: ParentResult | None) -> list[dict[str, Any]]:
        spec = Spec(
            depends_on=(self.A, self.B, self.C)[: len(found)],
            tolerant=True,
            inputs={"all": Input(tuple(range(len(found))), many=True, outcomes=True)},
        )
        results = {id: each for id, each in zip(spec.depends_on, found, strict=True) if each}
        given: list[dict[str, Any]] = json.loads(merged(b"{}", spec, results))["all"]
        return given

    def test_every_kind(self) -> None:
        large = b'"%b"' % (b"x" * limits.OUTCOME_BYTES)
        error = TaskError("sold out", code="GONE")
        assert self.outcomes(
            ParentResult(State.COMPLETED, b"[1]", None, "a"),
            ParentResult(State.FAILED, None, error, "b"),
            ParentResult(State.COMPLETED, large, None),
        ) == [
            _shown("a", self.A, "completed", result=[1]),
            _shown("b", self.B, "failed", error="sold out", code="GONE"),
            _shown(self.C, self.C, "completed", omitted=True),
        ]
        assert self.outcomes(None) == [_shown(self.A, self.A, None, error="It was deleted.")]

    def test_one_that_completed(self) -> None:
        outcome = NodeOutcome(node="a", task_id=self.A, state=State.COMPLETED)
        assert outcome.completed
        assert not replace(outcome, state=None).completed

    def test_the_name_of_a_parent(self) -> None:
        task = stored(membership=Membership("load", 1))
        assert ParentResult.of(task).node == "load"

    @pytest.mark.parametrize(
        "given",
        [
            Input((0,), outcomes=True),
            Input((0,), many=True, path=("a",), outcomes=True),
            Input((0,), many=True, nesting=(-1,), outcomes=True),
            Input((0,), many=True, outcomes=1),  # type: ignore[arg-type]
        ],
    )
    def test_what_does_not_go_together(self, given: Input) -> None:
        with pytest.raises(InvalidInputs, match="outcomes is true or false"):
            checked_inputs({"all": given}, [self.A], b"{}")


def _shown(node: str, task_id: str, state: str | None, **changes: Any) -> dict[str, Any]:
    usual = {"result": None, "error": None, "code": None, "omitted": False}
    return {"node": node, "task_id": task_id, "state": state, **usual, **changes}


class TestBounds:
    """A bound token submits and lists within its bounds."""

    def test_it_submits_and_lists(self) -> None:
        asked: list[tuple[Any, ...]] = []

        class Engine:
            @reads
            def heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
                yield
                return [None for _ in task_ids]

            @writes
            def submit_workflow(self, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
                yield
                return [Accepted(each.task_id, State.QUEUED, NOW) for each in tasks]

            def workflow_page(self, *given: Any) -> Op[WorkflowPage]:
                asked.append(given)
                return Store().page  # type: ignore[return-value]

            def workflow_id_for(self, *given: Any) -> None:
                asked.append(given)

        bounds = Bounds("acme", own=True)
        engine: Any = Engine()
        ops = BoundOperations(engine, bounds)
        tasks = [bounds.own_task(each) for each in members()]
        assert len(Store().run(ops.submit_workflow(tasks))) == 2
        ops.workflow_page(ALL, 5, "c")
        ops.workflow_id_for("k", W)
        assert asked == [(WorkflowFilter(bounds=bounds), 5, "c"), ("acme\x1fk", W)]
