"""The form of compressed results."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.core.compression import (
    check_expanded,
    compression_limit,
    damaged,
    data_of,
    is_compressed,
    stored_form,
)
from fairlane.core.errors import DriverMissing, InvalidLimit, ResultDamaged


def test_it_is_json_and_comes_back() -> None:
    stored = stored_form(b"\x00\xff data")
    assert msgspec.json.decode(stored) == {"$zstd": "AP8gZGF0YQ=="}
    assert is_compressed(stored)
    assert data_of(stored) == b"\x00\xff data"


@pytest.mark.parametrize("value", [b"null", b'{"a":1}', b'{"$zstd": "AAAA"}', b'"$zstd"'])
def test_everything_else_is_plain(value: bytes) -> None:
    assert not is_compressed(value)
    check_expanded(value)


@pytest.mark.parametrize("value", [b'{"$zstd":"AAAA"', b'{"$zstd":"A"}', b'{"$zstd":"A\\u"}'])
def test_what_is_damaged_is_shown_as_json_and_cannot_be_used(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        data_of(value)
    shown = damaged(value)
    assert msgspec.json.decode(shown)["$broken"] is True
    with pytest.raises(ResultDamaged, match="Replay"):
        check_expanded(shown)


def test_what_is_still_compressed_needs_the_library() -> None:
    with pytest.raises(DriverMissing, match="pip install"):
        check_expanded(stored_form(b"data"))


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "64"])
def test_the_size_is_checked(wrong: object) -> None:
    assert compression_limit(65_536) == 65_536
    with pytest.raises(InvalidLimit, match="number of bytes"):
        compression_limit(wrong)
