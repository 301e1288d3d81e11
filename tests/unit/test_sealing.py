"""Keys, and the form that sealed values have."""

from base64 import b64encode, urlsafe_b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core import sealing
from fairlane.core.errors import InvalidKey, KeyMissing, SealBroken
from fairlane.core.sealing import Key, check_open, keys_of, new_key, parsed
from fairlane.engines.sealing.driver import Keyring, Part
from tests.unit.make import quick

A, B = Key("a", b"\xff" * 32), Key("b", b"\xfe" * 32)


def test_keys_are_given_as_text_or_one_by_one() -> None:
    assert keys_of([A.text, B]) == keys_of(f" {A.text},\n{B.text}, ") == (A, B)
    assert keys_of(f"a:{urlsafe_b64encode(A.secret).decode()}") == (A,)
    assert keys_of("") == keys_of([]) == keys_of([""]) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        b64encode(A.secret).decode(),
        f":{b64encode(A.secret).decode()}",
        f"a.b:{b64encode(A.secret).decode()}",
        f"{'a' * 41}:{b64encode(A.secret).decode()}",
        "a:SECRET",
        "a:SECRET!=",
        f"a:{b64encode(b'SECRET' * 4).decode()}",
        7,
        None,
        b"a:SECRET",
    ],
)
def test_what_is_no_key_is_refused_without_being_told(wrong: object) -> None:
    with pytest.raises(InvalidKey) as refused:
        keys_of([wrong])  # type: ignore[list-item]
    assert "SECRET" not in refused.value.message
    assert b64encode(A.secret).decode() not in refused.value.message


def test_two_keys_by_one_id_are_refused() -> None:
    with pytest.raises(InvalidKey, match="Two encryption keys have the id a"):
        keys_of([A, Key("a", B.secret)])


def test_a_key_does_not_show_its_secret() -> None:
    assert repr(A) == str([A])[1:-1] == "<Key a>"
    assert A.check != B.check
    assert A.check not in b64encode(A.secret)


def test_new_keys_are_random_and_their_ids_tell_their_age() -> None:
    first, second = new_key(), new_key()
    assert first.secret != second.secret
    assert first.id <= second.id
    assert keys_of(first.text) == (first,)


@quick
@given(st.binary(max_size=300), st.text(max_size=20))
def test_what_was_sealed_opens(plain: bytes, owner: str) -> None:
    ring = Keyring([A])
    value = ring.seal(Part.PAYLOAD, owner, plain)
    assert isinstance(msgspec.json.decode(value)["$sealed"], str)
    assert ring.open(Part.PAYLOAD, owner, value) == plain
    assert ring.seal(Part.PAYLOAD, owner, plain) != value


def test_the_first_key_seals_and_every_key_opens() -> None:
    old, new = (
        Keyring([A]).seal(Part.RESULT, "1", b"7"),
        Keyring([B, A]).seal(Part.RESULT, "1", b"7"),
    )
    assert Keyring([B, A]).open(Part.RESULT, "1", old) == b"7"
    assert Keyring([B]).open(Part.RESULT, "1", new) == b"7"
    assert Keyring([B]).open(Part.RESULT, "1", old) == old


def test_a_key_that_has_only_the_id_is_another_key() -> None:
    value = Keyring([A]).seal(Part.RESULT, "1", b"7")
    assert Keyring([Key("a", B.secret)]).open(Part.RESULT, "1", value) == value
    with pytest.raises(KeyMissing, match="encryption key a"):
        check_open(value)


@pytest.mark.parametrize(("part", "owner"), [(Part.RESULT, "1"), (Part.PAYLOAD, "2")])
def test_it_opens_nowhere_else(part: Part, owner: str) -> None:
    ring = Keyring([A])
    elsewhere = ring.open(part, owner, ring.seal(Part.PAYLOAD, "1", b"7"))
    assert msgspec.json.decode(elsewhere)["$broken"] is True
    with pytest.raises(SealBroken):
        check_open(elsewhere)


def test_every_byte_of_it_counts() -> None:
    ring = Keyring([A])
    value = ring.seal(Part.PAYLOAD, "1", b"{}")
    start = value.rindex(b".") + 1
    for place in range(start, len(value) - 2):
        changed = bytes([value[place] ^ 1])
        answer = ring.open(Part.PAYLOAD, "1", value[:place] + changed + value[place + 1 :])
        assert answer != b"{}"
    for short in (value[:start] + b'"}', value[:start] + b'AAAA"}'):
        with pytest.raises(SealBroken):
            check_open(ring.open(Part.PAYLOAD, "1", short))


@pytest.mark.parametrize(
    "value",
    [
        b"{}",
        b"null",
        b'{"$sealed":1}',
        b'{"$sealed":"mine"}',
        b'{"$sealed":"a.12345678"}',
        b'{"$sealed":"a.12345678.AAAA","more":"AAAA"}',
        b'{"$sealed":"a.12345678.AAAA',
        b'{"sealed":"a.12345678.AAAA"}',
    ],
)
def test_what_only_looks_like_it_is_left_alone(value: bytes) -> None:
    assert parsed(value) is None
    check_open(value)
    assert Keyring([A]).open(Part.PAYLOAD, "1", value) == value


def test_digests_stay_while_keys_are_added_and_change_places() -> None:
    hash = b"0123456789abcdef"
    rings = [Keyring(keys) for keys in ([A], [A, B], [B, A])]
    assert {ring.digest(hash) for ring in rings} == {Keyring([A]).digest(hash)}
    assert len(Keyring([A]).digest(hash)) == len(hash)
    assert len({hash, Keyring([A]).digest(hash), Keyring([B]).digest(hash)}) == 3


def test_the_mark_of_what_is_broken_is_part_of_the_form() -> None:
    value = sealing.broken(sealing.sealed(A, A.check, b"box"))
    found = parsed(value)
    assert found is not None
    assert found.broken
    assert Keyring([A]).open(Part.RESULT, "1", value) == value
    assert msgspec.json.decode(value).keys() == {"$sealed", "$broken"}


@pytest.mark.parametrize("body", [b"", b"AAAA", b"A" * 36, b"A" * 39, b"secret words" * 4])
def test_what_no_key_could_open_is_broken_and_not_sealed(body: bytes) -> None:
    value = b'{"$sealed":"a.12345678.%b"}' % body
    with pytest.raises(SealBroken):
        check_open(value)
    if len(body) < 40:
        assert not sealing.is_sealed(value)


def test_what_another_key_sealed_is_sealed() -> None:
    value = sealing.sealed(A, A.check, b"n" * 12 + b"t" * 16)
    assert sealing.is_sealed(value)
    assert not sealing.is_sealed(b"{}")
    assert not sealing.is_sealed(b'{"$sealed":"mine"}')
    with pytest.raises(KeyMissing, match=A.id):
        check_open(value)
