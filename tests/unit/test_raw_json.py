"""JSON that is checked as bytes: the same verdict as of a decoder, at a bounded cost."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core import blobs, limits
from fairlane.core.errors import InvalidPayload, PayloadTooDeep
from fairlane.core.raw_json import NotJson, TooDeep, build, check_bounds, check_json
from fairlane.core.submission import check_tree, checked_json, checked_payload

MEBIBYTE = 1024 * 1024


def fits(value: bytes, check: Callable[[bytes], None] = check_json) -> bool:
    try:
        check(value)
    except (NotJson, TooDeep):
        return False
    return True


def fits_when_built(value: bytes) -> bool:
    """What a decoder says, and a walk through what it has built."""
    try:
        check_tree(msgspec.json.decode(value), limits.JSON_DEPTH)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, PayloadTooDeep):
        return False
    return True


numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,4})?", fullmatch=True
)
pieces = st.one_of(
    numbers,
    st.sampled_from(['"', "\\", '\\"', "\\\\", "[", "]", "{", "}", ",", ":", " ", "\n", "true"]),
    st.sampled_from(["\\ud83d\\ude00", "\\ud800", "\\udc00", "\\u0000", "e308", "null", "false"]),
    st.text(max_size=3),
    st.text(max_size=5).map(json.dumps),
)
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(numbers, st.text(max_size=8).map(json.dumps), st.sampled_from(["true", "null"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda parts: "[" + ", ".join(parts) + "]"),
        st.lists(st.tuples(st.text(max_size=4).map(json.dumps), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f"{name} :{value}" for name, value in pairs) + "}"
        ),
    ),
    max_leaves=12,
)


class TestCheck:
    @given(values)
    def test_values_fit_if_a_decoder_takes_them(self, value: str) -> None:
        text = value.encode("utf-8", "surrogatepass")
        assert fits(text) == fits_when_built(text)

    @given(st.lists(pieces, max_size=12).map("".join))
    def test_nonsense_fits_no_more_than_with_a_decoder(self, nonsense: str) -> None:
        for text in (nonsense, f"[{nonsense}]", f'"{nonsense}"'):
            value = text.encode("utf-8", "surrogatepass")
            assert fits(value) == fits_when_built(value)

    @given(st.binary(max_size=12))
    def test_texts_are_utf_8(self, text: bytes) -> None:
        value = b'["' + text + b'"]'
        assert fits(value) == fits_when_built(value)

    @given(st.one_of(values, st.lists(pieces, max_size=12).map("".join)))
    def test_part_of_a_text_that_was_decoded_needs_no_more_than_bounds(self, part: str) -> None:
        text = f'{{"payload": {part}}}'.encode("utf-8", "surrogatepass")
        try:
            text.decode()
            found = bytes(msgspec.json.decode(text, type=dict[str, msgspec.Raw])["payload"])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        assert fits(found, check_bounds) == fits(found)

    @pytest.mark.parametrize(
        "payload",
        [
            b"[1]",
            b'{"number": 1e999}',
            b'{"number": 1E+999}',
            b'{"deep": ' + b"[" * 200 + b"]" * 200 + b"}",
            b'{"large": "' + b"-" * 1_000 + b'"}',
            b'{"$sealed":"k1.AAAAAAAA.' + b"A" * 40 + b'"}',
            blobs.reference(blobs.IN_STORE, b"{}").payload(),
        ],
    )
    def test_such_a_part_is_refused_for_the_same_reasons(self, payload: bytes) -> None:
        with pytest.raises(InvalidPayload) as whole:
            checked_payload(payload, 999)
        with pytest.raises(InvalidPayload) as part:
            checked_json(payload, 999)
        assert (type(whole.value), whole.value.message) == (type(part.value), part.value.message)

    @pytest.mark.parametrize("width", [1, 3, 8, 9])
    @pytest.mark.parametrize("opening", ["[", '{"[": "]]", "a": '])
    def test_depth(self, opening: str, width: int) -> None:
        closing = "]" if opening == "[" else "}"

        def nested(depth: int) -> bytes:
            chain = opening * (depth - 1) + "1" + closing * (depth - 1)
            return ("[" + ", ".join(["[]", *[chain] * width]) + "]").encode()

        check_json(nested(limits.JSON_DEPTH))
        with pytest.raises(TooDeep):
            check_json(nested(limits.JSON_DEPTH + 1))

    def test_what_no_decoder_can_hold_is_too_deep(self) -> None:
        with pytest.raises(TooDeep):
            check_json(b"[" * 100_000 + b"]" * 100_000)

    def test_brackets_in_texts_do_not_count(self) -> None:
        check_json(json.dumps(["[" * 200, '"' + "{" * 200, "\\", "]"] * 50).encode())
        check_json(b"[" + b",".join([b"[]"] * 200) + b"]")

    @pytest.mark.parametrize(
        ("number", "fit"),
        [
            ("1e308", True),
            ("1.7976931348623157e308", True),
            ("1.8e308", False),
            ("1e309", False),
            ("-1E+309", False),
            ("1e00000309", False),
            ("0e999", True),
            ("0.001e310", True),
            ("1e-999", True),
            ("9" * 308, True),
            ("9" * 310 + ".0", False),
            ("9" * 250 + "e99", False),
            ("-" + "9" * 4_299, True),
            ("9" * 4_301, False),
        ],
    )
    def test_numbers_are_in_range(self, number: str, fit: bool) -> None:
        for text in (number, f"[true, {number} ]", f'{{"e999": [1, {number}], "b": false}}'):
            assert fits(text.encode()) == fits_when_built(text.encode()) == fit
        assert fits(json.dumps([number, 1]).encode())

    def test_large_numbers_far_apart(self) -> None:
        padding = "1," * 100_000
        assert fits(f"[{padding}1e308,{padding}1e308]".encode())
        assert not fits(f"[{padding}1e308,{padding}1e309]".encode())

    def test_the_number_of_large_numbers_is_bounded(self) -> None:
        most = limits.LARGE_NUMBERS
        check_json(b"[" + b",".join([b"1e308"] * most) + b"]")
        with pytest.raises(NotJson, match="20,000 very large numbers"):
            check_json(b"[" + b",".join([b"1e308"] * (most + 1)) + b"]")

    @pytest.mark.parametrize(
        "item",
        [
            b"[]",
            b'""',
            b"1",
            b"{}",
            b'"[",[]',
            b"[" * 90 + b"]" * 90,
            b'"1",1e-1',
            b'"\\n\xc3\xa9"',
        ],
    )
    def test_the_memory_it_takes(self, item: bytes) -> None:
        value = b"[" + b",".join([item] * (MEBIBYTE // (len(item) + 1))) + b"]"
        tracemalloc.start()
        try:
            check_json(value)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 4 * MEBIBYTE


class TestBuild:
    @given(values)
    def test_it_is_what_a_decoder_builds(self, value: str) -> None:
        text = value.encode()
        if fits(text):
            assert msgspec.json.encode(build(text)) == msgspec.json.encode(
                msgspec.json.decode(text)
            )
