"""Whether a store holds encrypted values only.

A store that somebody uses with encryption keys must not fill up with plain text because another
process lacks the keys. So the store says that it requires encryption: it then refuses payloads,
results, schedules and blobs in plain text. What was stored before stays as it is.

The first process that opens the store with keys says so. An operator can permit plain text: before
all processes have the keys, or because encryption is given up. That stays until an operator changes
it: no process undoes it.

Engines check payloads and results in the call that stores them, and only if there is plain text
among them: with keys this costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from fairlane.core import sealing
from fairlane.core.documents import Document, Documents, rewrites, write
from fairlane.core.errors import EncryptionRequired
from fairlane.core.flow import Flow, reads
from fairlane.core.model import NewTask

ENCRYPTION: Final = "encryption"
"""The kind of the documents."""
REQUIRED: Final = "required"
"""The id of the document that is there while encryption is required: engines need no value."""
_SAID: Final = "said"
"""The id of the document that says what holds. Every change writes it, so that of two changes at
once the second begins again."""


class Encryption(StrEnum):
    """What a store says about plain text."""

    UNDECIDED = "undecided"
    """Nobody has used it with keys yet. Plain text is accepted."""
    REQUIRED = "required"
    OPTIONAL = "optional"
    """An operator has permitted plain text."""


_NOTHING: Final = b"null"


def has_plain_payload(tasks: Iterable[NewTask]) -> bool:
    """Return whether a payload among these is not encrypted."""
    return any(not sealing.is_sealed(task.payload) for task in tasks)


def has_plain_result(results: Iterable[bytes | None]) -> bool:
    """Return whether a result among these is not encrypted. A handler that returns nothing has
    none."""
    return any(
        result is not None and result != _NOTHING and not sealing.is_sealed(result)
        for result in results
    )


def refuse_plain(self: Documents) -> Flow[None]:
    """Raise EncryptionRequired if the store does not accept plain text."""
    _, (required,) = yield from self.read_documents(ENCRYPTION, [REQUIRED])
    if required is not None:
        raise EncryptionRequired


# Operations, see `store`.


@reads
def encryption(self: Documents) -> Flow[Encryption]:
    _, (said,) = yield from self.read_documents(ENCRYPTION, [_SAID])
    return _encryption_of(said)


@rewrites
def set_encryption(
    self: Documents, wanted: Encryption, *, unless_decided: bool = False
) -> Flow[Encryption]:
    now, (said, required) = yield from self.read_documents(ENCRYPTION, [_SAID, REQUIRED])
    found = _encryption_of(said)
    if found is wanted or (unless_decided and found is not Encryption.UNDECIDED):
        return found
    puts = [Document(_SAID, wanted.encode(), now, version=0 if said is None else said.version)]
    drops = [] if required is None else [required]
    if wanted is Encryption.REQUIRED:
        puts.append(Document(REQUIRED, b"", now))
    yield from write(self, ENCRYPTION, puts, drops)
    return wanted


def _encryption_of(said: Document | None) -> Encryption:
    return Encryption.UNDECIDED if said is None else Encryption(said.value.decode())
