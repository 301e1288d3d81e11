"""What a long-running command says to the person in front of it: commands to try, and what it waits
for."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from fairlane.cli.errors import note, scrubbed

if TYPE_CHECKING:
    from fairlane.worker.worker import Worker

_SQLITE = "sqlite:///"


def fairlane_command() -> str:
    """Return how this program can be called again: by its name, if the shell finds it by that."""
    called = Path(sys.argv[0])
    if called.name != "fairlane":  # python -m fairlane
        return f"{shlex.quote(sys.executable)} -m fairlane"
    found = shutil.which("fairlane")
    if found is not None and Path(found).resolve() == called.resolve():
        return "fairlane"
    return shlex.quote(str(called.absolute()))


def watch_command(url: str) -> str | None:
    """Return the command that watches a store from any folder. None if there is none: another
    process cannot see a store in memory, and a password is never printed."""
    path = url.removeprefix(_SQLITE)
    if url.startswith(_SQLITE) and path and path != ":memory:":
        if not path.startswith("/"):
            path = quote(str(Path.cwd())) + "/" + path
        url = _SQLITE + path
    elif url.startswith("sqlite:") or scrubbed(url) != url:
        return None
    return f"{fairlane_command()} top --store {shlex.quote(url)}"


def port_advice(port: int) -> str:
    """Return how to choose another port. The Makefile says how it is done with `make up`."""
    another = port + 1 if port < 65_535 else 0
    by_make = os.environ.get("FAIRLANE_PORT_ADVICE")
    return f"{by_make}{another}" if by_make else f"--port {another}, or --port 0 for any free one"


def announce_stop(
    workers: Iterable[Worker], grace: float, stop: Callable[[], None]
) -> Callable[[], None]:
    """Return `stop`, which also says what the process waits for before it ends."""
    calls = 0

    def announced() -> None:
        nonlocal calls
        calls += 1
        note(_waiting([each for worker in workers for each in worker.running()], grace, calls))
        stop()

    return announced


def _waiting(types: list[str], grace: float, calls: int) -> str:
    if not types:
        return "Stopping."
    if calls > 1:
        return "Stopping at once: running tasks go back to their queues."
    tasks = "1 task still runs" if len(types) == 1 else f"{len(types):,} tasks still run"
    counts = ", ".join(f"{count} {type}" for type, count in Counter(types).most_common())
    return (
        f"Stopping. {tasks}, for up to {grace:g} s: {counts}. Ctrl-C again stops at once, and "
        "running tasks go back to their queues."
    )
