"""References to blobs: what is one, and what only looks like one."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.core.blobs import parsed, reference, task_id_of
from fairlane.core.errors import BlobDamaged, InvalidPayload
from fairlane.core.ids import new_id
from fairlane.core.submission import new_form, new_task

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
