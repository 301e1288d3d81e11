"""001's shapes: payloads of any kind, and its words for states."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.wire.spec import STATUS, unwrapped, wrapped

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
names = st.sampled_from(["$value", "value", "payload", "self", ""]) | st.text(
    st.characters(exclude_categories=["Cs"])
)
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@given(documents)
def test_any_payload_comes_back_exactly(payload: Any) -> None:
    stored = new_task("work", wrapped(payload)).payload
    back = unwrapped(msgspec.json.decode(stored))
    assert msgspec.json.encode(back) == msgspec.json.encode(payload)


@pytest.mark.parametrize("payload", [{}, {"url": "x"}, {"$value": 1, "more": 2}])
def test_objects_stay_as_they_are(payload: dict[str, Any]) -> None:
    assert wrapped(payload) is payload


def test_every_state_has_a_word() -> None:
    assert STATUS.keys() == set(State)
    assert set(STATUS.values()) == {"pending", "processing", "completed", "failed", "cancelled"}
