"""What flows through the system: errors made safe to store, specs, moments."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.model import (
    PLAIN,
    Ask,
    Spec,
    TaskError,
    microseconds_of,
    moment,
    moment_or_none,
)
from fairlane.core.retry import DEFAULT, RetryPolicy
from fairlane.core.states import State
from tests.unit.make import TASK_ID, claimed, quick, stored, task_id, texts, torn_texts


class TestTaskError:
    def test_plain_texts_are_kept(self) -> None:
        error = TaskError.of("größe", "E1", retriable=False, reason="expired", traceback="line 1\n")
        assert error == TaskError("größe", "E1", False, "expired", "line 1\n")  # noqa: FBT003

    def test_a_message_is_enough(self) -> None:
        assert TaskError.of("boom") == TaskError("boom", None, True, None, None)  # noqa: FBT003

    @pytest.mark.parametrize(
        ("text", "stored"),
        [
            ("half \ud83d", r"half \ud83d"),
            ("\udcff.txt", r"\udcff.txt"),
            ("whole \N{ROCKET}", "whole \N{ROCKET}"),
            ("", ""),
        ],
    )
    def test_lone_surrogates_are_shown_as_escapes(self, text: str, stored: str) -> None:
        error = TaskError.of(text, text, traceback=text)
        assert (error.message, error.code, error.traceback) == (stored, stored, stored)

    def test_long_texts_are_cut_and_say_so(self) -> None:
        error = TaskError.of("m" * 10_001, "c" * 256, traceback="t" * 50_001)
        assert error.message == "m" * 9_999 + "…"
        assert error.code == "c" * 254 + "…"
        assert error.traceback == "t" * 49_999 + "…"

    def test_texts_that_just_fit_are_not_cut(self) -> None:
        error = TaskError.of("m" * 10_000, "c" * 255, traceback="t" * 50_000)
        assert error.message == "m" * 10_000
        assert error.code == "c" * 255
        assert error.traceback == "t" * 50_000

    @quick
    @given(torn_texts, st.none() | torn_texts, st.none() | torn_texts)
    def test_any_error_can_be_stored_and_read_back(
        self, message: str, code: str | None, traceback: str | None
    ) -> None:
        error = TaskError.of(message, code, traceback=traceback)
        assert msgspec.json.decode(msgspec.json.encode(error), type=TaskError) == error

    def test_what_says_nothing_is_not_stored(self) -> None:
        assert msgspec.json.encode(TaskError.of("boom")) == b'{"message":"boom"}'


class TestSpec:
    def test_the_most_common_spec_takes_no_room(self) -> None:
        assert PLAIN.encode() is None
        assert Spec(retry=RetryPolicy(), tags={}).encode() is None
        assert Spec.decode(None) == PLAIN

    @pytest.mark.parametrize(
        "spec",
        [
            Spec(tags={"a": "b"}),
            Spec(retry=RetryPolicy(base=5.0)),
            Spec(trace_id="t"),
            Spec(traceparent="00-ab-cd-01"),
            Spec(workflow_id="w"),
            Spec(schedule_id="s"),
            Spec(owner="acme"),
            Spec(depends_on=(TASK_ID,)),
            Spec(tolerant=True),
            Spec(
                RetryPolicy(9, 3, 100, 0.5),
                {"größe": "\N{ROCKET}"},
                "t",
                "p",
                "w",
                "s",
                (task_id(2), task_id(1)),
                tolerant=True,
            ),
        ],
    )
    def test_any_other_comes_back_as_it_was(self, spec: Spec) -> None:
        stored = spec.encode()
        assert stored is not None
        assert Spec.decode(stored) == spec

    @quick
    @given(
        st.builds(
            Spec,
            retry=st.builds(RetryPolicy, st.floats(0, 100), st.floats(1, 10)),
            tags=st.dictionaries(texts, texts, max_size=3),
            trace_id=st.none() | texts,
            depends_on=st.lists(st.builds(task_id, st.integers(0, 99)), max_size=3).map(tuple),
            tolerant=st.booleans(),
        )
    )
    def test_the_round_trip_changes_nothing(self, spec: Spec) -> None:
        assert Spec.decode(spec.encode()) == spec

    def test_fields_of_a_later_version_are_passed_over(self) -> None:
        assert Spec.decode(b'{"trace_id":"t","unheard_of":1}') == Spec(trace_id="t")


class TestMoments:
    @pytest.mark.parametrize(
        ("microseconds", "time"),
        [
            (0, datetime(1970, 1, 1, tzinfo=UTC)),
            (1, datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
            (-1, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
            (1_772_366_400_000_000, datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ],
    )
    def test_microseconds_and_datetimes_say_the_same(
        self, microseconds: int, time: datetime
    ) -> None:
        assert moment(microseconds) == time
        assert moment(microseconds).tzinfo is UTC
        assert moment_or_none(microseconds) == time
        assert microseconds_of(time) == microseconds

    def test_no_time_is_none(self) -> None:
        assert moment_or_none(None) is None

    def test_the_zone_makes_no_difference(self) -> None:
        time = datetime(2026, 3, 1, 17, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
        assert microseconds_of(time) == 1_772_366_400_000_000

    @quick
    @given(st.datetimes(timezones=st.just(UTC)))
    def test_no_microsecond_is_lost_on_the_way(self, time: datetime) -> None:
        assert moment(microseconds_of(time)) == time


class TestAsk:
    @pytest.mark.parametrize(
        ("last", "heard", "overlooked"),
        [
            (None, None, False),
            (None, "", False),
            (None, "two", True),
            ("two", None, False),
            ("two", "two", False),
            ("two", "", True),
            ("two", "one", True),
            ("three", None, True),
            ("three", "two", True),
        ],
    )
    def test_what_was_given_last_may_not_have_been_heard_of(
        self, last: str | None, heard: str | None, overlooked: bool
    ) -> None:
        assert Ask("worker", "three", 1, heard=heard).overlooks(last) is overlooked


class TestClaimed:
    def test_the_retry_policy_is_the_one_submitted(self) -> None:
        assert claimed().retry == DEFAULT
        assert claimed(spec=Spec(retry=RetryPolicy(5.0))).retry == RetryPolicy(5.0)

    def test_the_trace_is_the_submitters_or_else_the_tasks_own(self) -> None:
        assert claimed(spec=Spec(trace_id="abc")).trace_id == "abc"
        assert claimed().trace_id == TASK_ID.replace("-", "")


def test_escapes_do_not_carry_a_text_over_its_limit() -> None:
    error = TaskError.of("\ud800" * 20_000)
    assert len(error.message) == 10_000
    assert error.message.endswith("…")


def test_a_task_answers_to_the_names_of_the_specification() -> None:
    task = stored(
        state=State.FAILED,
        level=2,
        effective_level=5,
        timeout=9.0,
        capabilities=("gpu",),
        worker_id="w",
    )
    assert (task.status, task.priority, task.effective_priority) == (State.FAILED, 2, 5)
    assert task.timeout_seconds == 9.0
    assert task.required_capabilities == ("gpu",)
    assert task.assigned_worker_id == "w"
