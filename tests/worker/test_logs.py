"""Log lines on their way from a child to its worker."""

from __future__ import annotations

import logging
import os

import pytest

from fairlane.worker import logs
from fairlane.worker.messages import Logged


def record(message: str = "good day") -> logging.LogRecord:
    return logging.LogRecord("shop", logging.WARNING, "shop.py", 7, message, (), None, "sell")


def test_a_line_arrives_as_it_was_said(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Logged] = []
    said = record()
    logs._Sender(sent.append).handle(said)
    logs.log(sent[0])
    (heard,) = caplog.records
    for name in ("name", "levelno", "pathname", "lineno", "funcName", "created", "process"):
        assert getattr(heard, name) == getattr(said, name)
    assert heard.getMessage() == "good day"


def test_levels_of_the_worker_hold(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "shop")
    assert logs.levels()["shop"] == logging.ERROR
    sent: list[Logged] = []
    logs._Sender(sent.append).handle(record())
    logs.log(sent[0])
    assert caplog.records == []


def test_without_a_line_to_the_worker_it_goes_to_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: Logged) -> None:
        raise BrokenPipeError

    logs._Sender(gone).handle(record("the worker has left"))
    sent: list[Logged] = []
    sender = logs._Sender(sent.append)
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a fork of the child
    sender.handle(record("forked"))
    assert sent == []
    assert capsys.readouterr().err == "the worker has left\nforked\n"


def test_an_application_s_own_logging_is_left_alone() -> None:
    before = logging.root.handlers[:]
    assert before  # as pytest has it
    logs.send_to_worker(lambda _: None, {"": logging.CRITICAL})
    assert logging.root.handlers == before
