"""Parameters that are results of other tasks: what can be said, and what is added to a payload."""

import re
from typing import Any

import msgspec
import pytest

from fairlane.core import limits
from fairlane.core.compression import damaged, stored_form
from fairlane.core.errors import (
    DriverMissing,
    InputMissing,
    InputsTooLarge,
    InvalidInputs,
    KeyMissing,
)
from fairlane.core.inputs import Input, TaskInput, named_inputs, numbered_inputs, spliced
from fairlane.core.merging import (
    Failed,
    ParentResult,
    failed_in,
    merged,
    parted,
    wanted,
)
from fairlane.core.model import NewTask, Spec, TaskError
from fairlane.core.states import State
from fairlane.core.submission import fingerprint, new_form, new_task
from fairlane.core.uniqueness import Unique
from tests.unit.make import stored, task_id

A, B, C = (task_id(number) for number in (1, 2, 3))
PLAIN = {"order": Input((0,))}
Loose: Any = Input
"""The same, for values that a type checker would not let through."""


def new(payload: Any = None, inputs: Any = None, parents: Any = (A, B), **options: Any) -> NewTask:
    return new_task("ship", payload, depends_on=parents, inputs=inputs, **options)


class TestSubmission:
    def test_they_are_part_of_what_is_stored_and_of_nothing_else(self) -> None:
        inputs = {"order": Input((1,), path=("lines", 0)), "prices": Input((0, 1, 0), many=True)}
        task = new({"to": "Ada"}, inputs)
        assert task.payload == b'{"to":"Ada"}'
        assert task.spec.inputs == inputs
        assert Spec.decode(task.spec.encode()) == task.spec

    def test_a_task_without_them_is_stored_as_before(self) -> None:
        assert new_task("ship", inputs=None).spec.encode() is None
        assert new_task("ship", inputs={}).spec.encode() is None
        encoded = new(inputs=None).spec.encode()
        assert encoded is not None
        assert b"inputs" not in encoded

    def test_without_many_there_is_nothing_to_say_but_the_parent(self) -> None:
        encoded = new(inputs=PLAIN).spec.encode()
        assert encoded is not None
        assert b'"inputs":{"order":{"parents":[0]}}' in encoded

    def test_positions_are_those_of_parents_that_are_named_once(self) -> None:
        task = new(inputs={"order": Input((1,))}, parents=iter([A, A, B]))
        assert wanted(task.spec) == [B]
        with pytest.raises(InvalidInputs):
            new(inputs={"order": Input((2,))}, parents=[A, A, B])

    @pytest.mark.parametrize(
        ("inputs", "says"),
        [
            (["order"], "inputs is a dict of at most 100"),
            ({f"p{n}": Input((0,)) for n in range(101)}, "inputs is a dict of at most 100"),
            ({"": Input((0,))}, "has the name of a parameter"),
            ({"n" * 256: Input((0,))}, "has the name of a parameter"),
            ({"a\nb": Input((0,))}, "has the name of a parameter"),
            ({1: Input((0,))}, "has the name of a parameter"),
            ({"$sealed": Input((0,))}, "do not begin with \\$"),
            ({"to": Input((0,))}, "The parameter 'to' is in the payload and in the inputs"),
            ({"order": A}, "The input 'order' is no Input"),
            ({"order": Loose((0,), many=1)}, "many is true or false"),
            ({"order": Input((2,))}, "positions in depends_on, which has 2"),
            ({"order": Input((-1,))}, "positions in depends_on"),
            ({"order": Input((True,))}, "positions in depends_on"),
            ({"order": Loose(("0",))}, "positions in depends_on"),
            ({"order": Loose(0)}, "positions in depends_on"),
            ({"order": Input(())}, "has 0 parents: one, or any number with many"),
            ({"order": Input((0, 1))}, "has 2 parents: one, or any number with many"),
            ({"order": Loose((0,), path="lines")}, "A path has at most 16"),
            ({"order": Input((0,), path=("a",) * 17)}, "A path has at most 16"),
            ({"order": Input((0,), path=(-1,))}, "A path has keys"),
            ({"order": Input((0,), path=(True,))}, "A path has keys"),
            ({"order": Loose((0,), path=(1.5,))}, "A path has keys"),
            ({"order": Input((0,), path=("k" * 256,))}, "A path has keys"),
            ({"all": Input((0, 1) * 5_001, many=True)}, "at most 10,000 times, not 10,002 times"),
            ({"all": Input((0,), nesting=(-1,))}, "nesting has -1 for each result"),
            ({"all": Loose((0,), many=True, nesting="x")}, "nesting has -1"),
            ({"all": Input((0,), many=True, nesting=(0,) * 20_001)}, "at most 20,000 elements"),
            (
                {f"p{n}": Input((), many=True, nesting=(0,) * 10_001) for n in range(2)},
                "at most 20,000 elements in each other, not 20,002",
            ),
            ({"all": Loose((0,), many=True, nesting=(-1.0,))}, "nesting has -1"),
            ({"all": Input((0,), many=True, nesting=(-2,))}, "nesting has -1"),
            ({"all": Input((0,), many=True, nesting=(10_001, -1))}, "nesting has -1"),
            ({"all": Input((0, 1), many=True, nesting=(-1,))}, "nesting has -1"),
            ({"all": Input((0,), many=True, nesting=(-1, 1))}, "nesting has -1"),
            ({"all": Input((0,), many=True, nesting=(2, -1))}, "nesting has -1"),
            ({"all": Input((0,), many=True, nesting=(1,) * 17 + (-1,))}, "nesting has -1"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, inputs: Any, says: str) -> None:
        with pytest.raises(InvalidInputs, match=says):
            new({"to": "Ada"}, inputs)

    def test_a_list_may_be_empty_and_may_repeat(self) -> None:
        task = new(inputs={"none": Input((), many=True), "twice": Loose([0, 0], many=True)})
        assert task.spec.inputs["twice"].parents == (0, 0)
        assert wanted(task.spec) == [A]

    @pytest.mark.parametrize(
        "nesting",
        [(), (-1, -1), (2, -1, -1), (1, -1, 0, 1, 1, -1, 0), (1,) * 16 + (-1, -1)],
    )
    def test_lists_may_be_in_each_other(self, nesting: tuple[int, ...]) -> None:
        given = Loose((0, 1), many=True, nesting=list(nesting))
        task = new(inputs={"all": given})
        assert task.spec.inputs["all"].nesting == nesting
        assert Spec.decode(task.spec.encode()) == task.spec
        named = named_inputs(task.spec.inputs, task.depends_on)
        assert numbered_inputs(named, (A, B)) == ((A, B), task.spec.inputs)

    def test_a_form_has_none(self) -> None:
        with pytest.raises(AssertionError):
            new_form("ship", inputs=PLAIN)


class TestIdentity:
    def print_of(self, **given: Any) -> bytes | None:
        return new({"to": "Ada"}, idempotency_key="k", **given).fingerprint

    def test_without_inputs_it_is_that_of_type_and_payload(self) -> None:
        assert self.print_of() == fingerprint("ship", b'{"to":"Ada"}')

    def test_every_difference_counts(self) -> None:
        prints = [
            self.print_of(),
            self.print_of(inputs=PLAIN),
            self.print_of(inputs={"other": Input((0,))}),
            self.print_of(inputs={"order": Input((1,))}),
            self.print_of(inputs={"order": Input((0,), many=True)}),
            self.print_of(inputs={"order": Input((0,), many=True, nesting=(1, -1))}),
            self.print_of(inputs={"order": Input((0,), path=("id",))}),
        ]
        assert len(set(prints)) == len(prints)

    def test_it_is_about_the_parents_and_not_about_their_positions(self) -> None:
        same = self.print_of(inputs={"order": Input((1,))}, parents=(B, A))
        assert same == self.print_of(inputs=PLAIN)
        assert self.print_of(inputs=PLAIN, parents=(C,)) != same

    def test_uniqueness_takes_them_for_arguments(self) -> None:
        def key(parent: int, **given: Any) -> bytes:
            task = new({"to": "Ada"}, {"order": Input((parent,))}, **given)
            assert task.unique is not None
            return task.unique.key

        assert key(0, unique=True) == key(0, unique=True) != key(1, unique=True)
        by_order, by_name = Unique(arguments=("order",)), Unique(arguments=("to",))
        assert key(0, unique=by_order) != key(1, unique=by_order)
        assert key(0, unique=by_name) == key(1, unique=by_name)


class TestNames:
    def test_readers_see_the_ids_of_the_parents(self) -> None:
        inputs = {"order": Input((1,)), "all": Input((1, 0, 1), many=True, path=("id",))}
        named = named_inputs(inputs, (A, B))
        assert named == {
            "order": TaskInput((B,)),
            "all": TaskInput((B, A, B), many=True, path=("id",)),
        }
        assert numbered_inputs(named, (A, B)) == ((A, B), inputs)

    def test_a_parent_that_only_an_input_names_is_added(self) -> None:
        parents, inputs = numbered_inputs({"order": TaskInput((C,))}, [A, A])
        assert (parents, inputs) == ((A, C), {"order": Input((1,))})


class TestSplice:
    @pytest.mark.parametrize(
        ("payload", "whole"),
        [
            (b"{}", b'{"a":1,"b":[2]}'),
            (b" { \n} ", b' {"a":1,"b":[2]}'),
            (b'{"x": "}" }', b'{"x": "}","a":1,"b":[2]}'),
            (b'{"x":{}}\n', b'{"x":{},"a":1,"b":[2]}'),
            (b'{"x":"{"}', b'{"x":"{","a":1,"b":[2]}'),
        ],
    )
    def test_members_are_added_to_the_bytes_as_they_are(self, payload: bytes, whole: bytes) -> None:
        assert spliced(payload, {"a": b"1", "b": b"[2]"}) == whole
        assert spliced(payload, {}) == payload
        rest, members = parted(whole, ["a", "b", "c"])
        assert members == {"a": b"1", "b": b"[2]"}
        assert msgspec.json.decode(rest) == msgspec.json.decode(payload)
        assert parted(payload, ["a"]) == (payload, {})

    def test_a_name_is_quoted(self) -> None:
        assert msgspec.json.decode(spliced(b"{}", {'a"\\é': b"1"})) == {'a"\\é': 1}


def done(result: bytes | None) -> ParentResult:
    return ParentResult(State.COMPLETED, result, None)


def merge(inputs: dict[str, Input], *results: ParentResult | None, tolerant: bool = False) -> Any:
    """What a task gets whose parents have these results. None: the parent is gone."""
    parents = [task_id(number) for number in range(len(results))]
    policy = "continue" if tolerant else "cancel"
    spec = new({"to": "Ada"}, inputs, parents, on_parent_failure=policy).spec
    found = {id: each for id, each in zip(parents, results, strict=True) if each is not None}
    return merged(b'{"to":"Ada"}', spec, found)


class TestMerging:
    def test_results_are_added_byte_for_byte(self) -> None:
        result = b'{"total" : 1e2, "id":12345678901234567890123}'
        assert merge(PLAIN, done(result)) == b'{"to":"Ada","order":%b}' % result

    def test_a_list_is_in_the_order_of_the_argument(self) -> None:
        inputs = {"all": Input((1, 0, 1), many=True), "none": Input((), many=True)}
        whole = merge(inputs, done(b"1"), done(b"[2]"))
        assert whole == b'{"to":"Ada","all":[[2],1,[2]],"none":[]}'

    def test_lists_in_lists(self) -> None:
        inputs = {"all": Input((0, 1, 0), many=True, nesting=(-1, 2, -1, 1, -1, 0))}
        task = new(inputs=inputs)
        results = {
            A: ParentResult(State.COMPLETED, b"1", None),
            B: ParentResult(State.COMPLETED, b'"b"', None),
        }
        assert merged(b"{}", task.spec, results) == b'{"all":[1,["b",[1]],[]]}'

    def test_no_result_is_null(self) -> None:
        assert merge(PLAIN, done(None)) == b'{"to":"Ada","order":null}'

    @pytest.mark.parametrize(
        ("path", "part"),
        [
            ((), b'{"lines": [ {"sku":"a"}, 1.50 ],"0":7}'),
            (("lines",), b'[ {"sku":"a"}, 1.50 ]'),
            (("lines", 1), b"1.50"),
            (("lines", 0, "sku"), b'"a"'),
            (("0",), b"7"),
        ],
    )
    def test_a_path_leads_to_a_part(self, path: tuple[str | int, ...], part: bytes) -> None:
        result = b'{"lines": [ {"sku":"a"}, 1.50 ],"0":7}'
        whole = merge({"part": Input((0,), path=path)}, done(result))
        assert whole == b'{"to":"Ada","part":%b}' % part
        many = merge({"part": Input((0,), many=True, path=path)}, done(result))
        assert many == b'{"to":"Ada","part":[%b]}' % part

    @pytest.mark.parametrize(
        "path", [("b",), (0,), ("a", 2), ("a", "0"), ("a", 0, "x"), ("a", 0, 0)]
    )
    def test_a_path_that_leads_nowhere_names_parameter_and_parent(self, path: Any) -> None:
        with pytest.raises(InputMissing, match="which has no part") as caught:
            merge({"part": Input((0,), path=path)}, done(b'{"a":[1,2]}'))
        assert (caught.value.parameter, caught.value.parent) == ("part", task_id(0))
        assert f"'part' is the result of task {task_id(0)}" in caught.value.message

    def test_a_parent_that_is_gone_is_named(self) -> None:
        with pytest.raises(InputMissing, match=f"task {task_id(0)}, which was deleted"):
            merge(PLAIN, None)

    @pytest.mark.parametrize("state", [state for state in State if state != State.COMPLETED])
    def test_a_parent_that_did_not_complete_stands_for_itself(self, state: State) -> None:
        failure = TaskError("Sold out.", "OUT_OF_STOCK", traceback="secret")
        parent = ParentResult(state, None, failure)
        with pytest.raises(InputMissing, match=f"which is {state}: replay that task first"):
            merge(PLAIN, parent)
        value = msgspec.json.decode(merge(PLAIN, parent, tolerant=True))["order"]
        assert value == {
            "$failed": {
                "task_id": task_id(0),
                "state": state,
                "code": "OUT_OF_STOCK",
                "message": "Sold out.",
            }
        }
        failed = failed_in(msgspec.json.encode(value))
        assert failed == Failed(task_id(0), state, "OUT_OF_STOCK", "Sold out.")

    def test_one_that_was_cancelled_has_no_code(self) -> None:
        parent = ParentResult(State.CANCELLED, None, None)
        value = msgspec.json.decode(merge(PLAIN, parent, tolerant=True))["order"]["$failed"]
        assert value["code"] is None
        assert value["message"] == f"Task {task_id(0)} is cancelled."

    def test_a_long_message_is_cut(self) -> None:
        parent = ParentResult(State.FAILED, None, TaskError("x" * 10_000))
        value = msgspec.json.decode(merge(PLAIN, parent, tolerant=True))["order"]["$failed"]
        assert len(value["message"]) == limits.FAILED_CHARACTERS

    def test_no_result_can_be_mistaken_for_a_failure(self) -> None:
        failure = msgspec.json.decode(
            merge(PLAIN, ParentResult(State.FAILED, None, None), tolerant=True)
        )
        forged = msgspec.json.encode(failure["order"])
        with pytest.raises(InputMissing, match="has the reserved form"):
            merge(PLAIN, done(forged))
        with pytest.raises(InputMissing, match="has the reserved form"):
            merge({"part": Input((0,), path=(0,))}, done(b"[%b]" % forged))

    @pytest.mark.parametrize(
        "value", [b"1", b'{"$failed":1}', b'{"$failed":{}}', b'{"$failed":{},"a":1}', b'{"a":1}']
    )
    def test_nothing_else_looks_like_a_failure(self, value: bytes) -> None:
        assert failed_in(value) is None
        assert merge(PLAIN, done(value)) == b'{"to":"Ada","order":%b}' % value

    def test_what_is_too_large_together_is_refused(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(limits, "INPUT_BYTES", 20)
        inputs = {"all": Input((0, 0), many=True)}
        assert merge(inputs, done(b"1" * 10)).endswith(b"]}")
        with pytest.raises(InputsTooLarge, match="have more than 20 bytes together"):
            merge(inputs, done(b"1" * 11))

    def test_a_result_that_cannot_be_read_here_is_no_failure(self) -> None:
        sealed = b'{"$sealed":"k1.AAAAAAAA.%b"}' % (b"A" * 40)
        with pytest.raises(KeyMissing, match="the encryption key k1"):
            merge(PLAIN, done(sealed))
        with pytest.raises(DriverMissing, match="compressed"):
            merge(PLAIN, done(stored_form(b"xyz")))

    def test_a_result_that_nobody_can_read_is_one(self) -> None:
        broken = b'{"$sealed":"k1.AAAAAAAA.%b","$broken":true}' % (b"A" * 40)
        for result in (broken, damaged(stored_form(b"xyz"))):
            with pytest.raises(InputMissing, match="which cannot be read") as caught:
                merge(PLAIN, done(result))
            assert re.search(r"[^.]\.$", caught.value.message)


def test_a_parent_contributes_what_is_needed_of_it() -> None:
    error = TaskError("no")
    task = stored(state=State.COMPLETED, result=b"[1]", error=error, payload=b'{"large":1}')
    assert ParentResult.of(task) == ParentResult(State.COMPLETED, b"[1]", error)
    assert (ParentResult.of(task).size, ParentResult.of(stored()).size) == (3, 0)
