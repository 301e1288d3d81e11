"""What a store says about plain text, and who may change that."""

from typing import Any

import msgspec
import pytest

from fairlane.core import blobs, encryption, scheduling, sealing
from fairlane.core.encryption import Encryption
from fairlane.core.errors import EncryptionRequired
from fairlane.core.flow import Op
from fairlane.core.recurrence import every
from fairlane.core.schedules import new_schedule
from fairlane.core.sealing import Key
from fairlane.core.submission import new_task
from tests.unit.shelf import Shelf, once

KEY = Key("k1", b"1" * 32)
SEALED = sealing.sealed(KEY, KEY.check, b"n" * 12 + b"t" * 16)
REQUIRED, OPTIONAL, UNDECIDED = Encryption.REQUIRED, Encryption.OPTIONAL, Encryption.UNDECIDED


def test_the_last_word_counts() -> None:
    shelf = Shelf()

    def say(wanted: Encryption, *, unless_decided: bool = False) -> Encryption:
        op = encryption.set_encryption(shelf, wanted, unless_decided=unless_decided)
        answer = shelf.run(op)
        assert shelf.run(encryption.encryption(shelf)) is answer
        return answer

    assert shelf.run(encryption.encryption(shelf)) is UNDECIDED
    assert say(REQUIRED, unless_decided=True) is REQUIRED
    assert say(OPTIONAL, unless_decided=True) is REQUIRED
    assert say(OPTIONAL) is OPTIONAL
    assert say(REQUIRED, unless_decided=True) is OPTIONAL
    assert say(REQUIRED) is REQUIRED
    assert say(UNDECIDED) is UNDECIDED


def test_of_two_who_say_something_at_once_the_second_looks_again() -> None:
    shelf = Shelf()
    other = encryption.set_encryption(shelf, OPTIONAL)
    shelf.interfere = once(lambda: shelf.run(other))
    op = encryption.set_encryption(shelf, REQUIRED, unless_decided=True)
    assert shelf.run(op) is OPTIONAL


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (SEALED, False),
        (b"{}", True),
        (b'{"$sealed":"looks like it","but":"is not"}', True),
        (SEALED.replace(b'":"', b'": "'), True),
    ],
)
def test_what_is_plain(value: bytes, plain: bool) -> None:
    task = msgspec.structs.replace(new_task("work"), payload=value)
    assert encryption.has_plain_payload([task]) is plain
    assert encryption.has_plain_payload([]) is False
    assert encryption.has_plain_result([value]) is plain
    assert encryption.has_plain_result([None, b"null", SEALED, value]) is plain
    assert encryption.has_plain_result([None, b"null", SEALED]) is False


@pytest.mark.parametrize("value", [SEALED, b"{}"])
def test_schedules_and_blobs_in_plain_text_are_refused_where_encryption_is_required(
    value: bytes,
) -> None:
    shelf = Shelf()
    daily = new_schedule("daily", every(86_400), new_task("work"))
    ops: list[Op[Any]] = [
        scheduling.put_schedules(shelf, [msgspec.structs.replace(daily, payload=value)]),
        blobs.put_blob(shelf, "key", value),
    ]
    for op in ops:
        shelf.run(op)
    shelf.run(encryption.set_encryption(shelf, REQUIRED))
    for op in ops:
        if value == SEALED:
            shelf.run(op)
        else:
            with pytest.raises(EncryptionRequired):
                shelf.run(op)
