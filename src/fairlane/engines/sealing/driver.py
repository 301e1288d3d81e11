"""AES-256-GCM over values that belong to something by name."""

from __future__ import annotations

import binascii
import os
from collections.abc import Sequence
from enum import Enum
from hashlib import blake2b

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fairlane.core import sealing
from fairlane.core.sealing import KEY_BYTES, Key

_NONCE_BYTES = 12


class Part(Enum):
    """What a value is to whatever it belongs to."""

    PAYLOAD = b"payload"
    RESULT = b"result"
    SCHEDULE = b"schedule"
    BLOB = b"blob"


class Keyring:
    """Seals with the first key, opens with any of them.

    Every value has a key of its own, derived from the part it is and the id of the task (or
    schedule) it belongs to. So it opens nowhere else, and a random nonce cannot repeat under one
    key however many tasks there are.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self._first = keys[0]
        self._first_check = keys[0].check
        self._secrets = {(key.id, key.check): key.secret for key in keys}
        # Of the key whose id comes first by the alphabet, not of the first in the list: it stays
        # the same while keys are added and change places.
        oldest = min(keys, key=lambda key: key.id)
        self._digest_secret = _derived(oldest.secret, b"fairlane digest")

    def seal(self, part: Part, owner: str, plain: bytes) -> bytes:
        """A value as it is stored."""
        nonce = os.urandom(_NONCE_BYTES)
        about = _about(part, owner)
        cipher = AESGCM(_derived(self._first.secret, about))
        box = nonce + cipher.encrypt(nonce, plain, about)
        return sealing.sealed(self._first, self._first_check, box)

    def open(self, part: Part, owner: str, value: bytes) -> bytes:
        """A stored value as it was; as it is when it is not sealed, or with a key not known here.

        What was altered, or taken from elsewhere, is marked as broken.
        """
        found = sealing.parsed(value)
        if found is None or found.broken:
            return value
        secret = self._secrets.get((found.key_id, found.check))
        if secret is None:
            return value
        about = _about(part, owner)
        try:
            box = binascii.a2b_base64(found.body, strict_mode=True)
            cipher = AESGCM(_derived(secret, about))
            return cipher.decrypt(box[:_NONCE_BYTES], box[_NONCE_BYTES:], about)
        except (InvalidTag, ValueError):
            return sealing.broken(value)

    def seal_blob(self, key: str, plain: bytes) -> bytes:
        """A blob as it is stored."""
        return self.seal(Part.BLOB, key, plain)

    def open_blob(self, key: str, value: bytes) -> bytes:
        """A stored blob as it was, or as `open` returns it."""
        return self.open(Part.BLOB, key, value)

    def digest(self, hash: bytes) -> bytes:
        """A hash that says nothing to those who have no key, even of what is easily guessed."""
        return blake2b(hash, key=self._digest_secret, digest_size=len(hash)).digest()

    def digest_with_key(self, hash: bytes) -> bytes:
        """The same, but another one with another first key: what is declared again and again is
        stored again, and so sealed with that key."""
        return self.digest(hash + self._first_check)


def _about(part: Part, owner: str) -> bytes:
    return b"fairlane %b %b" % (part.value, owner.encode())


def _derived(secret: bytes, about: bytes) -> bytes:
    return blake2b(about, key=secret, digest_size=KEY_BYTES).digest()
