"""References to blobs: what is one, and what only looks like one."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.core import limits
from fairlane.core.blobs import (
    blob,
    blob_owner,
    drop_blob,
    old_blobs,
    parsed,
    put_blob,
    reference,
    task_id_of,
)
from fairlane.core.errors import BlobDamaged, InvalidPayload, PayloadTooLarge
from fairlane.core.ids import new_id
from fairlane.core.submission import new_form, new_task
from tests.unit.make import SECOND
from tests.unit.shelf import Shelf

PAYLOAD = b'{"text":"words"}'
FOUND = reference("file", PAYLOAD)
FORM = FOUND.payload()


def test_a_reference_is_json_that_says_what_it_refers_to() -> None:
    assert msgspec.json.decode(FORM) == {
        "$blob": {"at": "file", "size": len(PAYLOAD), "sha256": FOUND.sha256}
    }
    assert parsed(FORM) == FOUND


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        PAYLOAD,
        b'{"$blob":1}',
        FORM[:-1],
        FORM + b" ",
        FORM.replace(b'"size":', b'"size":-'),
        FORM.replace(b'"at":"file"', b'"at":"../file"'),
        FORM.replace(FOUND.sha256.encode(), FOUND.sha256.upper().encode()),
        FORM.replace(FOUND.sha256.encode(), FOUND.sha256.encode()[1:]),
        b" " + FORM,
    ],
)
def test_anything_else_is_a_payload_like_any_other(payload: bytes) -> None:
    assert parsed(payload) is None


@pytest.mark.parametrize("content", [b"", PAYLOAD[:-1], PAYLOAD + b" ", PAYLOAD.upper()])
def test_what_is_read_has_to_be_what_was_written(content: bytes) -> None:
    assert FOUND.check(PAYLOAD) == PAYLOAD
    with pytest.raises(BlobDamaged, match="was altered"):
        FOUND.check(content)


def test_a_key_tells_its_task_and_nothing_else_is_a_key() -> None:
    task_id = new_id()
    key = FOUND.key(task_id)
    assert task_id_of(key) == task_id
    for other in ("", task_id, f"{key}.tmp", f".{key}", "notes.txt", key.upper()):
        assert task_id_of(other) is None


def test_at_the_door_only_references_to_folders_are_let_in() -> None:
    """Those come from clients over HTTP."""
    inside = reference("store", PAYLOAD).payload()
    with pytest.raises(InvalidPayload, match="reserved"):
        new_task("work", inside)
    assert new_task("work", FORM).payload == FORM


def test_a_form_takes_as_much_as_it_is_told() -> None:
    form = new_form("work")
    assert form.filled(b"x" * 300_000, 400_000).payload
    with pytest.raises(InvalidPayload, match="at most 400,000"):
        form.filled(b"x" * 400_001, 400_000)


class TestStored:
    """Blobs in the store: chunks that are documents, and a head that lists them."""

    CONTENT = bytes(range(256)) * 8_192

    def test_what_is_put_can_be_read(self) -> None:
        shelf = Shelf()
        assert shelf.run(blob(shelf, "k")) is None
        shelf.run(put_blob(shelf, "k", self.CONTENT))
        assert shelf.run(blob(shelf, "k")) == self.CONTENT
        shelf.run(put_blob(shelf, "k", b"other"))
        assert shelf.run(blob(shelf, "k")) == b"other"
        assert shelf.run(blob(shelf, "l")) is None

    def test_one_that_is_too_large_is_refused(self) -> None:
        shelf = Shelf()
        with pytest.raises(PayloadTooLarge, match="at most"):
            shelf.run(put_blob(shelf, "k", bytes(limits.STORED_BLOB_BYTES + 1)))
        assert shelf.kinds == {}

    def test_one_that_is_not_whole_is_not_there(self) -> None:
        shelf = Shelf()
        shelf.run(put_blob(shelf, "k", self.CONTENT))
        (chunks,) = [kind for kind, found in shelf.kinds.items() if len(found) > 1]
        del shelf.of(chunks)[min(shelf.of(chunks))]
        assert shelf.run(blob(shelf, "k")) is None

    def test_only_old_ones_are_listed_and_dropped(self) -> None:
        shelf = Shelf()
        for key in ("a", "b", "c"):
            shelf.run(put_blob(shelf, key, self.CONTENT))
            shelf.now += 10 * SECOND
        assert shelf.run(old_blobs(shelf, 15.0, 10)).keys == ["a", "b"]
        page = shelf.run(old_blobs(shelf, 15.0, 1))
        assert page.keys == ["a"]
        assert shelf.run(old_blobs(shelf, 15.0, 5, page.after)).keys == ["b"]
        for key in ("a", "c", "nothing"):
            shelf.run(drop_blob(shelf, key, 15.0))
        assert shelf.run(blob(shelf, "a")) is None
        assert shelf.run(blob(shelf, "b")) == shelf.run(blob(shelf, "c")) == self.CONTENT
        shelf.now += 60 * SECOND
        for key in ("b", "c"):
            shelf.run(drop_blob(shelf, key, 15.0))
        assert not any(shelf.kinds.values())

    def test_a_store_has_one_owner(self) -> None:
        shelf = Shelf()
        assert shelf.run(blob_owner(shelf)) == shelf.run(blob_owner(shelf))
        assert shelf.run(blob_owner(shelf)) != Shelf().run(blob_owner(Shelf()))
