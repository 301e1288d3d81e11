"""The built-in handlers as tasks of an application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import pytest

from fairlane import handlers
from fairlane.client.app import Fairlane
from fairlane.core.errors import InvalidArguments
from fairlane.core.scheduling.types import BUILT_IN
from fairlane.core.states import State
from fairlane.handlers import InvalidSetting, MailSettings, Settings, WebhookSettings
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker
from tests.handlers.kit import answer, site
from tests.handlers.office import office

LOCAL = WebhookSettings(allow_http=True, networks=(ip_network("127.0.0.0/8"),))


@pytest.fixture
async def app() -> AsyncIterator[Fairlane]:
    """An application with the built-in handlers, and a worker for them."""
    async with working(Settings(webhook=LOCAL)) as app:
        yield app


@asynccontextmanager
async def working(settings: Settings) -> AsyncIterator[Fairlane]:
    async with Fairlane("sqlite://") as app:
        handlers.register(app, settings)
        worker = Worker(app, Config(poll_interval=0.02))
        running = asyncio.create_task(worker.run(signals=False))
        yield app
        worker.stop()
        await running


async def test_echo(app: Fairlane) -> None:
    payload = {"a": [1, {"b": None}], "name": "ü", "x y": 1.5}
    handle = await app.tasks["echo"].submit(**payload)
    assert await handle.result(30) == payload


async def test_sleep(app: Fairlane) -> None:
    handle = await app.tasks["sleep"].submit(seconds=0.01)
    assert await handle.result(30) == {"slept": 0.01}
    for seconds in (-1, "long", None):
        with pytest.raises(InvalidArguments):
            await app.tasks["sleep"].submit(seconds=seconds)


async def test_webhook(app: Fairlane) -> None:
    async with site(answer(200, b"ok")) as server:
        url = f"http://127.0.0.1:{server.port}/"
        handle = await app.tasks["webhook"].submit(url=url, body=[1], headers={"A": "b"})
        assert await handle.result(30) == {"status": 200, "body": "ok"}
    assert server.headers["idempotency-key"] == handle.task_id


async def test_a_webhook_that_is_refused_is_not_tried_again(app: Fairlane) -> None:
    handle = await app.tasks["webhook"].submit(url="http://[::1]/")
    task = await app.ended(handle.task_id)
    assert task is not None
    assert (task.status, task.attempt) == (State.FAILED, 1)
    assert task.error is not None
    assert task.error.code == "WEBHOOK_REFUSED"


@pytest.mark.parametrize(
    "payload", [{}, {"url": 1}, {"url": "x", "method": "HEAD"}, {"url": "x", "timeout": 0}]
)
async def test_webhook_payloads_are_checked(app: Fairlane, payload: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        await app.tasks["webhook"].submit(**payload)


async def test_email() -> None:
    async with office() as server, working(Settings(mail=server.settings())) as app:
        handle = await app.tasks["email"].submit(to="a@example.com", subject="Hi", text="Ho")
        result = await handle.result(30)
        assert result == {"message_id": f"<{handle.task_id}@example.org>", "refused": []}
        assert server.message()["Subject"] == "Hi"


def test_email_is_there_if_there_is_a_server() -> None:
    without, with_mail = Fairlane("sqlite://"), Fairlane("sqlite://")
    handlers.register(without, Settings())
    handlers.register(with_mail, Settings(mail=MailSettings(host="h", sender="a@example.com")))
    assert set(without.tasks) == {"echo", "sleep", "webhook"}
    assert set(with_mail.tasks) == {"echo", "sleep", "webhook", "email"}


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.from_environment({}) == Settings()
    assert Settings.from_environment(
        {
            "FAIRLANE_WEBHOOK_ALLOW_HTTP": "yes",
            "FAIRLANE_WEBHOOK_NETWORKS": "10.0.0.0/8, fd00::/8",
            "FAIRLANE_WEBHOOK_TIMEOUT": "5",
            "FAIRLANE_SMTP_HOST": "mail.example.com",
            "FAIRLANE_SMTP_SENDER": "a@example.com",
            "FAIRLANE_SMTP_SECURITY": "tls",
            "FAIRLANE_SMTP_PORT": "2465",
            "FAIRLANE_SMTP_USERNAME": "u",
            "FAIRLANE_SMTP_PASSWORD": "p",
        }
    ) == Settings(
        webhook=WebhookSettings(
            allow_http=True,
            networks=(ip_network("10.0.0.0/8"), ip_network("fd00::/8")),
            timeout=5.0,
        ),
        mail=MailSettings(
            host="mail.example.com",
            sender="a@example.com",
            security="tls",
            port=2465,
            username="u",
            password="p",
        ),
    )
    monkeypatch.setenv("FAIRLANE_SMTP_HOST", "mail.example.com")
    monkeypatch.setenv("FAIRLANE_SMTP_SENDER", "a@example.com")
    app = Fairlane("sqlite://")
    handlers.register(app)
    assert "email" in app.tasks


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("FAIRLANE_WEBHOOK_ALLOW_HTTP", "perhaps"),
        ("FAIRLANE_WEBHOOK_NETWORKS", "10.0.0.1/8"),
        ("FAIRLANE_WEBHOOK_TIMEOUT", "-1"),
        ("FAIRLANE_WEBHOOK_TIMEOUT", "inf"),
        ("FAIRLANE_SMTP_PORT", "smtp"),
        ("FAIRLANE_SMTP_SENDER", ""),
    ],
)
def test_settings_that_cannot_be_are_named(variable: str, text: str) -> None:
    mail = {"FAIRLANE_SMTP_HOST": "mail.example.com", "FAIRLANE_SMTP_SENDER": "a@example.com"}
    with pytest.raises(InvalidSetting, match=variable):
        Settings.from_environment({**mail, variable: text})


def test_schedules_know_the_built_in_types() -> None:
    app = Fairlane("sqlite://")
    handlers.register(app, Settings(mail=MailSettings(host="localhost", sender="a@example.com")))
    assert set(app.tasks) == BUILT_IN
