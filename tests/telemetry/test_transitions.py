"""Transitions that are logged many at once: they say what each would say by itself."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from fairlane.cli.errors import scrubbed
from fairlane.core.ids import new_id
from fairlane.core.model import Claimed, Spec
from fairlane.telemetry import transitions
from fairlane.telemetry.logs import JsonFormatter
from fairlane.telemetry.transitions import MANY, MOST, TransitionLog
from tests.unit.make import claimed

SECRET = "fl_" + "S" * 40
NIL = "00000000-0000-0000-0000-000000000000"


def plain(**fields: Any) -> Claimed:
    return claimed(task_id=new_id(), **fields)


BATCHES: dict[str, Callable[[], list[Claimed]]] = {
    "alike": lambda: [plain() for _ in range(MANY)],
    "too few to share a line": lambda: [plain() for _ in range(MANY - 1)],
    "of which there are very many": lambda: [plain() for _ in range(2 * MOST + 7)],
    "many of one kind, then one of another, then many": lambda: [
        *(plain() for _ in range(MANY)),
        plain(type="other"),
        *(plain() for _ in range(MOST + 1)),
    ],
    "many with one trace": lambda: [plain(spec=Spec(trace_id="abc")) for _ in range(MANY)],
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
    transitions.enable()
    try:
        yield stream
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
        logger.setLevel(before)


def told(
    tasks: Sequence[Claimed], seconds: Sequence[float | None] | None, *, filtered: bool = False
) -> list[dict[str, Any]]:
    with logged(filtered=filtered) as stream:
        TransitionLog().write("completed", tasks, seconds)
    text = stream.getvalue()
    assert text.isascii()
    assert "SSSS" not in text
    return [json.loads(line) for line in text.splitlines()]


def apart(line: dict[str, Any]) -> list[dict[str, Any]]:
    """What a line says of each of its tasks."""
    if "task_id" in line:
        return [line]
    ids, traces = line.pop("task_ids"), line.pop("trace_ids")
    durations = line.pop("duration_seconds", [None] * len(ids))
    assert len(ids) <= MOST
    assert line.pop("count") == len(ids) == len(traces) == len(durations)
    assert line.pop("message") == "tasks completed"
    each = zip(ids, traces, durations, strict=True)
    return [
        {**line, "message": "task completed", "task_id": id, "trace_id": trace}
        | ({} if seconds is None else {"duration_seconds": seconds})
        for id, trace, seconds in each
    ]


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_they_say_what_each_says_by_itself(batch: Callable[[], list[Claimed]], timed: bool) -> None:
    tasks = batch()
    seconds = [None if number % 4 == 3 else number / 7e5 for number in range(len(tasks))]
    durations = seconds if timed else None
    lines = [each for line in told(tasks, durations) for each in apart(line)]
    one_by_one = told(tasks, durations, filtered=True)
    for line in (*lines, *one_by_one):
        assert line.pop("time").startswith("20")
    assert lines == one_by_one
    assert len(lines) == len(tasks)


def test_fields_are_in_one_order_whoever_writes_them() -> None:
    tasks = [plain() for _ in range(MANY - 1)]
    at_once, one_by_one = (told(tasks, [0.5] * len(tasks), filtered=each) for each in (False, True))
    assert [*map(list, at_once)] == [*map(list, one_by_one)]


def test_many_that_are_alike_share_a_line() -> None:
    tasks = [plain() for _ in range(MOST + MANY)]
    first, second = told(tasks, [0.000_012] * len(tasks))
    assert first["task_ids"] + second["task_ids"] == [task.task_id for task in tasks]
    assert first["trace_ids"] + second["trace_ids"] == [task.trace_id for task in tasks]
    assert first["duration_seconds"] == [0.000_012] * MOST
    assert (first["count"], second["count"]) == (MOST, MANY)


def test_no_line_is_longer_than_those_who_collect_them_allow() -> None:
    long = dict.fromkeys(("type", "queue"), "x" * 200)
    tasks = [plain(**long) for _ in range(MOST)]
    with logged() as stream:
        TransitionLog().write("completed", tasks, [1234.5] * MOST)
    assert len(stream.getvalue()) < 16_384


def test_all_are_written_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[logging.LogRecord] = []
    original = logging.StreamHandler.emit

    def emit(self: logging.StreamHandler[Any], record: logging.LogRecord) -> None:
        handled.append(record)
        original(self, record)

    monkeypatch.setattr(logging.StreamHandler, "emit", emit)
    tasks = [plain(type=f"type{number}") for number in range(100)]
    log = TransitionLog()
    with logged() as stream:
        log.write("claimed", tasks)
        log.write("completed", tasks, [0.5] * 100)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(handled) == 2
    assert [(line["task_id"], line["event"]) for line in lines] == [
        *((task.task_id, "claimed") for task in tasks),
        *((task.task_id, "completed") for task in tasks),
    ]


def test_a_handler_that_wants_less_is_told_nothing() -> None:
    with logged(level=logging.WARNING) as stream:
        TransitionLog().write("claimed", [plain() for _ in range(10)])
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
            TransitionLog().write("claimed", [plain() for _ in range(10)])
        finally:
            transitions.logger.removeHandler(keeper)
    assert len(records) == len(stream.getvalue().splitlines()) == 10
