"""Dead letters in groups: what makes two failures alike."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.analysis import Analysis, Group, analyse, failure_of, mark_of, shape_of
from fairlane.core.model import Task, TaskError
from fairlane.core.states import State
from tests.unit.make import NOON, TASK_ID, quick, stored, task_id


class TestShapes:
    @pytest.mark.parametrize(
        ("message", "shape"),
        [
            ("", ""),
            ("boom", "boom"),
            ("  two \n\t words\r\n", "two words"),
            (f"no user {TASK_ID}", "no user <id>"),
            (f"no user {TASK_ID.upper()}.", "no user <id>."),
            ("no file 'a b'", "no file <text>"),
            ('no file "a b"', "no file <text>"),
            ("no file b'a' or 'c'", "no file <text> or <text>"),
            ("no file ''", "no file <text>"),
            (f"KeyError('{TASK_ID}')", "KeyError(<text>)"),
            ('it said "don\'t"', "it said <text>"),
            ("open 'quote", "open 'quote"),
            ("quoted 'don't'", "quoted 'don't'"),
            ("request 1a2b3c4d failed", "request <id> failed"),
            ("request abcdef12 failed", "request <id> failed"),
            ("request ABCDEF1 failed", "request ABCDEF<n> failed"),
            ("request 0123456789abcdef0123456789abcdef", "request <id>"),
            ("account 12345678", "account <id>"),
            ("account 1234567", "account <n>"),
            ("<object at 0x7f3a2b4c5d60>", "<object at <id>>"),
            ("<object at 0xdeadbeef>", "<object at <id>>"),
            ("flags 0x1F", "flags <id>"),
            ("nameabcdef12", "nameabcdef<n>"),
            ("abcdef12name", "abcdef<n>name"),
            ("word deadbeef stays", "word deadbeef stays"),
            ("status 503", "status <n>"),
            ("took 12.75 s of 10 s", "took <n> s of <n> s"),
            ("10.0.0.1:5432 refused", "<n>.<n>:<n> refused"),
            ("v1.2beta", "v<n>beta"),
            ("größe 5 zu groß", "größe <n> zu groß"),
        ],
    )
    def test_what_varies_is_replaced(self, message: str, shape: str) -> None:
        assert shape_of(message) == shape

    @pytest.mark.parametrize("verb", ["can't", "couldn't", "the disk's full: cannot"])
    def test_an_apostrophe_opens_no_quotation(self, verb: str) -> None:
        assert shape_of(f"{verb} read 'a.txt'") == shape_of(f"{verb} read 'b.txt'")
        assert shape_of(f"{verb} read 'a.txt'") != shape_of(f"{verb} write 'a.txt'")

    def test_it_is_short(self) -> None:
        assert shape_of("x" * 10_000) == "x" * 200
        assert shape_of("x" * 200) == "x" * 200

    def test_what_gets_shorter_by_it_leaves_room_for_more(self) -> None:
        assert shape_of("'" + "x" * 300 + "' is wrong") == "<text> is wrong"
        assert shape_of("'" + "x" * 350 + "' is " + "w" * 100) == "<text> is " + "w" * 44

    @quick
    @given(
        st.integers(0, 10**12),
        st.floats(0, 1e6, allow_subnormal=False).map(lambda number: f"{number:.3f}"),
        st.uuids(),
        st.text("ab 1-", max_size=10),
    )
    def test_failures_that_differ_in_what_varies_are_alike(
        self, size: int, seconds: str, id: object, text: str
    ) -> None:
        short = size % 10**7  # a longer number is taken for an id
        found = shape_of(f"file '{text}' of {id}: {short} bytes after {seconds} s, \"{text}\"")
        assert found == "file <text> of <id>: <n> bytes after <n> s, <text>"

    @quick
    @given(st.text())
    def test_any_message_has_a_shape_without_digits(self, message: str) -> None:
        shape = shape_of(message)
        assert len(shape) <= 200
        assert not any(character in "0123456789" for character in shape)
        assert shape == " ".join(shape.split()) or len(shape) == 200


def dead(number: int, message: str | None = "boom", **changes: Any) -> Task:
    """A dead letter that ended so many seconds after noon."""
    fields = {"code": None, "retriable": True, **changes.pop("error", {})}
    return stored(
        task_id=task_id(number),
        state=State.DEAD_LETTER,
        completed_at=NOON + timedelta(seconds=number),
        error=None if message is None else TaskError(message, **fields),
        **changes,
    )


class TestGroups:
    def test_no_dead_letters_make_no_groups(self) -> None:
        assert analyse([], complete=True) == Analysis([], 0, complete=True)

    def test_failures_of_one_type_code_and_shape_are_one_group(self) -> None:
        tasks = [
            dead(7, "no user 17", error={"code": "E1"}),
            dead(3, "no user 3", error={"code": "E1", "retriable": False}),
            dead(9, "no user 99", error={"code": "E1"}),
            dead(5, "no user 0", error={"code": "E1"}),
        ]
        assert analyse(tasks, complete=True).groups == [
            Group(
                type="email",
                code="E1",
                shape="no user <n>",
                count=4,
                first_seen=NOON + timedelta(seconds=3),
                last_seen=NOON + timedelta(seconds=9),
                retriable_share=0.75,
                example=task_id(7),
            )
        ]

    @pytest.mark.parametrize(
        "other",
        [
            dead(2, type="crawl"),
            dead(2, error={"code": "E1"}),
            dead(2, "bang"),
            dead(2, None),
        ],
        ids=["type", "code", "shape", "no error"],
    )
    def test_others_are_not(self, other: Task) -> None:
        found = analyse([dead(1), other], complete=True)
        assert sorted(group.example for group in found.groups) == [task_id(1), task_id(2)]
        assert [group.count for group in found.groups] == [1, 1]
        assert mark_of(failure_of(other)) != mark_of(failure_of(dead(1)))

    def test_those_of_a_group_have_its_mark(self) -> None:
        marks = {mark_of(failure_of(dead(number, f"no user {number}"))) for number in (1, 22)}
        assert marks == {mark_of(("email", None, "no user <n>"))}

    def test_a_task_without_an_error_has_no_code_and_no_shape_and_is_not_retriable(self) -> None:
        (group,) = analyse([dead(1, None)], complete=True).groups
        assert (group.code, group.shape, group.retriable_share) == (None, "", 0.0)

    def test_a_task_without_an_end_was_last_seen_when_it_changed(self) -> None:
        (group,) = analyse([stored(error=TaskError("boom"))], complete=True).groups
        assert (group.first_seen, group.last_seen) == (NOON, NOON)

    def test_the_largest_come_first_and_then_the_alphabet(self) -> None:
        tasks = [
            dead(1, "b"),
            dead(2, "a"),
            dead(3, "z", type="crawl"),
            dead(4, "c"),
            dead(5, "c"),
        ]
        found = [(group.type, group.shape) for group in analyse(tasks, complete=True).groups]
        assert found == [("email", "c"), ("crawl", "z"), ("email", "a"), ("email", "b")]

    @pytest.mark.parametrize("complete", [True, False])
    def test_it_says_how_many_were_looked_at_and_whether_those_are_all(
        self, complete: bool
    ) -> None:
        tasks = [dead(1, "a"), dead(2, "a"), dead(3, "b")]
        found = analyse(iter(tasks), complete=complete)
        assert (found.analysed, found.complete) == (3, complete)

    @quick
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["email", "crawl"]),
                st.sampled_from([None, "E1", "E2"]),
                st.sampled_from(["a 1", "a 2", "b"]),
                st.booleans(),
            ),
            max_size=20,
        )
    )
    def test_every_dead_letter_is_in_one_group(
        self, failures: list[tuple[str, str | None, str, bool]]
    ) -> None:
        tasks = [
            dead(number, message, type=type, error={"code": code, "retriable": retriable})
            for number, (type, code, message, retriable) in enumerate(failures)
        ]
        groups = analyse(tasks, complete=True).groups
        kinds = [(group.type, group.code, group.shape) for group in groups]
        assert len(set(kinds)) == len(kinds)
        assert sum(group.count for group in groups) == len(tasks)
        assert sum(group.count * group.retriable_share for group in groups) == pytest.approx(
            sum(retriable for _, _, _, retriable in failures)
        )
        for group in groups:
            members = [
                task
                for task in tasks
                if task.error is not None
                and (task.type, task.error.code) == (group.type, group.code)
                and shape_of(task.error.message) == group.shape
            ]
            assert group.count == len(members)
            assert group.example == members[0].task_id
