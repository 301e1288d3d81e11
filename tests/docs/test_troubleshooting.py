"""Each mistake on the page is made, and Fairlane says what the page shows, up to what to do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import Fairlane
from tests.cli.kit import in_store
from tests.fixtures.stores import World

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "troubleshooting.md"
SENTENCES = dict(re.findall(r"^## ([^\n]+)\n\n```text\n([^\n]+)\n```", PAGE.read_text(), re.M))

SHOP = """
import asyncio
import time
from fairlane import Fairlane
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker

app = Fairlane("sqlite:///fairlane.db", synchronous="OFF")

@app.task(max_retries=0)
async def greet(name: str) -> str:
    raise ValueError("no such name")

@app.task
def keep(what) -> None: ...

@app.task(max_retries=0, timeout=0.05)
async def linger() -> None:
    await asyncio.sleep(60)

@app.task
async def fetch() -> None:
    time.sleep(2.5)

async def result(call):
    async with app:
        worker = Worker(app, Config(maintenance=False))
        running = asyncio.create_task(worker.run(signals=False))
        try:
            return await (await app.submit(call)).result(60)
        finally:
            worker.stop()
            await running
"""
FILES = {
    "shop.py": SHOP,
    "twice.py": """
from shop import app

@app.task(name="greet")
async def another() -> None: ...
""",
    "broken.py": "import not_installed\n",
    "other.py": """
from fairlane import Fairlane
from shop import greet

app = Fairlane("sqlite:///other.db")
""",
    "first.py": "from second import thing\nfrom fairlane import Fairlane\napp = Fairlane()\n",
    "second.py": "from first import app\nthing = 1\n",
}
COMMANDS = {
    "No worker runs": "submit greet {} --wait --timeout-wait 1",
    "The store's URL is wrong": "worker --app shop:app --store mysql://here/shop",
    "Two tasks have one name": "worker --app twice:app",
    "The application cannot be imported": "worker --app broken:app",
    "Two applications": "worker --app other:app",
    "Modules that import each other": "worker --app first:app",
}
IN_LOOP = """
async def main():
    {}
asyncio.run(main())
"""
PROGRAMS = {
    "A driver is not installed": (
        "import sys; sys.modules['redis'] = None; Fairlane('redis://here').stats_sync()"
    ),
    "An argument cannot be stored": "keep.submit_sync(what=object())",
    "The arguments do not fit the handler": "greet.submit_sync()",
    "A blocking call inside an event loop": IN_LOOP.format(
        "greet.submit_sync(name='Ada').result_sync()"
    ),
    "An async handler blocks": "asyncio.run(result(fetch.prepare()))",
    "A forgotten await": IN_LOOP.format("greet.submit(name='Ada')"),
    "A task takes too long": "asyncio.run(result(linger.prepare()))",
    "The result of a task that failed": "asyncio.run(result(greet.prepare(name='Ada')))",
}
IN_PROCESS = "No worker knows the task"
ADVICE = {
    "No worker runs": "start one with `fairlane worker --app module:app`.",
    "The store's URL is wrong": "looks like sqlite:///tasks.db, postgresql://host/db or redis://",
    "A driver is not installed": "pip install 'fairlane[redis]'.",
    "An argument cannot be stored": "use its id, a dict or a dataclass instead",
    "The arguments do not fit the handler": "It takes (name).",
    "No worker knows the task": "Start one that does, or correct the names: `fairlane workers`",
    "A blocking call inside an event loop": "await its twin without `_sync` instead",
    "An async handler blocks": "define the handler with def instead of async def",
    "Two tasks have one name": "give one of them another, @app.task(name=",
    "The application cannot be imported": "Install not_installed into this environment",
    "A task takes too long": "give the task a longer `timeout`, or less to do in one run.",
    "The result of a task that failed": "See its traceback with `fairlane status`",
    "Two applications": "there are tasks of shop:app: name that application",
    "Modules that import each other": "put the application into a module that imports none of",
}
"""What each message says to do. Python words the mistake that is missing here."""
BY_PYTHON = "A forgotten await"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(*command: str) -> str:
    """What a program in this folder prints on stderr."""
    mine = {name: value for name, value in os.environ.items() if "FAIRLANE" not in name}
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**mine, "PYTHONPATH": "."},
    )
    return done.stderr


def assert_sentence(mistake: str, text: str) -> None:
    """The page shows the message to its end, and the message says what to do."""
    pattern = ".*?".join(map(re.escape, SENTENCES[mistake].split("…")))
    assert re.search(f"{pattern}$", text, re.M), f"{SENTENCES[mistake]}\n{text}"
    assert ADVICE.get(mistake, "") in text


def test_every_mistake_of_the_page_is_made() -> None:
    assert sorted([*COMMANDS, *PROGRAMS, IN_PROCESS]) == sorted(SENTENCES)
    assert len(SENTENCES) == 15


def test_every_message_says_what_to_do() -> None:
    assert sorted([*ADVICE, BY_PYTHON]) == sorted(SENTENCES)
    (ours,) = re.findall(rf"^## {BY_PYTHON}\n(.*?)^##", PAGE.read_text(), re.M | re.S)
    assert "Write `await greet.submit(…)`" in ours


@pytest.mark.parametrize("mistake", COMMANDS)
def test_a_command_says_it_in_one_sentence(mistake: str) -> None:
    text = said("-m", "fairlane", *COMMANDS[mistake].split())
    assert_sentence(mistake, text)
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize("mistake", PROGRAMS)
def test_a_program_says_it(mistake: str) -> None:
    assert_sentence(mistake, said("-c", f"from shop import *\n{PROGRAMS[mistake]}"))


def test_a_task_that_no_worker_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # on one line
    submitted = subprocess.run(
        [sys.executable, "-m", "fairlane", "submit", "gret"],
        capture_output=True,
        text=True,
        check=True,
    )

    async def register(app: Fairlane) -> None:
        await app.stats()
        await World(app.backend, app.url, {}).worker(types=frozenset({"greet"}), lease=1_000)

    in_store(register)
    found = subprocess.run(
        [sys.executable, "-m", "fairlane", "why", submitted.stdout.strip()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert_sentence(IN_PROCESS, found.stdout)
