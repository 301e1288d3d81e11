"""A few words to speak to the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from fairlane.cli.main import fairlane
from fairlane.client.app import Fairlane

APP = """
import asyncio
from fairlane.client.app import Fairlane
from fairlane.runtime.context import Context
from fairlane.runtime.outcomes import Fail

app = Fairlane("sqlite:///fairlane.db", synchronous="OFF")

@app.task()
async def greet(name: str = "you") -> dict:
    return {"hello": name}

@app.task()
async def refuse() -> None:
    raise Fail("not with me")

@app.task()
async def hang(ctx: Context) -> None:
    ctx.progress(40, "hanging")
    await asyncio.Event().wait()

@app.task()
async def process() -> int:
    import os
    return os.getpid()
"""


class Cli:
    """Runs commands in this process."""

    def __call__(self, *args: str, **options: Any) -> Result:
        return CliRunner().invoke(fairlane, args, prog_name="fairlane", **options)

    def ok(self, *args: str, **options: Any) -> str:
        """What a command prints that must succeed."""
        result = self(*args, **options)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *args: str, **options: Any) -> Any:
        return json.loads(self.ok(*args, "--json", **options))

    def submit(self, *args: str) -> str:
        return self.ok("submit", *args).strip()

    def status(self, task_id: str) -> str:
        status: str = self.json("status", task_id)["status"]
        return status


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "fairlane", *args]


def start(*args: str, **options: Any) -> subprocess.Popen[str]:
    """A command in a process of its own, in the working folder."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command(*args), text=True, env={**os.environ}, **options)


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, to its end."""
    return subprocess.run(command(*args), capture_output=True, text=True, check=False, timeout=60)


def write_app(text: str = APP) -> None:
    Path("shop.py").write_text(text)


def in_store(use: Callable[[Fairlane], Coroutine[Any, Any, Any]]) -> Any:
    """What an async function makes of the store in the working folder."""
    import asyncio  # noqa: PLC0415

    async def used() -> Any:
        async with Fairlane() as app:
            return await use(app)

    return asyncio.run(used())
