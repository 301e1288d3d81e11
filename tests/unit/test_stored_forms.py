"""Results that look like what a store holds."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.core.compression import is_compressed, stored_form
from fairlane.core.sealing import Key, is_sealed, sealed
from fairlane.core.stored_forms import plain

OURS = [
    stored_form(b"data"),
    sealed(Key("k1", b"1" * 32), b"AAAAAAAA", b"1" * 40),
    b'{"$zstd":1}',
    b'{"$blob":{"at":"file"}}',
    b'{"$codec":"msgpack","data":1}',
]


@pytest.mark.parametrize("value", OURS)
def test_they_stay_the_same_value_and_look_like_nothing_else(value: bytes) -> None:
    safe = plain(value)
    assert msgspec.json.decode(safe) == msgspec.json.decode(value)
    assert not is_compressed(safe)
    assert not is_sealed(safe)
    assert plain(safe) == safe


@pytest.mark.parametrize("value", [b"null", b'{"a":1}', b'{"$ref":1}', b'"$zstd"', b"{}"])
def test_all_others_stay_byte_for_byte(value: bytes) -> None:
    assert plain(value) is value


def test_what_a_codec_may_have_made_says_so() -> None:
    value = b'{"$codec":"msgpack","data":1}'
    assert plain(value, codec=True) is value
