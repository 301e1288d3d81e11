"""JSON logs: one event is one line, whatever it says; and a line for each transition, if wanted."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from fairlane import Context, Fail, Fairlane, Retry
from fairlane.cli.errors import UsageError, scrubbed
from fairlane.cli.escapes import printable
from fairlane.cli.logs import _Lines
from fairlane.cli.settings import resolve
from fairlane.core.machine import COMPLETE
from fairlane.core.model import Verdict
from fairlane.core.settlement import Settled
from fairlane.core.submission import new_task
from fairlane.telemetry import transitions
from fairlane.telemetry.logs import FIELDS, MOST, MOST_TRACE, JsonFormatter
from fairlane.telemetry.observer import Observer, new_observer
from fairlane.worker.logs import _logged, log
from fairlane.worker.messages import Logged
from tests.cli.kit import start, write_app
from tests.fixtures.stores import World, settlement
from tests.unit.make import claimed
from tests.worker.conftest import memory, quick
from tests.worker.kit import ended, working

__all__ = ["memory", "quick"]

SECRET = "fl_" + "S" * 40
NASTY = {
    "line feed": "one\ntwo",
    "carriage return": "one\rtwo",
    "next line": "one\x85two",
    "line separator": "one\u2028two\u2029three",
    "colours": "\x1b[31mred\x1b[0m",
    "C1 controls": "\x9b31mred",
    "delete": "a\x7fb",
    "right to left": "a\u202eb",
    "half a pair": "\ud800",
    "nothing": "\x00",
    "a forged line": '"}\n{"level": "INFO", "message": "all is well"}',
    "braces": "%s {} %(name)s",
}


def formatted(message: str, *args: object, **extra: Any) -> tuple[str, dict[str, Any]]:
    record = logging.LogRecord("fairlane.x", logging.INFO, "x.py", 1, message, args, None)
    record.__dict__.update(extra)
    line = JsonFormatter(scrubbed).format(record)
    return line, json.loads(line)


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_one_event_is_one_harmless_line(text: str) -> None:
    for line, told in (formatted("%s", text), formatted("x", **{FIELDS: {"type": text}})):
        assert len(line.splitlines()) == 1
        assert line.isascii()
        assert line.isprintable()
        shown = text.replace("\ud800", "\\ud800")
        assert shown in (told["message"], told.get("type"))


def test_what_is_huge_is_cut() -> None:
    line, told = formatted("%s", "x" * 1_000_000, **{FIELDS: {"type": "y" * 1_000_000}})
    assert len(told["message"]) == len(told["type"]) == MOST
    assert told["message"].endswith("…")
    assert len(line) < 3 * MOST


def test_secrets_are_not_told_even_where_a_text_is_cut() -> None:
    url = "postgresql://me:hunter2@db/x"
    line, told = formatted("%s %s", url, SECRET, **{FIELDS: {"type": f"{SECRET} {url}"}})
    assert "hunter2" not in line
    assert "SSSS" not in line
    assert "postgresql://***@db/x" in told["message"]
    for kept in range(len(SECRET)):
        assert "SSSS" not in formatted("%s", "x" * (MOST - kept - 1) + " " + SECRET)[0]


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_a_text_line_is_harmless_too(text: str) -> None:
    record = logging.LogRecord("fairlane.x", logging.INFO, "x.py", 1, "%s", (text,), None)
    record.process = 7
    line = _Lines(supervised=True).format(record)
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert line.endswith(f" [7] INFO    {printable(text)}")


def test_a_traceback_in_text_forges_no_record() -> None:
    forged = "2026-11-16 00:00:00,000 INFO    all is well\u2028\x1b[2J"
    record = _failed(f"{SECRET}\n{forged}\r{forged}")
    for each in (record, log_of(_logged(record))):
        first, *more = _Lines(supervised=False).format(each).split("\n")
        assert first.endswith(" ERROR   It broke")
        assert all(line.startswith("  ") and line.isprintable() for line in more)
        assert "SSSS" not in "".join(more)
        assert any("all is well" in line for line in more)


def log_of(logged: Logged) -> logging.LogRecord:
    """The record that a worker logs for its child."""
    heard: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = heard.append  # type: ignore[method-assign, assignment]
    logging.getLogger(logged.name).addHandler(handler)
    try:
        log(logged)
    finally:
        logging.getLogger(logged.name).removeHandler(handler)
    return heard[0]


def _failed(message: str) -> logging.LogRecord:
    with pytest.raises(RuntimeError) as caught:
        raise RuntimeError(message)
    info = (caught.type, caught.value, caught.tb)
    return logging.LogRecord("x", logging.ERROR, "x.py", 1, "It broke", (), info)


def test_text_lines_are_cut_before_they_are_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def measured(text: str) -> str:
        looked_at.append(len(text))
        return text

    monkeypatch.setattr("fairlane.cli.logs.scrubbed", measured)
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "x" * 1_000_000, (), None)
    assert len(_Lines(supervised=False).format(record)) < MOST + 100
    _Lines(supervised=False).format(_failed("x" * 1_000_000))
    assert max(looked_at) <= MOST_TRACE + 1_024


@pytest.mark.parametrize(
    "unit", ["a://", "a://a", "://", "@a://", "fl_", "token=", "a://\u2028", "\u2028@"]
)
def test_scrubbing_takes_time_by_length(unit: str) -> None:
    """Four times the text takes four times as long, not sixteen times."""
    text = unit * 20_000

    def seconds(text: str) -> float:
        times = []
        for _ in range(5):
            begun = time.perf_counter()
            scrubbed(text)
            times.append(time.perf_counter() - begun)
        return min(times)

    assert seconds(text * 4) < 10 * max(seconds(text), 0.0001)


def test_a_long_text_is_looked_through_in_no_time() -> None:
    long = "a" * 1_000_000  # at one time that took an hour
    assert scrubbed(long) == long


def test_a_traceback_is_part_of_its_event() -> None:
    deep = "x" * 100_000

    def fail() -> None:
        raise ValueError(f"{deep} {SECRET}\nsecond line")

    with pytest.raises(ValueError, match="second") as caught:
        fail()
    record = logging.LogRecord(
        "x", logging.ERROR, "x.py", 1, "It broke", (), (caught.type, caught.value, caught.tb)
    )
    line = JsonFormatter(scrubbed).format(record)
    told = json.loads(line)
    assert len(line.splitlines()) == 1
    assert told["exception"].endswith("second line")
    assert len(told["exception"]) <= MOST_TRACE
    assert "SSSS" not in line
    assert (told["level"], told["message"]) == ("ERROR", "It broke")


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What is told of transitions, from now on."""
    told: list[dict[str, Any]] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(json.loads(JsonFormatter().format(record)))

    keeper = Keeper()
    before = transitions.logger.level
    transitions.enable()
    transitions.logger.addHandler(keeper)
    yield told
    transitions.logger.removeHandler(keeper)
    transitions.logger.setLevel(before)


async def test_the_life_of_a_task_in_lines(
    quick: Fairlane, memory: World, lines: list[dict[str, Any]]
) -> None:
    @quick.task(max_retries=1)
    async def flaky(ctx: Context, password: str) -> str:
        if ctx.attempt == 1:
            raise Retry(after=0)
        return "the-result"

    @quick.task()
    async def hopeless(password: str) -> None:
        raise Fail(f"it was {password}", code="HOPELESS")

    async with working(quick):
        kept = await quick.submit(flaky.prepare("hunter2"))
        lost = await quick.submit(hopeless.prepare("hunter2"))
        await ended(quick, kept.task_id)
        await ended(quick, lost.task_id)
    mine = [line for line in lines if line["task_id"] == kept.task_id]
    assert [(line["event"], line["attempt"]) for line in mine] == [
        ("claimed", 1),
        ("retrying", 1),
        ("claimed", 2),
        ("completed", 2),
    ]
    assert {line["trace_id"] for line in mine} == {kept.task_id.replace("-", "")}
    assert {(line["type"], line["queue"], line["priority"]) for line in mine} == {
        ("flaky", "default", "medium")
    }
    assert len({line["worker_id"] for line in mine}) == 1
    assert all(line["duration_seconds"] >= 0 for line in mine[1::2])
    (failed,) = [line for line in lines if line["event"] == "failed"]
    assert (failed["reason"], failed["error_code"]) == ("not_retriable", "HOPELESS")
    assert "hunter2" not in str(lines)
    assert "the-result" not in str(lines)


async def test_a_completing_transaction_is_told_of_too(
    quick: Fairlane, memory: World, lines: list[dict[str, Any]]
) -> None:
    @quick.task()
    async def write(ctx: Context) -> None:
        async with ctx.transaction():
            pass

    async with working(quick):
        handle = await quick.submit(write.prepare())
        await ended(quick, handle.task_id)
    assert [line["event"] for line in lines] == ["claimed", "completed"]


async def test_long_runs_tell_of_their_start(
    quick: Fairlane, memory: World, lines: list[dict[str, Any]]
) -> None:
    begun = asyncio.Event()

    def look(record: logging.LogRecord) -> bool:
        if "started" in record.getMessage():
            begun.set()
        return True

    @quick.task()
    async def long() -> None:
        await begun.wait()

    transitions.logger.addFilter(look)
    try:
        async with working(quick):
            handle = await quick.submit(long.prepare())
            await ended(quick, handle.task_id)
    finally:
        transitions.logger.removeFilter(look)
    assert [line["event"] for line in lines] == ["claimed", "started", "completed"]


def test_what_is_refused_is_not_told_as_done(lines: list[dict[str, Any]]) -> None:
    observer = Observer(None, logged=True)
    tasks = [claimed(task_id=str(number)) for number in range(3)]
    observer.claimed(tasks, 0)
    late = [settlement(task) for task in tasks[:2]]
    observer.settled(
        tasks[:2], late, [Settled(Verdict.APPLIED, COMPLETE), Settled(Verdict.STALE, None)], 0
    )
    observer.settled(tasks[2:], [settlement(tasks[2])], [], 0)  # the store would not hear of it
    assert [line["event"] for line in lines[3:]] == ["completed", "refused", "refused"]


async def test_a_worker_watches_nothing_unless_asked(quick: Fairlane, memory: World) -> None:
    assert new_observer() is None
    logging.getLogger("fairlane").setLevel(logging.INFO)
    try:
        assert new_observer() is None, "what the program says of itself is something else"
    finally:
        logging.getLogger("fairlane").setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"FAIRLANE_LOG_FORMAT": "xml"}, "FAIRLANE_LOG_FORMAT is text or json"),
        ({"FAIRLANE_LOG_TRANSITIONS": "maybe"}, "FAIRLANE_LOG_TRANSITIONS is 1 for yes"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, environ: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        resolve({}, environ, tmp_path)


def test_settings_reach_children(tmp_path: Path) -> None:
    settings = resolve({"log_format": "json", "log_transitions": True}, {}, tmp_path)
    assert resolve({}, settings.environment(), tmp_path) == settings
    assert resolve({}, {"FAIRLANE_LOG_TRANSITIONS": "0"}, tmp_path).log_transitions is False


SAYING = """
import logging
from fairlane import Fairlane
app = Fairlane()

@app.task()
async def say(password: str) -> str:
    logging.getLogger("shop").warning("one\\ntwo\\u2028three \\x1b[31m")
    return password
"""


def test_a_worker_whose_every_line_is_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_app(SAYING)
    app = Fairlane("sqlite:///fairlane.db")
    with app:
        task = new_task("say", {"password": "hunter2"})
        app.run_sync(app.backend.ops.submit([task]))
    worker = start("worker", "--app", "shop:app", "--log-format", "json", "--log-transitions")
    try:
        told = _until_completed(worker)
    finally:
        worker.send_signal(signal.SIGTERM)
        rest = worker.communicate(timeout=30)[1]
    told += [json.loads(line) for line in rest.splitlines()]
    assert {"claimed", "completed"} <= {line.get("event") for line in told}
    (said,) = [line for line in told if line["logger"] == "shop"]
    assert said["message"] == "one\ntwo\u2028three \x1b[31m"
    assert any("is ready for say" in line["message"] for line in told)
    assert "hunter2" not in str(told)
    (done,) = [line for line in told if line.get("event") == "completed"]
    assert done["trace_id"] == task.task_id.replace("-", "")


def _until_completed(worker: subprocess.Popen[str]) -> list[dict[str, Any]]:
    assert worker.stderr is not None
    told: list[dict[str, Any]] = []
    for line in worker.stderr:
        told.append(json.loads(line))
        if told[-1].get("event") == "completed":
            break
    return told


def test_a_server_whose_every_line_is_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    server = start("server", "--port", "0", "--log-format", "json")
    try:
        assert server.stderr is not None
        first = json.loads(server.stderr.readline())
        assert "Fairlane serves sqlite:///fairlane.db" in first["message"]
        address = first["message"].split(" at ")[1].split(". ")[0]
        with urlopen(f"{address}/healthz", timeout=30) as reply:
            assert reply.status == 200
        server.send_signal(signal.SIGTERM)
        rest = server.communicate(timeout=30)[1]
    finally:
        server.kill()
    assert all(json.loads(line) for line in rest.splitlines())
    assert server.returncode == 0


def test_what_is_wrong_is_json_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    server = start("server", "--host", "0.0.0.0", "--port", "0", "--log-format", "json")
    try:
        out, told = server.communicate(timeout=30)
    finally:
        server.kill()
    (line,) = [json.loads(line) for line in told.splitlines()]
    assert (line["level"], server.returncode, out) == ("ERROR", 1, "")
    assert "no tokens are set up" in line["message"]
