"""Operations made of an engine's own: what they ask it, and what they make of the answers."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import limits, queries
from fairlane.core.analysis import analyse
from fairlane.core.errors import InvalidFilter, InvalidTaskId
from fairlane.core.estimates import Position
from fairlane.core.facts import Facts, Sample, Stream
from fairlane.core.filters import EVERYTHING, Filter, Found, Page, Total, cursor_of
from fairlane.core.flow import Flow, Mode, Op, perform, reads, writes
from fairlane.core.lanes import Lane
from fairlane.core.machine import TRANSITIONS, Verb
from fairlane.core.model import (
    Attempt,
    Cancelled,
    Deleted,
    Replayed,
    Swept,
    Task,
    TaskError,
    moment,
)
from fairlane.core.states import State
from fairlane.core.stats import stats_of
from fairlane.core.why import Reason
from tests.unit.make import NOW, TASK_ID, facts, stored, tally, task_id

LANES = {
    1: Lane(1, "default", "email", ()),
    2: Lane(2, "bulk", "email", ()),
    3: Lane(3, "default", "crawl", ()),
}


class Engine:
    """Answers from canned values, by way of calls like any engine. `asked` records them."""

    def __init__(
        self,
        *tasks: Task,
        facts: Facts | None = None,
        found: Callable[[Filter, int, str | None], Found] | None = None,
        refuses: frozenset[str] = frozenset(),
    ) -> None:
        self.tasks = {task.task_id: task for task in tasks}
        self.glance = facts
        self.finds = found
        self.refuses = refuses
        self.past: list[Sample] = []
        self.asked: list[tuple[Any, ...]] = []

    def answer(self, request: tuple[Any, ...]) -> Any:
        self.asked.append(request)
        match request:
            case ("get" | "heads", ids):
                return [self.tasks.get(id) for id in ids]
            case ("find", filter, limit, cursor):
                assert self.finds is not None
                return self.finds(filter, limit, cursor)
            case ("facts",):
                return self.glance
            case ("samples", *_):
                return self.past
            case (verb, ids, *_):
                answer = {"cancel": Cancelled, "replay": Replayed, "delete": Deleted}[verb]
                return [answer(id, id not in self.refuses, State.FAILED) for id in ids]

    def run(self, op: Op[Any]) -> Any:
        return perform(op.flow(), self.answer)

    @reads
    def get(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        answer: list[Task | None] = yield ("get", list(task_ids))
        return answer

    @reads
    def heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        answer: list[Task | None] = yield ("heads", list(task_ids))
        return answer

    @reads
    def find(self, filter: Filter, limit: int, cursor: str | None = None) -> Flow[Found]:
        answer: Found = yield ("find", filter, limit, cursor)
        return answer

    @reads
    def facts(self) -> Flow[Facts]:
        answer: Facts = yield ("facts",)
        return answer

    @reads
    def samples(self, since: int, limit: int) -> Flow[list[Sample]]:
        answer: list[Sample] = yield ("samples", since, limit)
        return answer

    @writes
    def cancel(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Flow[list[Cancelled]]:
        answer: list[Cancelled] = yield ("cancel", list(task_ids), among)
        return answer

    @writes
    def replay(
        self,
        task_ids: Sequence[str],
        *,
        reset_retry_count: bool = True,
        level: int | None = None,
        among: frozenset[State] | None = None,
    ) -> Flow[list[Replayed]]:
        answer: list[Replayed] = yield ("replay", list(task_ids), reset_retry_count, level, among)
        return answer

    @writes
    def delete(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Flow[list[Deleted]]:
        answer: list[Deleted] = yield ("delete", list(task_ids), among)
        return answer

    # As engines list them among their operations.
    page = queries.page
    total = queries.total
    stats = queries.stats
    completions = queries.completions
    position = queries.position
    why = queries.why
    dlq_analysis = queries.dlq_analysis
    cancel_where = queries.cancel_where
    replay_where = queries.replay_where
    delete_where = queries.delete_where


def always(*numbers: int, cursor: str | None = None) -> Callable[..., Found]:
    """Finds these tasks whatever is asked for."""
    return lambda *_: Found([task_id(number) for number in numbers], cursor)


def some(*numbers: int, **changes: Any) -> list[Task]:
    return [stored(task_id=task_id(number), **changes) for number in numbers]


ENGINE = Engine()


@pytest.mark.parametrize(
    ("op", "name", "mode"),
    [
        (ENGINE.page(EVERYTHING, 5), "page", Mode.READ),
        (ENGINE.total(EVERYTHING), "total", Mode.READ),
        (ENGINE.stats(), "stats", Mode.READ),
        (ENGINE.completions([]), "completions", Mode.READ),
        (ENGINE.position([]), "position", Mode.READ),
        (ENGINE.why(TASK_ID), "why", Mode.READ),
        (ENGINE.dlq_analysis(), "dlq_analysis", Mode.READ),
        (ENGINE.cancel_where(EVERYTHING), "cancel_where", Mode.WRITE),
        (ENGINE.replay_where(EVERYTHING), "replay_where", Mode.WRITE),
        (ENGINE.delete_where(EVERYTHING), "delete_where", Mode.WRITE),
    ],
)
def test_readers_do_not_ask_for_a_writers_connection(op: Op[Any], name: str, mode: Mode) -> None:
    assert (op.name, op.mode) == (name, mode)


class TestPage:
    MAIL = Filter(types=frozenset({"email"}))

    def test_it_has_the_tasks_that_were_found_in_their_order(self) -> None:
        three, one = some(3, 1)
        engine = Engine(one, three, found=always(3, 1, cursor="next"))
        assert engine.run(engine.page(self.MAIL, 2, "here")) == Page([three, one], "next")
        assert engine.asked == [
            ("find", self.MAIL, 2, "here"),
            ("get", [task_id(3), task_id(1)]),
        ]

    def test_it_begins_with_the_newest_unless_told(self) -> None:
        engine = Engine(found=always())
        assert engine.run(engine.page(EVERYTHING, 7)) == Page([], None)
        assert engine.asked[0] == ("find", EVERYTHING, 7, None)

    def test_what_was_deleted_in_the_meantime_is_left_out(self) -> None:
        (one,) = some(1)
        engine = Engine(one, found=always(2, 1, cursor="next"))
        assert engine.run(engine.page(EVERYTHING, 2)) == Page([one], "next")

    def test_it_ends_early_if_tasks_are_large(self) -> None:
        third = limits.PAGE_BYTES // 3
        tasks = some(3, 2, 1, payload=b"x" * third)
        engine = Engine(*tasks, found=always(3, 2, 1, cursor="next"))
        page = engine.run(engine.page(EVERYTHING, 3))
        assert page == Page(tasks[:2], cursor_of(task_id(2)))

    def test_it_has_one_task_however_large_that_is(self) -> None:
        run = Attempt(1, "w", None, moment(NOW), "failed", TaskError("m", traceback="x" * 50_000))
        tasks = some(3, 2, attempts=(run,) * 200, result=b"x", error=TaskError("m"))
        engine = Engine(*tasks, found=always(3, 2))
        page = engine.run(engine.page(EVERYTHING, 2))
        assert page == Page(tasks[:1], cursor_of(task_id(3)))
        last = Engine(*tasks, found=always(2))
        assert last.run(last.page(EVERYTHING, 2)) == Page(tasks[1:], None)

    def test_it_reads_a_few_tasks_at_a_time(self) -> None:
        engine = Engine(*some(*range(60, 0, -1)), found=always(*range(60, 0, -1)))
        assert len(engine.run(engine.page(EVERYTHING, 60)).tasks) == 60
        assert [len(ids) for name, ids, *_ in engine.asked if name == "get"] == [25, 25, 10]


class TestTotal:
    FACTS = facts(
        lanes=LANES,
        tallies=[
            tally(None, State.QUEUED, 10, lane=1),
            tally(None, State.QUEUED, 20, lane=2, level=8),
            tally(None, State.FAILED, 40, lane=3),
        ],
    )

    @pytest.mark.parametrize(
        ("filter", "count"),
        [
            (EVERYTHING, 70),
            (Filter(states=frozenset({State.QUEUED})), 30),
            (Filter(types=frozenset({"email"})), 30),
            (Filter(types=frozenset({"crawl"})), 40),
            (Filter(queues=frozenset({"default"})), 50),
            (Filter(levels=frozenset({8})), 20),
            (Filter(types=frozenset({"email"}), queues=frozenset({"default"})), 10),
            (Filter(types=frozenset({"none"})), 0),
        ],
        ids=["all", "state", "type", "other type", "queue", "level", "lane", "nothing"],
    )
    def test_counters_are_asked_where_they_know(self, filter: Filter, count: int) -> None:
        engine = Engine(facts=self.FACTS)
        assert engine.run(engine.total(filter)) == Total(count, exact=True)
        assert engine.asked == [("facts",)]

    @pytest.mark.parametrize(
        ("found", "total"),
        [
            (always(), Total(0, exact=True)),
            (always(3, 2, 1), Total(3, exact=True)),
            (always(3, 2, 1, cursor="next"), Total(3, exact=False)),
            (always(cursor="next"), Total(0, exact=False)),
        ],
        ids=["none", "all", "more", "none yet"],
    )
    def test_otherwise_they_are_looked_for_as_far_as_one_call_goes(
        self, found: Callable[..., Found], total: Total
    ) -> None:
        engine = Engine(found=found)
        blue = Filter(tags={"team": "blue"}, states=frozenset({State.FAILED}))
        assert engine.run(engine.total(blue)) == total
        assert engine.asked == [("find", blue, 1_000, None)]


def test_stats_are_those_of_the_facts() -> None:
    now = facts(lanes=LANES, tallies=[tally(None, State.DEAD_LETTER, 10)])
    engine = Engine(facts=now)
    assert engine.run(engine.stats()) == stats_of(now)
    assert engine.asked == [("facts",)]


@pytest.mark.parametrize(
    ("queues", "emails"),
    [(None, 30), (frozenset({"default"}), 10), (frozenset({"none"}), 0)],
    ids=["all", "some queue", "no queue"],
)
def test_completed_runs_are_counted_by_type(queues: frozenset[str] | None, emails: int) -> None:
    counted = [
        tally(State.EXECUTING, State.COMPLETED, 10, lane=1),
        tally(State.EXECUTING, State.COMPLETED, 20, lane=2, level=8),
        tally(State.EXECUTING, State.COMPLETED, 40, lane=3),
        tally(State.EXECUTING, State.FAILED, 80, lane=1),
        tally(State.COMPLETED, None, 10, lane=1),
    ]
    engine = Engine(facts=facts(lanes=LANES, tallies=counted))
    found = engine.run(engine.completions(["email", "none"], queues))
    assert found == {"email": emails, "none": 0}


def test_positions_are_answered_one_by_one() -> None:
    engine = Engine(
        *some(1),
        *some(3, state=State.COMPLETED),
        facts=facts(streams=[Stream(1, 8, 5, NOW, NOW)]),
    )
    asked = [task_id(3), task_id(1), task_id(2)]
    assert engine.run(engine.position(asked)) == [None, Position(6, None), None]
    assert engine.asked == [("heads", asked), ("facts",), ("samples", NOW - 600_000_000, 1_000)]


def test_the_wait_goes_by_the_samples() -> None:
    engine = Engine(
        *some(1),
        facts=facts(
            streams=[Stream(1, 8, 5, NOW, NOW)],
            tallies=[tally(None, State.QUEUED, 5), tally(State.EXECUTING, State.COMPLETED, 40)],
        ),
    )
    engine.past = [Sample(NOW - 20_000_000, depths=(0, 5, 0, 0), executing=1)]
    assert engine.run(engine.position([task_id(1)])) == [Position(6, 2.5)]


class TestWhy:
    def test_a_task_that_is_not_there_has_no_answer(self) -> None:
        engine = Engine()
        assert engine.run(engine.why(TASK_ID)) is None
        assert engine.asked == [("heads", [TASK_ID])]

    def test_a_task_that_does_not_wait_has_an_empty_one(self) -> None:
        engine = Engine(stored(state=State.COMPLETED), facts=facts())
        assert engine.run(engine.why(TASK_ID)) == []

    def test_parents_are_looked_up(self) -> None:
        child = stored(
            state=State.SCHEDULED, attempt=0, depends_on=(task_id(1), task_id(2), task_id(3))
        )
        engine = Engine(child, *some(1), *some(3), facts=facts())
        assert engine.run(engine.why(TASK_ID)) == [
            Reason("dependency", f"It waits for task {task_id(1)} and 1 more to end.")
        ]
        assert ("heads", list(child.depends_on)) in engine.asked

    @pytest.mark.parametrize("id", ["", "1", TASK_ID.upper(), None, 5])
    def test_what_is_no_task_id_is_refused_without_asking(self, id: Any) -> None:
        engine = Engine()
        with pytest.raises(InvalidTaskId):
            engine.run(engine.why(id))
        assert engine.asked == []


class Dead:
    """A store of so many dead letters, a page at a time."""

    def __init__(self, count: int, page: int = 1_000) -> None:
        self.count = count
        self.page = page

    def __call__(self, filter: Filter, limit: int, cursor: str | None) -> Found:
        assert filter == Filter(states=frozenset({State.DEAD_LETTER}))
        newest = self.count if cursor is None else int(cursor)
        oldest = max(0, newest - min(limit, self.page))
        ids = [task_id(number) for number in range(newest, oldest, -1)]
        return Found(ids, str(oldest) if oldest else None)


class TestDeadLetters:
    def analysed(self, engine: Engine) -> tuple[int, bool]:
        found = engine.run(engine.dlq_analysis())
        return found.analysed, found.complete

    def engine(self, count: int, **changes: Any) -> Engine:
        return Engine(*some(*range(1, count + 1)), found=Dead(count, **changes))

    def test_they_are_analysed(self) -> None:
        tasks = [
            stored(task_id=task_id(number), error=TaskError(f"no user {number}"))
            for number in (3, 2, 1)
        ]
        engine = Engine(*tasks, found=Dead(3))
        assert engine.run(engine.dlq_analysis()) == analyse(tasks, complete=True)
        assert engine.run(engine.dlq_analysis()).groups[0].example == task_id(3)

    @pytest.mark.parametrize(
        ("count", "analysed", "complete", "pages"),
        [
            (0, 0, True, 1),
            (999, 999, True, 1),
            (1_000, 1_000, True, 1),
            (1_001, 1_001, True, 2),
            (10_000, 10_000, True, 10),
            (10_001, 10_000, False, 10),
        ],
    )
    def test_up_to_ten_thousand_the_newest_first(
        self, count: int, analysed: int, complete: bool, pages: int
    ) -> None:
        engine = self.engine(count)
        assert self.analysed(engine) == (analysed, complete)
        assert len([asked for asked in engine.asked if asked[0] == "find"]) == pages

    def test_no_payloads_are_read(self) -> None:
        engine = self.engine(450)
        assert self.analysed(engine) == (450, True)
        assert [(name, len(ids)) for name, ids, *_ in engine.asked if name != "find"] == [
            ("heads", 200),
            ("heads", 200),
            ("heads", 50),
        ]

    def test_what_was_deleted_in_the_meantime_is_left_out(self) -> None:
        assert self.analysed(Engine(*some(1), found=Dead(2))) == (1, True)

    def test_short_pages_are_gone_through(self) -> None:
        assert self.analysed(self.engine(25, page=10)) == (25, True)

    def test_an_empty_page_is_not_the_end(self) -> None:
        pages = {
            None: Found([], "1"),
            "1": Found([task_id(1)], "2"),
            "2": Found([], None),
        }
        engine = Engine(*some(1), found=lambda _, __, cursor: pages[cursor])
        assert self.analysed(engine) == (1, True)


def sweep(engine: Engine, verb: Verb, *args: Any, **options: Any) -> Swept:
    swept: Swept = engine.run(getattr(engine, f"{verb}_where")(*args, **options))
    return swept


@pytest.mark.parametrize("verb", [Verb.CANCEL, Verb.REPLAY, Verb.DELETE])
class TestSweeps:
    def test_a_batch_of_what_is_found_is_changed(self, verb: Verb) -> None:
        engine = Engine(found=always(3, 2, 1, cursor="next"))
        assert sweep(engine, verb, EVERYTHING, "here") == Swept(3, 3, "next")
        allowed = TRANSITIONS[verb].sources
        find, change = engine.asked
        assert find == ("find", Filter(states=allowed), 500, "here")
        assert change[:2] == (verb, [task_id(3), task_id(2), task_id(1)])
        assert change[-1] == allowed, "what changed in the meantime is left alone"

    def test_it_begins_with_the_newest_unless_told(self, verb: Verb) -> None:
        engine = Engine(found=always(1))
        assert sweep(engine, verb, EVERYTHING) == Swept(1, 1, None)
        assert engine.asked[0][-1] is None

    def test_what_was_not_changed_is_told_apart(self, verb: Verb) -> None:
        engine = Engine(found=always(3, 2, 1), refuses=frozenset({task_id(2), task_id(1)}))
        assert sweep(engine, verb, EVERYTHING) == Swept(3, 1, None)

    @pytest.mark.parametrize("cursor", [None, "next"])
    def test_nothing_is_changed_where_nothing_is_found(
        self, verb: Verb, cursor: str | None
    ) -> None:
        engine = Engine(found=always(cursor=cursor))
        assert sweep(engine, verb, EVERYTHING) == Swept(0, 0, cursor)
        assert [asked[0] for asked in engine.asked] == ["find"]

    @pytest.mark.parametrize("state", State)
    def test_only_states_that_the_verb_allows_are_looked_for(
        self, verb: Verb, state: State
    ) -> None:
        engine = Engine(found=always(1))
        asked_for = Filter(states=frozenset({state, State.RETRYING}))
        assert sweep(engine, verb, asked_for) == Swept(1, 1, None)
        expected = TRANSITIONS[verb].sources & {state, State.RETRYING}
        find, change = engine.asked
        assert find[1] == Filter(states=expected)
        assert change[-1] == expected

    def test_the_rest_of_the_filter_is_kept(self, verb: Verb) -> None:
        filter = Filter(
            states=frozenset(State),
            types=frozenset({"email"}),
            queues=frozenset({"bulk"}),
            levels=frozenset({5}),
            tags={"a": "b"},
            worker_id="w1",
            since=1,
            until=2,
            ended_before=3,
            workflow_id="w",
            schedule_id="s",
            owner="o",
        )
        engine = Engine(found=always(1))
        sweep(engine, verb, filter)
        assert engine.asked[0][1] == replace(filter, states=TRANSITIONS[verb].sources)


class TestImpossibleSweeps:
    @pytest.mark.parametrize(
        ("verb", "states", "allowed"),
        [
            (Verb.CANCEL, {State.COMPLETED}, "executing, queued, retrying, scheduled"),
            (
                Verb.CANCEL,
                {State.FAILED, State.CANCELLED, State.DEAD_LETTER},
                "executing, queued, retrying, scheduled",
            ),
            (
                Verb.REPLAY,
                {State.COMPLETED, State.QUEUED, State.EXECUTING},
                "cancelled, dead_letter, failed, retrying, scheduled",
            ),
            (
                Verb.DELETE,
                {State.QUEUED, State.EXECUTING, State.SCHEDULED},
                "cancelled, completed, dead_letter, failed, retrying",
            ),
            (Verb.DELETE, set(), "cancelled, completed, dead_letter, failed, retrying"),
        ],
    )
    def test_states_that_the_verb_does_not_allow_are_refused_without_asking(
        self, verb: Verb, states: set[State], allowed: str
    ) -> None:
        engine = Engine(found=always(1))
        with pytest.raises(InvalidFilter) as caught:
            sweep(engine, verb, Filter(states=frozenset(states)))
        words = f"To {verb} tasks, choose among those that are {allowed}."
        assert caught.value.message == words
        assert engine.asked == []


class TestReplays:
    @pytest.mark.parametrize(
        ("options", "reset", "level"),
        [
            ({}, True, None),
            ({"reset_retry_count": False}, False, None),
            ({"level": 8}, True, 8),
            ({"reset_retry_count": False, "level": 0}, False, 0),
        ],
    )
    def test_options_are_passed_on(
        self, options: dict[str, Any], reset: bool, level: int | None
    ) -> None:
        engine = Engine(found=always(1))
        sweep(engine, Verb.REPLAY, EVERYTHING, **options)
        allowed = TRANSITIONS[Verb.REPLAY].sources
        assert engine.asked[1] == ("replay", [task_id(1)], reset, level, allowed)
