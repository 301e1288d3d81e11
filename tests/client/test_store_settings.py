"""Settings of the store that an application names."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from fairlane import Aging, Fairlane, Retention, engines
from fairlane.core.errors import InvalidRetention, InvalidSetting, StoreUnavailable
from fairlane.core.flow import Op
from fairlane.core.store_settings import DEFAULT, StoreSettings
from fairlane.core.tokens import Scope, issued
from tests.fixtures.remote import remote

MONTH = Retention(completed=30 * 86_400.0)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'tasks.db'}"


def settings(url: str) -> StoreSettings:
    with Fairlane(url) as app:
        return app.run_sync(app.backend.ops.settings())


async def test_it_sets_what_it_names_when_it_opens_the_store(url: str) -> None:
    async with Fairlane(url, retention=MONTH) as app:
        await app.stats()
    assert settings(url) == StoreSettings(retention=MONTH, version=1)
    with Fairlane(url, aging=Aging(low_to_medium=30.0)) as other:
        other.stats_sync()
    assert settings(url) == StoreSettings(Aging(low_to_medium=30.0), MONTH, version=2)
    with Fairlane(url, requeue_spread=30) as spreading:
        spreading.stats_sync()
    assert settings(url) == StoreSettings(Aging(low_to_medium=30.0), MONTH, 30.0, version=3)
    with Fairlane(url) as third:
        third.stats_sync()
    assert settings(url).version == 3, "one that names nothing changes nothing"


def test_what_is_set_already_is_not_written_again(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        with Fairlane(url, aging=Aging(), retention=MONTH) as app:
            app.stats_sync()
    with Fairlane(url) as app:
        (entry,) = app.run_sync(app.backend.ops.audit(10)).entries
    assert settings(url).version == 1
    assert entry.actor.startswith("app:")
    assert (entry.action, json.loads(entry.detail)) == (
        "settings.change",
        {"completed": MONTH.completed},
    )
    assert [record.message for record in caplog.records if record.name == "fairlane.store"] == [
        "This process has changed settings of the store: completed from 86400 s to 2.592e+06 s"
    ]


def test_the_last_one_wins(url: str) -> None:
    for days in (30, 10, 30):
        with Fairlane(url, retention=Retention(completed=days * 86_400.0)) as app:
            app.stats_sync()
    assert settings(url) == StoreSettings(retention=MONTH, version=3)


def test_a_bad_value_is_refused_before_anything_is_opened(url: str) -> None:
    with pytest.raises(InvalidRetention, match="completed"):
        Fairlane(url, retention=Retention(completed=0))
    for spread in (-1, float("nan"), "30", 1e6):
        with pytest.raises(InvalidSetting, match="requeue_spread"):
            Fairlane(url, requeue_spread=spread)  # type: ignore[arg-type]
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_an_audit_log_that_cannot_be_written_stops_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise StoreUnavailable("full")

    with Fairlane(url, retention=MONTH, patience=0.5) as app:
        op = app.backend.ops.record([])
        monkeypatch.setattr(app.backend.ops, "record", lambda _: Op(op.name, op.mode, refuse))  # type: ignore[arg-type]
        app.stats_sync()
    assert settings(url).retention == MONTH
    assert "This could not be recorded in the audit log: full" in caplog.text


def test_a_store_of_an_inline_block_has_them_too() -> None:
    app = Fairlane("sqlite:///never-opened.db", aging=Aging(low_to_medium=5.0))
    with app.inline():
        found = app.run_sync(app.backend.ops.settings())
    assert found.aging == Aging(low_to_medium=5.0)


def test_over_a_server_it_takes_the_right_to(url: str, caplog: pytest.LogCaptureFixture) -> None:
    backend = engines.open(url)
    backend.run_sync(backend.ops.migrate())
    secrets = {}
    for scopes in ((Scope.SUBMIT,), (Scope.SUBMIT, Scope.READ), (Scope.READ, Scope.ADMIN)):
        token, secrets[scopes] = issued("-".join(scopes), scopes, None)
        backend.run_sync(backend.ops.put_token(token))
    with remote(backend) as address:
        for scopes, secret in secrets.items():
            caplog.clear()
            with Fairlane(address, token=secret, retention=MONTH) as app:
                app.run_sync(app.backend.ops.verify())
            found = backend.run_sync(backend.ops.settings())
            if Scope.ADMIN in scopes:
                assert found == StoreSettings(retention=MONTH, version=1)
                assert "has changed settings" in caplog.text
            else:
                assert found == DEFAULT
                assert "The store's settings stay as they are" in caplog.text
        (entry,) = backend.run_sync(backend.ops.audit(10)).entries
        assert entry.actor == "read-admin", "the server records it, once"
    backend.driver.close()


def test_the_log_says_never(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), Fairlane(url, aging=Aging(None)) as app:
        app.stats_sync()
    assert "low_to_medium from 600 s to never" in caplog.text
