"""Filters: which tasks a reader means, said in words, and where a list goes on."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.errors import InvalidCursor, InvalidFilter
from fairlane.core.filters import EVERYTHING, Filter, cursor_of, new_filter, task_id_of
from fairlane.core.ids import new_ids
from fairlane.core.lanes import Lane
from fairlane.core.model import Spec
from fairlane.core.states import State
from tests.unit.make import NOON, NOW, TASK_ID, quick, task_id

times = st.integers(0, 6)
levels = st.sampled_from([2, 5, 8])
workers = st.sampled_from(["w1", "w2"])
two_texts = st.sampled_from(["a", "b"])

by_what_changes = st.builds(
    Filter,
    states=st.none() | st.frozensets(st.sampled_from(State)),
    levels=st.none() | st.frozensets(levels),
    worker_id=st.none() | workers,
    since=st.none() | times,
    until=st.none() | times,
    ended_before=st.none() | times,
)
standings = st.tuples(st.sampled_from(State), levels, times, st.none() | times, st.none() | workers)


class TestAdmits:
    @quick
    @given(by_what_changes, st.lists(standings, max_size=30))
    def test_a_task_is_admitted_when_no_part_of_the_filter_speaks_against_it(
        self, filter: Filter, tasks: list[tuple[State, int, int, int | None, str | None]]
    ) -> None:
        left = list(tasks)
        if filter.states is not None:
            left = [task for task in left if task[0] in filter.states]
        if filter.levels is not None:
            left = [task for task in left if task[1] in filter.levels]
        if filter.since is not None:
            left = [task for task in left if task[2] in range(filter.since, 99)]
        if filter.until is not None:
            left = [task for task in left if task[2] in range(filter.until)]
        if filter.ended_before is not None:
            left = [task for task in left if task[3] in range(filter.ended_before)]
        if filter.worker_id is not None:
            left = [task for task in left if task[4] == filter.worker_id]
        assert [task for task in tasks if filter.admits(*task)] == left

    @pytest.mark.parametrize(
        ("filter", "admitted"),
        [
            (EVERYTHING, True),
            (Filter(states=frozenset({State.COMPLETED, State.FAILED})), True),
            (Filter(states=frozenset({State.QUEUED})), False),
            (Filter(states=frozenset()), False),
            (Filter(levels=frozenset({5})), True),
            (Filter(levels=frozenset({8})), False),
            (Filter(worker_id="w1"), True),
            (Filter(worker_id="w2"), False),
            (Filter(since=100), True),
            (Filter(since=101), False),
            (Filter(until=101), True),
            (Filter(until=100), False),
            (Filter(ended_before=201), True),
            (Filter(ended_before=200), False),
            (Filter(levels=frozenset({5}), worker_id="w2"), False),
        ],
        ids=[
            *("everything", "its state", "another", "none", "its level", "another level"),
            *("its worker", "another worker", "since", "after", "until", "up to"),
            *("ended before", "ended by", "one of two"),
        ],
    )
    def test_the_bounds_of_each_part(self, filter: Filter, admitted: bool) -> None:
        assert filter.admits(State.COMPLETED, 5, 100, 200, "w1") is admitted

    def test_what_has_not_ended_did_not_end_before_a_time(self) -> None:
        assert not Filter(ended_before=10**18).admits(State.QUEUED, 5, 0, None, None)

    def test_a_task_that_nobody_held_is_no_workers(self) -> None:
        assert not Filter(worker_id="w1").admits(State.QUEUED, 5, 0, None, None)


class TestAdmitsLane:
    @pytest.mark.parametrize(
        ("types", "queues", "admitted"),
        [
            (None, None, True),
            ({"email"}, None, True),
            ({"email", "crawl"}, {"bulk"}, True),
            ({"crawl"}, None, False),
            (None, {"default"}, False),
            ({"crawl"}, {"bulk"}, False),
            ({"email"}, {"default"}, False),
            ({"bulk"}, {"email"}, False),
        ],
    )
    def test_by_type_and_queue(
        self, types: set[str] | None, queues: set[str] | None, admitted: bool
    ) -> None:
        filter = Filter(
            types=None if types is None else frozenset(types),
            queues=None if queues is None else frozenset(queues),
        )
        assert filter.admits_lane(Lane(1, "bulk", "email", ("gpu",))) is admitted


class TestAdmitsSpec:
    SPEC = Spec(tags={"team": "blue", "n": "1"}, workflow_id="w", schedule_id="s", owner="o")

    @pytest.mark.parametrize(
        ("filter", "admitted"),
        [
            (EVERYTHING, True),
            (Filter(tags={"team": "blue"}), True),
            (Filter(tags={"team": "blue", "n": "1"}), True),
            (Filter(tags={"team": "red"}), False),
            (Filter(tags={"team": "blue", "n": "2"}), False),
            (Filter(tags={"team": "blue", "other": "1"}), False),
            (Filter(tags={"blue": "team"}), False),
            (Filter(workflow_id="w"), True),
            (Filter(workflow_id="s"), False),
            (Filter(schedule_id="s"), True),
            (Filter(schedule_id="w"), False),
            (Filter(owner="o"), True),
            (Filter(owner="w"), False),
            (Filter(owner="o", schedule_id="x"), False),
            (Filter(workflow_id="w", schedule_id="s", tags={"n": "1"}), True),
            (Filter(workflow_id="w", schedule_id="x", tags={"n": "1"}), False),
            (Filter(workflow_id="x", schedule_id="s", tags={"n": "1"}), False),
        ],
    )
    def test_by_tags_workflow_schedule_and_owner(self, filter: Filter, admitted: bool) -> None:
        assert filter.admits_spec(self.SPEC.encode()) is admitted

    @pytest.mark.parametrize(
        ("filter", "admitted"),
        [
            (EVERYTHING, True),
            (Filter(states=frozenset({State.QUEUED})), True),
            (Filter(tags={"team": "blue"}), False),
            (Filter(workflow_id="w"), False),
            (Filter(schedule_id="s"), False),
            (Filter(owner="o"), False),
        ],
    )
    def test_the_most_common_task_has_nothing_of_it(self, filter: Filter, admitted: bool) -> None:
        assert filter.admits_spec(None) is admitted

    @quick
    @given(
        st.dictionaries(two_texts, two_texts),
        st.dictionaries(two_texts, two_texts),
    )
    def test_all_tags_that_are_asked_for_must_be_there(
        self, wanted: dict[str, str], tags: dict[str, str]
    ) -> None:
        expected = all(tags.get(name) == value for name, value in wanted.items())
        assert Filter(tags=wanted).admits_spec(Spec(tags=tags).encode()) is expected


ONE_OF_EACH: dict[str, Any] = {
    "states": frozenset({State.QUEUED}),
    "types": frozenset({"email"}),
    "queues": frozenset({"bulk"}),
    "levels": frozenset({5}),
    "tags": {"a": "b"},
    "worker_id": "w1",
    "since": 0,
    "until": 0,
    "ended_before": 0,
    "workflow_id": "w",
    "schedule_id": "s",
    "owner": "o",
}


class TestWhatAFilterAsksFor:
    def test_there_is_one_of_each_below(self) -> None:
        assert set(ONE_OF_EACH) == set(Filter.__struct_fields__)
        assert Filter(**ONE_OF_EACH) != EVERYTHING

    @pytest.mark.parametrize("part", ONE_OF_EACH)
    def test_counters_know_states_lanes_and_levels_and_nothing_else(self, part: str) -> None:
        filter = Filter(**{part: ONE_OF_EACH[part]})
        assert filter.countable is (part in {"states", "types", "queues", "levels"})

    def test_counters_know_how_many_there_are_in_all(self) -> None:
        assert EVERYTHING.countable
        known = Filter(
            **{part: ONE_OF_EACH[part] for part in ("states", "types", "queues", "levels")}
        )
        assert known.countable
        assert not Filter(**ONE_OF_EACH).countable

    @pytest.mark.parametrize("part", ONE_OF_EACH)
    def test_specs_tell_of_tags_workflow_schedule_and_owner(self, part: str) -> None:
        filter = Filter(**{part: ONE_OF_EACH[part]})
        assert filter.reads_spec is (part in {"tags", "workflow_id", "schedule_id", "owner"})

    def test_everything_asks_for_nothing(self) -> None:
        assert not EVERYTHING.reads_spec
        assert Filter() == EVERYTHING
        assert new_filter() == EVERYTHING


class TestInACallersWords:
    @pytest.mark.parametrize(
        ("words", "filter"),
        [
            ({"status": "queued"}, Filter(states=frozenset({State.QUEUED}))),
            ({"status": State.FAILED}, Filter(states=frozenset({State.FAILED}))),
            (
                {"status": ["failed", "dead_letter", "failed"]},
                Filter(states=frozenset({State.FAILED, State.DEAD_LETTER})),
            ),
            ({"type": "email"}, Filter(types=frozenset({"email"}))),
            ({"type": ("a.b", "c")}, Filter(types=frozenset({"a.b", "c"}))),
            ({"queue": "bulk"}, Filter(queues=frozenset({"bulk"}))),
            ({"queue": {"bulk"}}, Filter(queues=frozenset({"bulk"}))),
            ({"priority": "high"}, Filter(levels=frozenset({8}))),
            ({"priority": 0}, Filter(levels=frozenset({0}))),
            ({"priority": ["low", "normal", 2]}, Filter(levels=frozenset({2, 5}))),
            ({"tags": {"a": "b", "größe": ""}}, Filter(tags={"a": "b", "größe": ""})),
            ({"tags": {}}, EVERYTHING),
            ({"worker": "w1"}, Filter(worker_id="w1")),
            ({"since": NOON}, Filter(since=NOW)),
            ({"until": NOON}, Filter(until=NOW)),
            ({"ended_before": NOON}, Filter(ended_before=NOW)),
            (
                {"since": NOON.astimezone(timezone(timedelta(hours=-7)))},
                Filter(since=NOW),
            ),
            ({"workflow_id": "w 1"}, Filter(workflow_id="w 1")),
            ({"schedule_id": "s" * 255}, Filter(schedule_id="s" * 255)),
            ({"owner": "Acme, Inc."}, Filter(owner="Acme, Inc.")),
        ],
    )
    def test_one_value_or_several(self, words: dict[str, Any], filter: Filter) -> None:
        assert new_filter(**words) == filter

    def test_all_of_them_together(self) -> None:
        assert new_filter(
            status="queued",
            type="email",
            queue="bulk",
            priority=5,
            tags={"a": "b"},
            worker="w1",
            since=datetime(1970, 1, 1, tzinfo=UTC),
            until=datetime(1970, 1, 1, tzinfo=UTC),
            ended_before=datetime(1970, 1, 1, tzinfo=UTC),
            workflow_id="w",
            schedule_id="s",
            owner="o",
        ) == Filter(**ONE_OF_EACH)

    def test_values_may_come_one_by_one(self) -> None:
        assert new_filter(type=iter(["a", "b"])).types == frozenset({"a", "b"})

    def test_tags_are_the_filters_own(self) -> None:
        tags = {"a": "b"}
        filter = new_filter(tags=tags)
        tags["a"] = "changed"
        assert filter.tags == {"a": "b"}

    @pytest.mark.parametrize("field", ["status", "type", "queue", "priority"])
    @pytest.mark.parametrize("nothing", [[], (), set()], ids=repr)
    def test_a_list_of_nothing_is_refused(self, field: str, nothing: Any) -> None:
        self.refuse("A filter that lists nothing admits nothing: leave it out.", field, nothing)

    @pytest.mark.parametrize("status", ["", "pending", "QUEUED", 2, True, b"queued"], ids=repr)
    def test_states_that_do_not_exist_are_refused(self, status: Any) -> None:
        expected = (
            "A status is one of scheduled, queued, executing, retrying, completed, failed, "
            "dead_letter, cancelled. Got "
        )
        self.refuse(expected, "status", status)
        self.refuse(expected, "status", ["queued", status])

    @pytest.mark.parametrize("field", ["type", "queue"])
    @pytest.mark.parametrize("name", ["", "a b", "x" * 256, "\x00", "\ud800", 5, None], ids=ascii)
    def test_names_that_nothing_has_are_refused(self, field: str, name: Any) -> None:
        self.refuse("The name of a type, queue or worker has 1 to 255 char", field, ["a", name])

    @pytest.mark.parametrize("name", ["", "a b", "x" * 256, 5, True, ["w1"]], ids=ascii)
    def test_workers_that_cannot_be_are_refused(self, name: Any) -> None:
        self.refuse("The name of a type, queue or worker has 1 to 255 char", "worker", name)

    @pytest.mark.parametrize("priority", ["", "urgent", -1, 11, 5.0, True, [None]], ids=repr)
    def test_priorities_that_do_not_exist_are_refused(self, priority: Any) -> None:
        self.refuse("A priority is ", "priority", priority)

    @pytest.mark.parametrize(
        "tags",
        ["a=b", ["a"], [("a", "b")], 5, {"a": 1}, {1: "a"}, {"a": "b\n"}, {"x" * 256: ""}],
        ids=["text", "names", "pairs", "number", "value", "name", "newline", "long"],
    )
    def test_tags_that_no_task_has_are_refused(self, tags: Any) -> None:
        self.refuse("Tags are looked for by a dict from text to text. Got ", "tags", tags)

    @pytest.mark.parametrize("field", ["since", "until", "ended_before"])
    @pytest.mark.parametrize(
        "time", [NOON.replace(tzinfo=None), NOON.date(), NOW, "2026-03-01", True], ids=repr
    )
    def test_times_without_a_zone_are_refused(self, field: str, time: Any) -> None:
        self.refuse(f"{field} is a datetime with a time zone. Got ", field, time)

    @pytest.mark.parametrize("field", ["workflow_id", "schedule_id", "owner"])
    @pytest.mark.parametrize("text", ["", "a\n", "x" * 256, "\ud800", 5, True, ["a"]], ids=ascii)
    def test_ids_that_nothing_has_are_refused(self, field: str, text: Any) -> None:
        self.refuse(f"{field} is a short text. Got ", field, text)

    def refuse(self, words: str, field: str, value: Any) -> None:
        with pytest.raises(InvalidFilter) as caught:
            new_filter(**{field: value})
        assert caught.value.message.startswith(words)
        assert caught.value.message.endswith(".")


class TestCursors:
    def test_a_list_begins_without_one(self) -> None:
        assert task_id_of(None) is None

    def test_they_say_what_they_are_of(self) -> None:
        assert cursor_of(TASK_ID) == "t018f5e2a7c3b7d108a2e5b6c7d8e9f01"

    @quick
    @given(st.uuids().map(str) | st.builds(task_id, st.integers(0, 99)))
    def test_they_lead_back_to_the_task(self, id: str) -> None:
        assert task_id_of(cursor_of(id)) == id

    def test_they_are_in_the_order_of_the_tasks(self) -> None:
        cursors = [cursor_of(id) for id in new_ids(100)]
        assert cursors == sorted(set(cursors))

    @pytest.mark.parametrize(
        "forged",
        [
            "",
            "t",
            TASK_ID,
            cursor_of(TASK_ID)[1:],
            cursor_of(TASK_ID)[:-1],
            cursor_of(TASK_ID) + "0",
            cursor_of(TASK_ID) + "\n",
            "w" + cursor_of(TASK_ID)[1:],
            "T" + cursor_of(TASK_ID)[1:],
            cursor_of(TASK_ID).upper(),
            "t" + TASK_ID.upper().replace("-", ""),
            "t" + TASK_ID[:32],
            cursor_of(TASK_ID)[:-1] + "g",
            cursor_of(TASK_ID)[:-1] + "\N{ARABIC-INDIC DIGIT ONE}",
            " " + cursor_of(TASK_ID),
            5,
            True,
            b"t018f5e2a7c3b7d108a2e5b6c7d8e9f01",
            ["t", *"018f5e2a7c3b7d108a2e5b6c7d8e9f01"],
        ],
        ids=ascii,
    )
    def test_what_was_not_made_here_is_refused(self, forged: Any) -> None:
        with pytest.raises(InvalidCursor, match="was not made here: begin without one"):
            task_id_of(forged)

    @quick
    @given(st.text("t0189abcdefgT-\n", max_size=40))
    def test_only_what_leads_to_a_task_is_taken(self, text: str) -> None:
        try:
            found = task_id_of(text)
        except InvalidCursor:
            return
        assert found is not None
        assert cursor_of(found) == text
