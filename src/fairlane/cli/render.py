"""Output for terminals: aligned columns, few colours, times in words.

Rich is imported only when something is drawn: commands that print JSON do not need it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from fairlane.cli.escapes import printable
from fairlane.core.states import State

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPED_WIDTH = 160
NONE = "–"
GAP = "  "
_STYLES = {
    State.EXECUTING: "cyan",
    State.RETRYING: "yellow",
    State.COMPLETED: "green",
    State.FAILED: "red",
    State.DEAD_LETTER: "red",
    State.CANCELLED: "dim",
}


class Cell(NamedTuple):
    """A piece of text and its style."""

    text: str
    style: str = ""


class Column(NamedTuple):
    """A column of a table. Consoles narrower than `wide` do not show it. If the table is too wide,
    a column with a `least` width shrinks down to it."""

    title: str
    right: bool = False
    wide: int = 0
    least: int | None = None


Row = Sequence[str | Cell]


def console(*, stderr: bool = False) -> Console:
    """Return a console without markup, and with colours only on a terminal that allows them."""
    from rich.console import Console  # noqa: PLC0415

    stream = sys.stderr if stderr else sys.stdout
    piped = not stream.isatty() and "COLUMNS" not in os.environ
    return Console(
        stderr=stderr,
        width=PIPED_WIDTH if piped else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )


def text(*cells: str | Cell) -> Text:
    """Return a line of escaped pieces."""
    from rich.text import Text  # noqa: PLC0415

    line = Text(end="\n")
    for cell in cells:
        line.append(printable(_cell(cell).text), style=_cell(cell).style)
    return line


def table(columns: Sequence[Column], rows: Iterable[Row], width: int) -> list[Text]:
    """Return the lines of a table that is at most `width` characters wide."""
    shown = [number for number, column in enumerate(columns) if width >= column.wide]
    columns = [columns[number] for number in shown]
    cells = [[text(row[number]) for number in shown] for row in rows]
    heads = [text(Cell(column.title, "dim")) for column in columns]
    widths = _widths(columns, [heads, *cells], width)
    return [_line(columns, widths, row) for row in [heads, *cells]]


def fields(pairs: Iterable[tuple[str, str | Cell]], width: int) -> list[Text]:
    """Return names and aligned values, one pair per line. Long values are wrapped."""
    pairs = list(pairs)
    margin = max((len(name) for name, _ in pairs), default=0) + len(GAP)
    lines: list[Text] = []
    for name, value in pairs:
        head = text(Cell(name.ljust(margin), "dim"))
        value_lines = text(value).wrap(console(), max(20, width - margin))
        for number, part in enumerate(value_lines or [text("")]):
            lines.append((head if number == 0 else text(" " * margin)) + part)
    return lines


def state(status: State) -> Cell:
    """Return a state in its colour."""
    return Cell(status.value, _STYLES.get(status, ""))


def count(number: int, style: str = "") -> Cell:
    """Return a number, dimmed if it is zero."""
    return Cell(f"{number:,}", style if number else "dim")


def span(seconds: float | None) -> str:
    """Return a duration in words."""
    if seconds is None:
        return NONE
    seconds = abs(seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    for unit, size, limit in _UNITS:
        amount = seconds / size
        if amount < limit:
            return (
                f"{amount:.1f} {unit}" if amount < 9.95 and unit == "s" else f"{amount:.0f} {unit}"
            )
    return f"{seconds / 86_400:,.0f} d"


_UNITS = (("s", 1, 119.5), ("min", 60, 119.5), ("h", 3600, 47.5))


def when(time: datetime | None, *, utc: bool = False, now: datetime | None = None) -> str:
    """Return a time relative to now, or exactly with `utc`."""
    if time is None:
        return NONE
    if utc:
        return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    seconds = (time - (now or datetime.now(UTC))).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(seconds)} ago"


def names(given: Iterable[str] | None, everything: str = "all") -> str:
    """Return a list of names, or `everything` if there is none."""
    return everything if given is None else ", ".join(sorted(given)) or NONE


def _cell(cell: str | Cell) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> list[int]:
    widths = [max(row[number].cell_len for row in rows) for number in range(len(columns))]
    excess = sum(widths) + len(GAP) * (len(columns) - 1) - width
    for number, column in enumerate(columns):
        if excess > 0 and column.least is not None:
            given = min(excess, max(0, widths[number] - column.least))
            widths[number] -= given
            excess -= given
    return widths


def _line(columns: Sequence[Column], widths: Sequence[int], row: Sequence[Text]) -> Text:
    line = text()
    for number, (column, width, cell) in enumerate(zip(columns, widths, row, strict=True)):
        cell.truncate(width, overflow="ellipsis")
        if column.right:
            cell.pad_left(width - cell.cell_len)
        elif number < len(columns) - 1:
            cell.pad_right(width - cell.cell_len)
        line.append_text(cell)
        if number < len(columns) - 1:
            line.append(GAP)
    return line
