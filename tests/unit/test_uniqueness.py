"""Unique tasks: which tasks are doubles, and for how long they stand in each other's way."""

import json
from datetime import timedelta
from hashlib import blake2b
from itertools import combinations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairlane.core.errors import InvalidUnique
from fairlane.core.states import LIVE, WAITING, State
from fairlane.core.uniqueness import Hold, Mode, Unique, checked, counts, hold, mask, unmask
from tests.unit.make import SECOND, quick, texts

names = st.sampled_from(["a", "b", "c"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.integers(2**63, 2**70) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
payloads = st.dictionaries(names, values, max_size=3)
kinds = st.tuples(
    st.sampled_from(["email", "crawl"]),
    payloads,
    st.none() | st.frozensets(names, min_size=1),
    st.sampled_from([LIVE, frozenset({State.QUEUED}), frozenset(State)]),
)


def key(
    type: str,
    payload: dict[str, Any],
    arguments: frozenset[str] | None = None,
    states: frozenset[State] = LIVE,
) -> bytes:
    """The key of a kind of task."""
    chosen = None if arguments is None else tuple(arguments)
    held = hold(type, json.dumps(payload).encode(), Unique(chosen, states))
    assert held is not None
    return held.key


def kind(
    type: str,
    payload: dict[str, Any],
    arguments: frozenset[str] | None,
    states: frozenset[State],
) -> tuple[Any, ...]:
    """The same in words: what two tasks must share to be doubles."""
    chosen: Any = payload
    if arguments is not None:
        chosen = [(name, name in payload, payload.get(name)) for name in sorted(arguments)]
    # As text, since True == 1 to Python.
    return (type, arguments is None, json.dumps(chosen, sort_keys=True), states)


def shuffled(value: Any) -> Any:
    """The same value with the keys of all its dicts the other way round."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(value)}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


class TestKeys:
    @quick
    @given(kinds, kinds, st.sets(st.integers(0, 3)))
    def test_they_are_equal_just_when_type_states_and_chosen_arguments_are(
        self, one: tuple[Any, ...], another: tuple[Any, ...], changed: set[int]
    ) -> None:
        other = [another[part] if part in changed else one[part] for part in range(4)]
        assert (key(*one) == key(*other)) == (kind(*one) == kind(*other))

    @quick
    @given(kinds, payloads)
    def test_arguments_that_were_not_chosen_make_no_difference(
        self, one: tuple[Any, ...], noise: dict[str, Any]
    ) -> None:
        type, payload, arguments, states = one
        assume(arguments is not None)
        others = {name: value for name, value in noise.items() if name not in arguments}
        kept = {name: value for name, value in payload.items() if name in arguments}
        assert key(type, {**others, **kept}, arguments, states) == key(*one)

    @quick
    @given(kinds)
    def test_the_order_of_the_payloads_keys_and_its_white_space_make_no_difference(
        self, one: tuple[Any, ...]
    ) -> None:
        type, payload, arguments, states = one
        assert key(type, shuffled(payload), arguments, states) == key(*one)
        spread = json.dumps(payload, indent=2).encode()
        chosen = None if arguments is None else tuple(arguments)
        held = hold(type, spread, Unique(chosen, states))
        assert held is not None
        assert held.key == key(*one)

    @pytest.mark.parametrize("period", [None, 0.5, 60])
    @pytest.mark.parametrize("mode", Mode)
    def test_period_and_mode_make_no_difference(self, period: float | None, mode: Mode) -> None:
        held = hold("email", b'{"a":1}', Unique(period=period, mode=mode))
        assert held is not None
        assert held.key == key("email", {"a": 1})

    @pytest.mark.parametrize(
        "arguments",
        [("a", "b"), ("b", "a"), ("a", "b", "a"), ["b", "a"], {"a", "b"}, frozenset({"a", "b"})],
        ids=["in order", "reversed", "twice", "list", "set", "frozenset"],
    )
    def test_the_order_in_which_arguments_are_named_makes_no_difference(
        self, arguments: Any
    ) -> None:
        held = hold("email", b'{"b":2,"a":1,"c":3}', Unique(arguments))
        assert held is not None
        assert held.key == key("email", {"a": 1, "b": 2}, frozenset({"a", "b"}))

    @pytest.mark.parametrize("pair", list(combinations([None, [], {}, [[]], 0, False, ""], 2)))
    def test_values_that_are_alike_are_not_the_same(self, pair: tuple[Any, Any]) -> None:
        one, other = pair
        assert key("email", {"a": one}) != key("email", {"a": other})
        chosen = frozenset({"a"})
        assert key("email", {"a": one}, chosen) != key("email", {"a": other}, chosen)

    @pytest.mark.parametrize("value", [None, [], {}, [[]], 0, False, ""])
    def test_an_argument_that_is_missing_is_like_no_value(self, value: Any) -> None:
        chosen = frozenset({"a"})
        assert key("email", {}, chosen) != key("email", {"a": value}, chosen)
        assert key("email", {}, chosen) == key("email", {"b": value}, chosen)

    def test_all_of_a_payload_is_not_the_same_as_its_only_argument(self) -> None:
        assert key("email", {"a": 1}) != key("email", {"a": 1}, frozenset({"a"}))

    def test_long_numbers_differ_to_the_last_digit(self) -> None:
        assert key("email", {"a": 10**30}) != key("email", {"a": 10**30 + 1})

    def test_they_are_short_whatever_the_payload(self) -> None:
        assert len(key("email", {"a": "x" * 100_000})) == 16

    def test_they_are_stored_and_so_never_change(self) -> None:
        everything = '["email",30,{"a":"ü","b":[1.5,null]}]'
        assert key("email", {"b": [1.5, None], "a": "ü"}) == digest(everything)
        chosen = '["email",30,[["a",["ü"]],["c",[]]]]'
        assert key("email", {"b": 1, "a": "ü"}, frozenset({"a", "c"})) == digest(chosen)


def digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


class TestHold:
    @pytest.mark.parametrize("unique", [None, False])
    def test_a_task_that_need_not_be_unique_holds_nothing(self, unique: object) -> None:
        assert hold("email", b"{}", unique) is None

    def test_the_plain_kind_is_the_only_one_of_its_payload_while_it_lives(self) -> None:
        held = hold("email", b'{"a":1}', unique=True)
        assert held == hold("email", b'{"a":1}', Unique())
        assert held == Hold(key("email", {"a": 1}), mask(LIVE), None, Mode.EXISTING)

    def test_it_says_what_the_submitter_said(self) -> None:
        how = Unique(("a",), frozenset({State.QUEUED, State.COMPLETED}), 1.5, Mode.REPLACE)
        assert hold("email", b'{"a":1}', how) == Hold(
            key("email", {"a": 1}, frozenset({"a"}), how.states),
            mask({State.QUEUED, State.COMPLETED}),
            1_500_000,
            Mode.REPLACE,
            ("a",),
        )

    @pytest.mark.parametrize("states", [set(), {State.QUEUED}, set(State)])
    def test_states_are_the_same_out_of_a_mask_as_into_it(self, states: set[State]) -> None:
        assert unmask(mask(states)) == states

    def test_a_period_is_held_in_whole_microseconds(self) -> None:
        held = hold("email", b"{}", Unique(period=1.000_001_9))
        assert held is not None
        assert held.period == 1_000_001

    @pytest.mark.parametrize("state", State)
    def test_a_holder_blocks_in_the_states_that_count(self, state: State) -> None:
        held = Hold(b"", mask({State.QUEUED, State.COMPLETED}), None, Mode.EXISTING)
        assert held.blocks(state, 0, 10**18) is (state in {State.QUEUED, State.COMPLETED})

    @pytest.mark.parametrize(
        ("age", "blocks"),
        [(0, True), (-SECOND, True), (SECOND - 1, True), (SECOND, False), (SECOND + 1, False)],
    )
    def test_a_holder_blocks_until_its_period_is_over(self, age: int, blocks: bool) -> None:
        held = Hold(b"", mask(LIVE), SECOND, Mode.EXISTING)
        assert held.blocks(State.QUEUED, 7, 7 + age) is blocks
        assert not held.blocks(State.COMPLETED, 7, 7 + age)

    @pytest.mark.parametrize("state", State)
    @pytest.mark.parametrize("mode", Mode)
    def test_only_what_still_waits_is_replaced(self, mode: Mode, state: State) -> None:
        held = Hold(b"", mask(State), None, mode)
        assert held.replaces(state) is (mode is Mode.REPLACE and state in WAITING)


class TestStatesAsANumber:
    @quick
    @given(st.frozensets(st.sampled_from(State)))
    def test_it_holds_just_these_states(self, states: frozenset[State]) -> None:
        assert {state for state in State if counts(mask(states), state)} == states

    def test_it_has_a_bit_for_each_code_and_counts_none_twice(self) -> None:
        assert mask([]) == 0
        assert mask([State.SCHEDULED]) == 0b10
        assert mask([State.SCHEDULED, State.QUEUED, State.SCHEDULED]) == 0b110
        assert mask(State) == 0b1_1111_1110


class TestOptions:
    def test_what_makes_sense_is_put_in_order(self) -> None:
        loose: Any = Unique(["b", "a", "b"], [State.QUEUED, State.QUEUED], 5, "reject")  # type: ignore[arg-type]
        assert checked(loose) == Unique(("a", "b"), frozenset({State.QUEUED}), 5, Mode.REJECT)

    def test_nothing_need_be_said(self) -> None:
        assert checked(Unique()) == Unique(None, LIVE, None, Mode.EXISTING)

    @pytest.mark.parametrize(
        "unique", [None, True, False, 1, "email", {"arguments": ["a"]}, Unique], ids=repr
    )
    def test_they_come_as_unique_only(self, unique: Any) -> None:
        with pytest.raises(InvalidUnique, match=r"^unique is True or a Unique\(…\)\. Got .*\.$"):
            checked(unique)

    @pytest.mark.parametrize(
        "arguments",
        [(), [], set(), "a", 5, True, b"a", (1,), ("a", None), (["a"],), ("\ud800",), {"a": 1}],
        ids=ascii,
    )
    def test_arguments_that_are_no_names_are_refused(self, arguments: Any) -> None:
        with pytest.raises(InvalidUnique, match=r"at least one name of an argument\. Got .*\.$"):
            checked(Unique(arguments))

    @pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
    def test_states_may_come_as_any_of_these(self, kind: type[Any]) -> None:
        states = kind([State.QUEUED, State.FAILED])
        assert checked(Unique(states=states)).states == {State.QUEUED, State.FAILED}

    @pytest.mark.parametrize(
        "states",
        [(), frozenset(), None, 5, True, "queued", ["queued"], [State.QUEUED, "failed"], [[]]],
        ids=repr,
    )
    def test_states_that_are_none_are_refused(self, states: Any) -> None:
        with pytest.raises(InvalidUnique, match="at least one state in which a task counts"):
            checked(Unique(states=states))

    @pytest.mark.parametrize("period", [1, 0.001, 366 * 86_400, 366 * 86_400.0])
    def test_a_period_is_a_number_of_seconds_up_to_a_year(self, period: float) -> None:
        assert checked(Unique(period=period)).period == period

    @pytest.mark.parametrize(
        "period",
        [
            *(0, -1, 366 * 86_400.001, 10**5000, float("nan"), float("inf")),
            *(True, "5", [5], timedelta(0)),
        ],
        ids=["zero", "less", "more", "huge", "nan", "inf", "bool", "text", "list", "timedelta"],
    )
    def test_any_other_period_is_refused(self, period: Any) -> None:
        with pytest.raises(InvalidUnique, match=r"above 0 and at most 31,622,400, or None\. Got"):
            checked(Unique(period=period))

    @pytest.mark.parametrize(
        ("name", "mode"),
        [("existing", Mode.EXISTING), ("reject", Mode.REJECT), ("replace", Mode.REPLACE)],
    )
    def test_a_mode_may_be_given_by_its_name(self, name: Any, mode: Mode) -> None:
        assert checked(Unique(mode=name)).mode is mode

    @pytest.mark.parametrize("mode", ["", "REJECT", "ignore", None, True, [], ["reject"]], ids=repr)
    def test_any_other_mode_is_refused(self, mode: Any) -> None:
        with pytest.raises(InvalidUnique, match=r"existing, reject or replace\. Got .*\.$"):
            checked(Unique(mode=mode))
