"""Calls to Redis as they are sent: large ones in pieces."""

from __future__ import annotations

import os

import pytest

from fairlane.engines.redis.calls import Argument, Joined
from fairlane.engines.redis.driver_wire import PIECE_BYTES, pack, pack_in_pieces

SMALL: list[Argument] = ["EVALSHA", "é", 1, b"\0\r\n", -2, 0.5, b""]
LARGE: list[Argument] = [
    *SMALL,
    *(os.urandom(size) for size in (PIECE_BYTES - 1, 2, 3 * PIECE_BYTES, 0, 100)),
    *SMALL,
]


@pytest.mark.parametrize("words", [SMALL, LARGE, [b"x" * PIECE_BYTES * 2]])
def test_pieces_are_the_same_call(words: list[Argument]) -> None:
    (whole,) = pack(*words)
    assert b"".join(pack_in_pieces(words)) == whole


def test_pieces_are_bounded() -> None:
    payload = b"p" * 50_000
    pieces = list(pack_in_pieces(["SET", *[payload] * 100]))
    assert len(pieces) > 10
    assert max(map(len, pieces)) < PIECE_BYTES + len(payload) + 100


def test_values_are_joined_as_one_word() -> None:
    head, rest = b"head", b"r" * PIECE_BYTES
    (whole,) = pack("a", head + rest, 1)
    assert b"".join(pack_in_pieces(["a", Joined(head, rest), 1])) == whole
