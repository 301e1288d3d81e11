"""Sealed values: payloads, results and schedules as a store holds them when there are keys.

    {"$sealed":"<key id>.<key check>.<base64 of nonce and ciphertext>"}

It is JSON like any other, so every engine stores it and everyone who has no key can still look at
it. The check tells whether a key by this id is the one it was sealed with: a key that is not here
is a matter of settings, and must never look like damage. What a reader with the right key could not
open carries a mark of that, `"$broken":true`, which is never stored.

This is the form and the keys; how values are sealed is in `fairlane.engines.sealing`.
"""

from __future__ import annotations

import binascii
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from fairlane.core.errors import InvalidKey, InvalidPayload, KeyMissing, SealBroken

KEY_BYTES: Final = 32

_OPENING: Final = b'{"$sealed":"'
_CLOSING: Final = b'"}'
_CLOSING_BROKEN: Final = b'","$broken":true}'
_HEAD: Final = re.compile(rb'\{"\$sealed":"([A-Za-z0-9_-]{1,40})\.([A-Za-z0-9_-]{8})\.')
_LEAST: Final = 40
"""The length of the shortest body: nonce (12 bytes) and tag (16 bytes) in base64."""
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_BETWEEN: Final = re.compile(r"[\s,]+")
_URL_SAFE: Final = str.maketrans("-_", "+/")


class Key(msgspec.Struct, frozen=True):
    """A key by its id. The secret is not shown."""

    id: str
    secret: bytes

    @property
    def check(self) -> bytes:
        """Tells this key from others by the same id, and nothing else about it."""
        digest = blake2b(self.secret, digest_size=6, person=b"fairlane key id").digest()
        return urlsafe_b64encode(digest)

    @property
    def text(self) -> str:
        """The key as it stands in settings."""
        return f"{self.id}:{b64encode(self.secret).decode()}"

    def __repr__(self) -> str:
        return f"<Key {self.id}>"


def new_key() -> Key:
    """Return a random key, by the time it was made: ids that grow tell which one is the oldest."""
    return Key(datetime.now(UTC).strftime("k%Y%m%d-%H%M%S"), os.urandom(KEY_BYTES))


def keys_of(given: str | Iterable[str | Key]) -> tuple[Key, ...]:
    """Keys as they are given, the one that seals first. A text lists them with commas or spaces."""
    items = _BETWEEN.split(given.strip(" \t\r\n,")) if isinstance(given, str) else given
    keys = tuple(_key_of(item) for item in items if item != "")
    repeated = {key.id for key in keys if [other.id for other in keys].count(key.id) > 1}
    if repeated:
        raise InvalidKey(
            f"Two encryption keys have the id {min(repeated)}: give each an id of its own."
        )
    return keys


def _key_of(given: object) -> Key:
    # The message shows nothing of what was given: it may be a misplaced secret.
    if isinstance(given, Key):
        return given
    if not isinstance(given, str):
        raise InvalidKey
    id, colon, encoded = given.strip().partition(":")
    if not colon or not _ID.fullmatch(id):
        raise InvalidKey
    try:
        secret = binascii.a2b_base64(encoded.translate(_URL_SAFE), strict_mode=True)
    except ValueError:
        raise InvalidKey(f"The encryption key {id} is not valid base64.") from None
    if len(secret) != KEY_BYTES:
        raise InvalidKey(f"The encryption key {id} has {len(secret)} bytes, not {KEY_BYTES}.")
    return Key(id, secret)


class Sealed(NamedTuple):
    """What a sealed value says of itself. `body` is base64."""

    key_id: str
    check: bytes
    body: bytes
    broken: bool


def sealed(key: Key, check: bytes, box: bytes) -> bytes:
    """Return the form in which a box (nonce and ciphertext) is stored."""
    return b"%b%b.%b.%b%b" % (_OPENING, key.id.encode(), check, b64encode(box), _CLOSING)


def parsed(value: bytes) -> Sealed | None:
    """Return what a value says of itself if it is sealed; None for all others."""
    head = _HEAD.match(value)
    if head is None:
        return None
    end = value.find(b'"', head.end())
    tail = value[end:]
    if end == -1 or tail not in {_CLOSING, _CLOSING_BROKEN}:
        return None
    key_id, check = head.groups()
    return Sealed(key_id.decode(), check, value[head.end() : end], tail == _CLOSING_BROKEN)


def is_sealed(value: bytes) -> bool:
    """Return whether a value has the form of a sealed one."""
    # First what costs next to nothing: every payload and result passes here.
    if not value.startswith(_OPENING):
        return False
    found = parsed(value)
    return found is not None and len(found.body) >= _LEAST


def check_reserved(payload: bytes) -> None:
    """Raise InvalidPayload for a payload that somebody submits in the form of a sealed one."""
    if payload.startswith(_OPENING) and parsed(payload) is not None:
        raise InvalidPayload(
            'A payload of the form {"$sealed": …} is reserved for payloads that Fairlane has '
            "sealed: this one could never be opened. Submit what is in it, or use another key."
        )


def broken(value: bytes) -> bytes:
    """Return a sealed value that the right key does not open, for readers."""
    return value.removesuffix(_CLOSING) + _CLOSING_BROKEN


def check_open(value: bytes) -> None:
    """Raise KeyMissing or SealBroken for what is still sealed when it is to be used.

    What no key could ever open is broken, whatever key it names.
    """
    # First what costs next to nothing: every payload passes here, in stores without keys as well.
    if not value.startswith(_OPENING) or (found := parsed(value)) is None:
        return
    if found.broken or not _is_whole(found.body):
        raise SealBroken
    raise KeyMissing(
        f"This was sealed with the encryption key {found.key_id}, which is not among those given "
        "here: add it to encryption_keys."
    )


def _is_whole(body: bytes) -> bool:
    try:
        binascii.a2b_base64(body, strict_mode=True)
    except ValueError:
        return False
    return len(body) >= _LEAST
