"""Command `top`: the store, live."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli import json_output
from fairlane.cli.commands.stats import overview
from fairlane.cli.commands.workers import WORKER_COLUMNS, worker_row
from fairlane.cli.errors import scrubbed
from fairlane.cli.options import json_option, store_option
from fairlane.cli.render import Cell, console, table, text
from fairlane.cli.settings import resolve
from fairlane.cli.store import open_store
from fairlane.client.app import Fairlane
from fairlane.core.errors import StoreUnavailable
from fairlane.core.facts import Facts, sample_of
from fairlane.core.model import moment
from fairlane.core.priority import MICROSECONDS
from fairlane.core.stats import stats_of
from fairlane.wire.workers import workers_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

REFRESH_SECONDS = 1.0
PATIENCE = 0.5
"""Short, so that keys work: an error is shown, and the next attempt comes a second later."""
_BARS = "▁▂▃▄▅▆▇█"


@click.command("top")
@store_option
@json_option
def top_command(store: str | None, as_json: bool) -> None:
    """Watch the store live.

    Refreshes every second; q or Ctrl-C quits. Prints once without a terminal, and with --json.
    """
    url = scrubbed(resolve({"store": store}).store_url)
    out = console()
    with open_store(store, patience=PATIENCE) as app:
        facts = app.run_sync(app.backend.ops.facts())
        if as_json:
            workers = workers_of(facts.workers).workers
            json_output.emit({"stats": stats_of(facts), "workers": workers})
            return
        screen = Screen(url)
        screen.take(facts)
        if not (out.is_terminal and sys.stdin.isatty()):
            for line in screen.lines(out.width):
                out.print(line)
            return
        _watch(app, screen, out)


class Screen:
    """The last facts, and the rate of completions over the last minute."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._facts: Facts | None = None
        self._rates: deque[float] = deque(maxlen=60)
        self._last: tuple[int, int] | None = None
        self._error = ""

    def take(self, facts: Facts) -> None:
        """Take new facts."""
        completed = sample_of(facts.tallies, facts.now).completed
        if self._last is not None and facts.now > self._last[0]:
            seconds = (facts.now - self._last[0]) / MICROSECONDS
            self._rates.append(max(0, completed - self._last[1]) / seconds)
        self._last = facts.now, completed
        self._facts = facts
        self._error = ""

    def miss(self, error: StoreUnavailable) -> None:
        """Keep the old facts and show the error."""
        self._error = error.message

    def lines(self, width: int) -> Iterator[Text]:
        """Yield the lines of the screen."""
        assert self._facts is not None
        facts = self._facts
        yield self._head(moment(facts.now), width)
        if self._error:
            yield text(Cell(scrubbed(self._error), "red"))
        if facts.controls.everything.paused:
            yield text(Cell("Everything is paused.", "yellow"))
        yield text()
        yield from overview(stats_of(facts), width)
        if self._rates:
            yield text()
            yield self._rate_line(width)
        if facts.workers:
            yield text()
            workers = sorted(facts.workers, key=lambda worker: worker.worker_id)
            yield from table(WORKER_COLUMNS, (worker_row(worker) for worker in workers), width)

    def _head(self, now: datetime, width: int) -> Text:
        right = now.strftime("%H:%M:%S UTC")
        name = text(Cell("Fairlane ", "bold"), self._url)
        name.truncate(width - len(right) - 2, overflow="ellipsis", pad=True)
        return name + text("  ", Cell(right, "dim"))

    def _rate_line(self, width: int) -> Text:
        rates = list(self._rates)[-max(10, width - 30) :]
        highest = max(rates) or 1.0
        bars = "".join(_BARS[round(rate / highest * (len(_BARS) - 1))] for rate in rates)
        return text(Cell("completed  ", "dim"), bars, f"  {rates[-1]:,.1f} per second")


def _watch(app: Fairlane, screen: Screen, out: Console) -> None:
    from rich.live import Live  # noqa: PLC0415

    with (
        _keys() as pressed,
        Live(console=out, screen=True, auto_refresh=False, transient=True) as live,
    ):
        try:
            while True:
                live.update(_draw(screen, out), refresh=True)
                if pressed(REFRESH_SECONDS):
                    return
                try:
                    screen.take(app.run_sync(app.backend.ops.facts()))
                except StoreUnavailable as error:
                    screen.miss(error)
        except KeyboardInterrupt:
            return


def _draw(screen: Screen, out: Console) -> RenderableType:
    """Return the lines that fit, and a last one that says how to quit."""
    from rich.console import Group  # noqa: PLC0415

    width, height = out.size
    lines = list(screen.lines(width))
    room = max(1, height - 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], text(Cell("…", "dim"))]
    lines += [text() for _ in range(room - len(lines))]
    return Group(*lines, text(Cell("q quits", "dim")))


@contextmanager
def _keys() -> Iterator[Any]:
    """Yield a function that waits for the q key, and restore the terminal afterwards."""
    import termios  # noqa: PLC0415 (not on every system)
    import tty  # noqa: PLC0415

    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    handler = signal.signal(signal.SIGTERM, leave)
    tty.setcbreak(descriptor)
    try:
        yield lambda seconds: _quit_pressed(descriptor, seconds)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTERM, handler)


def _quit_pressed(descriptor: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if select.select([descriptor], [], [], left)[0]:
            keys = os.read(descriptor, 64)
            if not keys or b"q" in keys.lower():
                return True
    return False
