"""An application with keys lets its store require encryption."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NoReturn

import pytest

from fairlane import Fairlane, engines
from fairlane.core.encryption import Encryption
from fairlane.core.errors import EncryptionRequired, StoreReadOnly
from fairlane.core.flow import Mode, Op
from fairlane.core.sealing import Key
from tests.fixtures.remote import remote

KEY = Key("k1", b"1" * 32)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'tasks.db'}"


def writing(url: str, **options: object) -> Fairlane:
    app = Fairlane(url, **options)  # type: ignore[arg-type]

    @app.task(name="note")
    def note(text: str) -> str:
        return text

    return app


def test_a_process_without_keys_is_refused_once_another_had_them(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with writing(url) as early, caplog.at_level(logging.WARNING, "fairlane.store"):
        early.submit_sync(early.tasks["note"].prepare("before"))
        for _ in range(2):
            with writing(url, encryption_keys=(KEY,)) as knowing:
                knowing.submit_sync(knowing.tasks["note"].prepare("sealed"))
        # It was open before, and has not heard of the keys.
        with pytest.raises(EncryptionRequired, match="encryption_keys"):
            early.submit_sync(early.tasks["note"].prepare("after"))
        (entry,) = early.run_sync(early.backend.ops.audit(10)).entries
        assert len(early.list_sync().tasks) == 3
    assert (entry.action, entry.detail) == ("settings.encryption", '{"encryption":"required"}')
    assert [record.message for record in caplog.records if "requires encryption" in record.message]
    assert len(caplog.records) == 1


def test_a_store_that_can_only_be_read_is_read_with_keys(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writing(url) as app:
        app.submit_sync(app.tasks["note"].prepare("before"))

    def refuse() -> NoReturn:
        raise StoreReadOnly

    with writing(url, encryption_keys=(KEY,), patience=1.0) as reading:
        readonly: Op[Encryption] = Op("set_encryption", Mode.WRITE, refuse)
        monkeypatch.setattr(reading.backend.ops, "set_encryption", lambda *_, **__: readonly)
        assert len(reading.list_sync().tasks) == 1


async def test_a_server_without_keys_refuses_what_is_submitted_over_http(url: str) -> None:
    backend = engines.open(url)
    await backend.run(backend.ops.migrate())
    await backend.run(backend.ops.set_encryption(Encryption.REQUIRED))
    with remote(backend) as address:
        async with writing(address) as app:
            with pytest.raises(EncryptionRequired, match="encryption_keys"):
                await app.submit(app.tasks["note"].prepare("plain"))
    await backend.driver.aclose()
