"""Transitions that are logged many at once: as if each had been logged by itself."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from fairlane.cli.trouble import scrubbed
from fairlane.core.ids import new_id
from fairlane.core.model import Claimed, Spec
from fairlane.telemetry import transitions
from fairlane.telemetry.bulk import Teller
from fairlane.telemetry.logs import JsonFormatter
from tests.unit.make import claimed

SECRET = "fl_" + "S" * 40
NIL = "00000000-0000-0000-0000-000000000000"


def plain(**fields: Any) -> Claimed:
    return claimed(task_id=new_id(), **fields)


BATCHES: dict[str, Callable[[], list[Claimed]]] = {
    "alike": lambda: [plain() for _ in range(10)],
    "of several kinds, by turns": lambda: [
        plain(
            type=f"type{number % 3}", queue=f"queue{number % 2}", attempt=number % 4, level=number
        )
        for number in range(12)
    ],
    "of many kinds": lambda: [plain(type=f"type{number}") for number in range(1_500)],
    "with traces of their own": lambda: [
        plain(spec=Spec(trace_id=f'a "quoted" \\ {SECRET} {number % 2}')) for number in range(8)
    ],
    "some with a trace": lambda: [
        plain(spec=Spec(trace_id="abc") if number % 3 else Spec()) for number in range(8)
    ],
    "with a secret for a type": lambda: [plain(type=SECRET) for _ in range(8)],
    "whose type looks like an id": lambda: [plain(type=f"a{NIL}") for _ in range(8)],
    "whose worker looks like a trace": lambda: [
        plain(worker_id=NIL.replace("-", "")) for _ in range(8)
    ],
    "whose ids are none": lambda: [claimed(task_id=f'"\n\u2028{number}') for number in range(8)],
    "few": lambda: [plain() for _ in range(2)],
    "none": list,
}


@contextmanager
def logged(*, level: int = logging.NOTSET, filtered: bool = False) -> Iterator[io.StringIO]:
    """What is written of transitions; with a filter, as they are logged one by one."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(scrubbed))
    handler.setLevel(level)
    if filtered:
        handler.addFilter(lambda _: True)
    logger, before = transitions.logger, transitions.logger.level
    logger.addHandler(handler)
    logger.propagate = False
    transitions.ask_for_them()
    try:
        yield stream
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
        logger.setLevel(before)


def told(
    tasks: Sequence[Claimed], seconds: Sequence[float | None], *, filtered: bool
) -> list[dict[str, Any]]:
    with logged(filtered=filtered) as stream:
        Teller().tell("completed", tasks, seconds)
    text = stream.getvalue()
    assert text.isascii()
    assert "SSSS" not in text
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_the_lines_are_those_of_each_by_itself(batch: Callable[[], list[Claimed]]) -> None:
    tasks = batch()
    seconds = [None if number % 4 == 3 else number / 7 for number in range(len(tasks))]
    at_once, one_by_one = (told(tasks, seconds, filtered=each) for each in (False, True))
    assert [line.pop("time")[:11] for line in at_once] == [
        line.pop("time")[:11] for line in one_by_one
    ]
    assert at_once == one_by_one
    assert len(at_once) == len(tasks)
    # Field by field in the same order, too: people read them.
    assert [*map(list, at_once)] == [*map(list, one_by_one)]


def test_many_are_written_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[logging.LogRecord] = []
    original = logging.StreamHandler.emit

    def emit(self: logging.StreamHandler[Any], record: logging.LogRecord) -> None:
        handled.append(record)
        original(self, record)

    monkeypatch.setattr(logging.StreamHandler, "emit", emit)
    tasks = [plain() for _ in range(100)]
    teller = Teller()
    with logged() as stream:
        teller.tell("claimed", tasks)
        teller.tell("completed", tasks, [0.5] * 100)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(handled) == 2
    assert [(line["task_id"], line["event"]) for line in lines] == [
        *((task.task_id, "claimed") for task in tasks),
        *((task.task_id, "completed") for task in tasks),
    ]


def test_a_handler_that_wants_less_is_told_nothing() -> None:
    with logged(level=logging.WARNING) as stream:
        Teller().tell("claimed", [plain() for _ in range(10)])
    assert stream.getvalue() == ""


def test_a_handler_of_another_kind_has_a_record_each() -> None:
    records: list[logging.LogRecord] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    keeper = Keeper()
    with logged() as stream:
        transitions.logger.addHandler(keeper)
        try:
            Teller().tell("claimed", [plain() for _ in range(10)])
        finally:
            transitions.logger.removeHandler(keeper)
    assert len(records) == len(stream.getvalue().splitlines()) == 10
