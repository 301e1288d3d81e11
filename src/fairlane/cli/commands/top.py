"""Command `top`: the store, live."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.commands.top_screen import Screen, Wish
from fairlane.cli.errors import scrubbed
from fairlane.cli.options import json_option, store_option
from fairlane.cli.render import Cell, console, text
from fairlane.cli.settings import resolve
from fairlane.cli.store import open_store
from fairlane.client.app import Fairlane
from fairlane.core.audit import Action, subject_of
from fairlane.core.errors import FairlaneError, StoreUnavailable
from fairlane.core.stats import stats_of
from fairlane.wire.workers import workers_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

REFRESH_SECONDS = 1.0
PATIENCE = 0.5
"""Short, so that keys work: an error is shown, and the next attempt comes a second later."""

_FUNCTION_KEY = re.compile(r"\x1b[\[O][\d;]*[A-Za-z~]")
"""Arrows and function keys arrive as several characters, which are not meant one by one."""

ReadKeys = Callable[[float], "list[str] | None"]
"""Waits for keys, for at most this number of seconds. Returns None when no more can come."""


@click.command("top")
@store_option
@json_option
def top_command(store: str | None, as_json: bool) -> None:
    """Watch the store live.

    Refreshes every second. Keys: q quits, s sorts, / filters, p pauses, ? explains them. Prints
    once without a terminal, and with --json.
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


def _watch(app: Fairlane, screen: Screen, out: Console) -> None:
    from rich.live import Live  # noqa: PLC0415

    with (
        _keys() as read_keys,
        Live(console=out, screen=True, auto_refresh=False, transient=True) as live,
    ):
        try:
            while _heed(
                app, screen, read_keys, lambda: live.update(_draw(screen, out), refresh=True)
            ):
                try:
                    screen.take(app.run_sync(app.backend.ops.facts()))
                except StoreUnavailable as error:
                    screen.miss(error)
        except KeyboardInterrupt:
            return


def _heed(app: Fairlane, screen: Screen, read_keys: ReadKeys, draw: Callable[[], None]) -> bool:
    """Draw, and do what keys say until it is time to refresh. Return whether to go on."""
    deadline = time.monotonic() + REFRESH_SECONDS
    draw()
    while (left := deadline - time.monotonic()) > 0:
        pressed = read_keys(left)
        if pressed is None:
            return False
        for key in pressed:
            match screen.press(key):
                case Wish.QUIT:
                    return False
                case Wish.PAUSE | Wish.RESUME as wish:
                    _set_pause(app, screen, paused=wish is Wish.PAUSE)
        draw()
    return True


def _set_pause(app: Fairlane, screen: Screen, *, paused: bool) -> None:
    try:
        app.run_sync(app.backend.ops.pause(paused))
        record(app, Action.PAUSE if paused else Action.RESUME, subject_of(None, None))
        screen.take(app.run_sync(app.backend.ops.facts()))
    except FairlaneError as error:
        screen.miss(error)


def _draw(screen: Screen, out: Console) -> RenderableType:
    """Return the lines that fit, and a last one with the keys."""
    from rich.console import Group  # noqa: PLC0415

    width, height = out.size
    lines = list(screen.lines(width))
    room = max(1, height - 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], text(Cell("…", "dim"))]
    lines += [text() for _ in range(room - len(lines))]
    footer = screen.footer()
    footer.truncate(width, overflow="ellipsis")
    return Group(*lines, footer)


@contextmanager
def _keys() -> Iterator[ReadKeys]:
    """Yield a function that waits for keys, and restore the terminal afterwards."""
    import termios  # noqa: PLC0415 (not on every system)
    import tty  # noqa: PLC0415

    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    handler = signal.signal(signal.SIGTERM, leave)
    tty.setcbreak(descriptor)
    try:
        yield lambda seconds: _read_keys(descriptor, seconds)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTERM, handler)


def _read_keys(descriptor: int, seconds: float) -> list[str] | None:
    if not select.select([descriptor], [], [], seconds)[0]:
        return []
    typed = os.read(descriptor, 64).decode("utf-8", "ignore")
    if not typed:
        return None
    return list(_FUNCTION_KEY.sub("", typed))
