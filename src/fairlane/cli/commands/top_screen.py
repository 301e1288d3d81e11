"""The screen of `top`: what it shows, and what its keys do. Nothing here reads or writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlane.cli.commands.stats import overview
from fairlane.cli.commands.workers import WORKER_COLUMNS, held_back_lines, worker_row
from fairlane.cli.errors import scrubbed
from fairlane.cli.render import Cell, table, text
from fairlane.core.errors import FairlaneError
from fairlane.core.facts import Facts, sample_of
from fairlane.core.model import Worker, moment
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.stats import Stats, stats_of

if TYPE_CHECKING:
    from rich.text import Text

Counts = Mapping[State, int]

KEYS = (
    ("q", "quit (so does Ctrl-C)"),
    ("s", "sort the types by the next column"),
    ("/", "show only types and workers whose name contains a text; Escape shows all again"),
    ("p", "pause everything, or end that pause; asks first"),
    ("?", "show or hide this help"),
)
_BARS = "▁▂▃▄▅▆▇█"
_ENTER, _ESCAPE, _ERASE = "\r\n", "\x1b", "\x7f\x08"


class Wish(Enum):
    """What the user wants of the program."""

    QUIT = "quit"
    PAUSE = "pause"
    RESUME = "resume"


class _Mode(Enum):
    """What the next key means."""

    WATCH = "watch"
    HELP = "help"
    FILTER = "filter"
    CONFIRM = "confirm"


def _most(*states: State) -> Callable[[tuple[str, Counts]], tuple[int, str]]:
    return lambda each: (-sum(each[1][state] for state in states), each[0])


_ORDERS: Mapping[str, Callable[[tuple[str, Counts]], tuple[int, str]]] = {
    "name": _most(),
    "queued": _most(State.QUEUED),
    "executing": _most(State.EXECUTING),
    "completed": _most(State.COMPLETED),
    "failed": _most(State.FAILED, State.DEAD_LETTER),
}


class Screen:
    """The last facts, the rate of completions over the last minute, and what the user has chosen to
    see."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._facts: Facts | None = None
        self._rates: deque[float] = deque(maxlen=60)
        self._last: tuple[int, int] | None = None
        self._error = ""
        self._mode = _Mode.WATCH
        self._order = "name"
        self._filter = ""

    def take(self, facts: Facts) -> None:
        """Take new facts."""
        completed = sample_of(facts.tallies, facts.now).completed
        if self._last is not None and facts.now > self._last[0]:
            seconds = (facts.now - self._last[0]) / MICROSECONDS
            self._rates.append(max(0, completed - self._last[1]) / seconds)
        self._last = facts.now, completed
        self._facts = facts
        self._error = ""

    def miss(self, error: FairlaneError) -> None:
        """Keep the old facts and show the error."""
        self._error = error.message

    def press(self, key: str) -> Wish | None:
        """Change what is shown. Return what the program is to do, if anything."""
        match self._mode:
            case _Mode.FILTER:
                self._type(key)
                return None
            case _Mode.CONFIRM:
                self._mode = _Mode.WATCH
                wanted = Wish.RESUME if self._paused else Wish.PAUSE
                return wanted if key in {"y", "Y"} else None
            case _:
                return self._choose(key.lower())

    def _choose(self, key: str) -> Wish | None:
        match key:
            case "q":
                return Wish.QUIT
            case "s":
                names = list(_ORDERS)
                self._order = names[(names.index(self._order) + 1) % len(names)]
            case "/":
                self._mode = _Mode.FILTER
            case "p":
                self._mode = _Mode.CONFIRM
            case "?" | "h":
                self._mode = _Mode.WATCH if self._mode is _Mode.HELP else _Mode.HELP
            case "\x1b":
                self._mode, self._filter = _Mode.WATCH, ""
        return None

    def _type(self, key: str) -> None:
        if key in _ENTER:
            self._mode = _Mode.WATCH
        elif key == _ESCAPE:
            self._mode, self._filter = _Mode.WATCH, ""
        elif key in _ERASE:
            self._filter = self._filter[:-1]
        elif key.isprintable():
            self._filter += key

    @property
    def _paused(self) -> bool:
        return self._facts is not None and self._facts.controls.everything.paused

    def lines(self, width: int) -> Iterator[Text]:
        """Yield the lines of the screen."""
        assert self._facts is not None
        facts = self._facts
        yield self._head(moment(facts.now), width)
        if self._mode is _Mode.HELP:
            yield text()
            yield from (text(f"{key}  ", Cell(meaning, "dim")) for key, meaning in KEYS)
            return
        if self._error:
            yield text(Cell(scrubbed(self._error), "red"))
        if self._paused:
            yield text(Cell("Everything is paused.", "yellow"))
        yield text()
        yield from overview(self._chosen_types(stats_of(facts)), width)
        if self._rates:
            yield text()
            yield self._rate_line(width)
        workers = sorted(filter(self._shows, facts.workers), key=lambda worker: worker.worker_id)
        if workers:
            yield text()
            yield from table(WORKER_COLUMNS, (worker_row(worker) for worker in workers), width)
            for line in held_back_lines(workers):
                line.truncate(width, overflow="ellipsis")
                yield line

    def footer(self) -> Text:
        """Return the last line: the keys, or the question that the next key answers."""
        match self._mode:
            case _Mode.FILTER:
                return text(f"/{self._filter}█", Cell("  Enter keeps, Escape shows all", "dim"))
            case _Mode.CONFIRM:
                question = "End the pause of everything?" if self._paused else "Pause everything?"
                return text(Cell(question, "yellow"), "  y: yes, any other key: no")
        keys = [
            "q quit",
            f"s sort: {self._order}",
            f"/ filter: {self._filter}" if self._filter else "/ filter",
            "p resume" if self._paused else "p pause",
            "? help",
        ]
        return text(Cell("   ".join(keys), "dim"))

    def _chosen_types(self, stats: Stats) -> Stats:
        chosen = sorted(stats.by_type.items(), key=_ORDERS[self._order])
        by_type = {name: counts for name, counts in chosen if self._matches(name)}
        return replace(stats, by_type=by_type)

    def _shows(self, worker: Worker) -> bool:
        return self._matches(worker.worker_id) or self._matches(worker.host)

    def _matches(self, name: str) -> bool:
        return self._filter.lower() in name.lower()

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
