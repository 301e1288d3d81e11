"""The command line as people meet it: processes, signals, terminals."""

import json
import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.kit import APP, Cli, run, start, write_app

pytestmark = pytest.mark.timeout(110)


class Running:
    """A process whose stderr is read along."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self._lines.append(line)
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until a text was said so often."""

        def said() -> bool:
            return sum(text in line for line in self._lines) >= times

        with self._news:
            assert self._news.wait_for(said, timeout=60), f"{text!r} not in {self._lines}"

    def stop(self, *, at_once: bool = False) -> int:
        self.process.send_signal(signal.SIGTERM)
        if at_once:  # another one: two of a kind may arrive as one
            self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> int:
        """Wait until it has ended, with everything that shares its stderr."""
        code = self.process.wait(60)
        self._reader.join(60)
        assert not self._reader.is_alive()
        return code

    @property
    def said(self) -> str:
        return "".join(self._lines)


@contextmanager
def running(*args: str) -> Iterator[Running]:
    with watched(start(*args)) as held:
        yield held


@contextmanager
def watched(process: subprocess.Popen[str]) -> Iterator[Running]:
    """A process that ends with the block."""
    held = Running(process)
    try:
        yield held
    finally:
        if held.process.poll() is None:
            held.process.kill()
        held.process.wait()
        held._reader.join(10)
        for stream in (held.process.stdout, held.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def shop(ready: Cli) -> Cli:
    write_app()
    return ready


def result_of(*args: str) -> Any:
    done = run("submit", *args, "--wait", "--timeout-wait", "50")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_worker_and_somebody_who_waits(shop: Cli) -> None:
    with running("worker", "--app", "shop:app", "--concurrency", "2") as worker:
        worker.wait_for("is ready for greet")
        assert result_of("greet", '{"name": "Ada"}') == {"hello": "Ada"}
        refused = run("submit", "refuse", "--wait")
        assert refused.returncode == 1
        assert "not with me" in refused.stderr
        assert "Traceback" not in refused.stderr
        (found,) = shop.json("workers")["workers"]
        assert found["capacity"] == 2
        assert worker.stop() == 0
        assert worker.said.count("Traceback") == 1  # of the handler that failed, in its line
    assert shop.json("workers")["workers"] == []


def test_built_in_handlers(ready: Cli) -> None:
    with running("worker") as worker:
        worker.wait_for("is ready for echo")
        assert result_of("echo", '{"n": 1}') == {"n": 1}
        assert worker.stop() == 0


def test_waiting_has_an_end(shop: Cli) -> None:
    done = run("submit", "nobody", "--wait", "--timeout-wait", "0.1")
    assert done.returncode == 1
    assert "has not ended within 0.1 s: it goes on." in done.stderr


def test_a_second_signal_ends_at_once_and_gives_back(shop: Cli) -> None:
    task_id = shop.submit("hang")
    before = json.loads(shop.ok("events", "--json"))["cursor"]
    with running("worker", "--app", "shop:app") as worker:
        following = start("events", "--follow", "--json", "--after", before)
        assert following.stdout is not None
        with following:
            types = (json.loads(line)["type"] for line in following.stdout)
            assert "task.started" in types
            following.send_signal(signal.SIGINT)
            assert following.wait(30) == 0
        assert worker.stop(at_once=True) == 0
    assert shop.status(task_id) == "queued"


STUBBORN = """
import asyncio, threading, time
from concurrent.futures import ThreadPoolExecutor
from fairlane.client.app import Fairlane

app = Fairlane("sqlite:///fairlane.db", synchronous="OFF")

@app.task(timeout=None)
async def deaf() -> None:
    print("begun", flush=True)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue

@app.task(timeout=None)
async def busy() -> None:
    print("begun", flush=True)
    while True:
        time.sleep(0.01)

@app.task()
def leaving_a_thread() -> None:
    threading.Thread(target=time.sleep, args=[3600], daemon=False).start()
    print("begun", flush=True)

@app.task()
async def leaving_a_pool() -> None:
    ThreadPoolExecutor().submit(time.sleep, 3600)
    print("begun", flush=True)

@app.task(timeout=None)
async def blocking() -> None:
    print("begun", flush=True)
    await asyncio.to_thread(time.sleep, 3600)
"""


@pytest.mark.parametrize(
    ("handler", "at_once", "last_word", "code", "status"),
    [
        ("deaf", False, "Threads or tasks of handlers do not end", 0, "queued"),
        ("deaf", True, "Threads or tasks of handlers do not end", 0, "queued"),
        ("blocking", False, "Threads or tasks of handlers do not end", 0, "queued"),
        ("leaving_a_thread", False, "Threads or tasks of handlers do not end", 0, "completed"),
        ("leaving_a_pool", False, "Threads or tasks of handlers do not end", 0, "completed"),
        ("busy", True, "A handler keeps the event loop busy", 1, "executing"),
    ],
)
def test_no_handler_keeps_a_worker_that_is_to_stop(
    ready: Cli, handler: str, at_once: bool, last_word: str, code: int, status: str
) -> None:
    write_app(STUBBORN)
    task_id = ready.submit(handler)
    grace = "3600" if at_once else "0.1"
    with running("worker", "--app", "shop:app", "--grace", grace) as worker:
        assert worker.process.stdout is not None
        assert worker.process.stdout.readline() == "begun\n"
        assert worker.stop(at_once=at_once) == code, worker.said
        assert f"{last_word}: the process ends anyway." in worker.said
        assert "Traceback" not in worker.said
    assert ready.status(task_id) == status


def test_several_processes_are_kept_alive(shop: Cli) -> None:
    with running("worker", "--app", "shop:app", "--processes", "2") as supervisor:
        supervisor.wait_for("is ready for greet", times=2)
        assert len(shop.json("workers")["workers"]) == 2
        os.kill(result_of("process"), signal.SIGKILL)
        supervisor.wait_for("was ended by SIGKILL: it is restarted in 0.5 s.")
        supervisor.wait_for("is ready for greet", times=3)
        assert result_of("greet") == {"hello": "you"}
        assert supervisor.stop() == 0


HANGING = """
import time
from fairlane.client.app import Fairlane

app = Fairlane("sqlite:///fairlane.db", synchronous="OFF")

for number in range(8):
    @app.task(name=f"hang-{number}")
    def hang() -> None:
        time.sleep(3600)

@app.task()
async def greet() -> dict:
    return {"hello": "you"}
"""


def test_a_worker_whose_threads_hang_is_replaced(ready: Cli) -> None:
    write_app(HANGING)
    flags = ("--concurrency", "4", "--lease", "1", "--processes", "2")
    with running("worker", "--app", "shop:app", *flags) as supervisor:
        supervisor.wait_for("is ready for", times=2)
        for number in range(8):
            terms = ("--timeout", "0.1", "--max-retries", "0")
            ready.ok("submit", f"hang-{number}", *terms, "--file", "-", input="{}\n" * 16)
        supervisor.wait_for("Too many handlers hang in threads")
        supervisor.wait_for("ended with exit code 1: it is restarted")
        supervisor.wait_for("is ready for", times=3)
        assert result_of("greet") == {"hello": "you"}
        assert supervisor.stop() == 0
        assert "Traceback" not in supervisor.said


def test_children_do_not_outlive_their_supervisor(shop: Cli) -> None:
    with running("worker", "--app", "shop:app", "--processes", "2") as supervisor:
        supervisor.wait_for("is ready for greet", times=2)
        supervisor.process.kill()
        # Its end closes our pipe only once the children, who share it, are gone too.
        supervisor._reader.join(60)
        assert not supervisor._reader.is_alive()
    assert shop.json("workers")["workers"] == []


def test_what_is_wrong_is_not_tried_again(shop: Cli) -> None:
    done = run("worker", "--app", "shop:missing", "--processes", "2")
    assert done.returncode == 2
    assert "shop has no missing" in done.stderr
    assert "started again" not in done.stderr


def test_passwords_are_not_on_the_command_lines_of_children(shop: Cli) -> None:
    url = "sqlite:///fairlane.db"
    with running("worker", "--app", "shop:app", "--store", url, "--processes", "2") as supervisor:
        supervisor.wait_for("is ready for greet", times=2)
        pid = result_of("process")
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        assert words[-4:] == [b"fairlane", b"worker", b"--supervised", b""]
        assert supervisor.stop() == 0


def test_reload_follows_the_code(shop: Cli) -> None:
    with running("worker", "--app", "shop:app", "--reload") as supervisor:
        supervisor.wait_for("is ready for greet")
        write_app("this is no Python")
        supervisor.wait_for("Waiting for a change.")
        write_app(APP.replace('"hello"', '"good day"'))
        supervisor.wait_for("shop.py changed", times=2)
        supervisor.wait_for("is ready for greet", times=2)
        assert result_of("greet") == {"good day": "you"}
        assert supervisor.stop() == 0


def test_top_prints_once_into_a_pipe(shop: Cli) -> None:
    done = run("top")
    assert done.returncode == 0
    assert done.stdout.startswith("Fairlane sqlite:///fairlane.db")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("way_out", ["q", "interrupt", "term"])
def test_top_on_a_terminal(shop: Cli, way_out: str) -> None:
    control, terminal = pty.openpty()
    try:
        before = _modes(terminal)
        top = start("top", stdin=terminal, stdout=terminal)
        with top:
            assert "q quit" in _screen(control, "q quit")
            match way_out:
                case "q":
                    os.write(control, b"q")
                case "interrupt":
                    top.send_signal(signal.SIGINT)
                case _:
                    top.send_signal(signal.SIGTERM)
            # Back from the alternate screen, with a cursor.
            _screen(control, "\x1b[?1049l")
            assert top.wait(30) == 0
            assert top.stderr is not None
            assert top.stderr.read() == ""
        assert _modes(terminal) == before
    finally:
        os.close(terminal)
        os.close(control)


def _modes(terminal: int) -> Any:
    import termios  # noqa: PLC0415

    return termios.tcgetattr(terminal)


def _screen(control: int, text: str) -> str:
    """What was drawn until a text appeared."""
    seen = ""
    deadline = time.monotonic() + 60
    while text not in seen:
        assert time.monotonic() < deadline, seen
        seen += os.read(control, 65536).decode("utf-8", "replace")
    return seen


def test_a_reader_who_has_seen_enough(shop: Cli) -> None:
    shop.ok("submit", "work", "--file", "-", input="{}\n" * 1000)
    for command in (("list", "--limit", "1000"), ("list", "--limit", "1000", "--json")):
        listing = start(*command)
        assert listing.stdout is not None
        listing.stdout.readline()
        listing.stdout.close()
        assert listing.stderr is not None
        told = listing.stderr.read()
        listing.stderr.close()
        assert listing.wait(30) in {0, 1}
        assert "Traceback" not in told
        assert "rror" not in told


def test_interrupted(shop: Cli) -> None:
    waiting = start("submit", "nobody", "--wait", stderr=subprocess.STDOUT)
    with waiting:
        # It has begun to wait once the task is there.
        while not shop.json("list", "--type", "nobody")["tasks"]:
            assert waiting.poll() is None
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(30) == 130
        assert waiting.stdout is not None
        assert "Traceback" not in waiting.stdout.read()
