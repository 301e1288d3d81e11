"""Change many tasks: by id, or by filter after a confirmation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.errors import EXIT_FAILURE, UsageError, note, print_error
from fairlane.cli.render import console
from fairlane.client.app import Fairlane
from fairlane.core import limits
from fairlane.core.audit import Action, detail_of
from fairlane.core.errors import InvalidFilter
from fairlane.core.filters import Filter, Total
from fairlane.core.flow import Op
from fairlane.core.ids import checked
from fairlane.core.machine import TRANSITIONS, Verb
from fairlane.core.model import Swept
from fairlane.core.states import State
from fairlane.wire.changes import Change as Answer
from fairlane.wire.changes import SweptView, changes_of

ById = Callable[[Sequence[str]], Op[Sequence[Any]]]
ByFilter = Callable[[Filter, str | None], Op[Swept]]


class BulkChange(msgspec.Struct, frozen=True):
    """A verb of the store with its infinitive and participle: cancel, cancelled."""

    verb: Verb
    infinitive: str
    participle: str

    @property
    def action(self) -> Action:
        """The action in the audit log."""
        return Action(f"task.{self.verb}")


def change_ids(
    app: Fairlane,
    change: BulkChange,
    task_ids: Sequence[str],
    apply: ById,
    *,
    as_json: bool,
    among: frozenset[State] | None = None,
) -> None:
    """Change tasks by id. Print why if one cannot be changed, and exit with code 1.

    `among`: the states in which tasks may be changed, if not all that the verb allows.
    """
    for task_id in task_ids:
        checked(task_id)
    answers: list[Answer] = []
    for start in range(0, len(task_ids), limits.BATCH):
        answers += app.run_sync(apply(task_ids[start : start + limits.BATCH]))
    applied = sum(answer.applied for answer in answers)
    if applied:
        record(app, change.action, f"{applied} by id", task_ids=task_ids)
    if as_json:
        json_output.emit(changes_of(answers))
    else:
        click.echo(_summary(applied, change.participle))
    for each in answers:
        if not each.applied:
            print_error(_why_not(each, change, among or TRANSITIONS[change.verb].sources))
    if applied < len(answers):
        sys.exit(EXIT_FAILURE)


def _why_not(answer: Answer, change: BulkChange, allowed: frozenset[State]) -> str:
    if answer.state is None:
        return f"There is no task {answer.task_id}."
    return (
        f"Task {answer.task_id} is {answer.state} and was not {change.participle}: "
        f"that is for tasks that are {', '.join(sorted(allowed))}."
    )


def change_filtered(
    app: Fairlane, change: BulkChange, chosen: Filter, apply: ByFilter, *, yes: bool, as_json: bool
) -> None:
    """Change all tasks that match a filter, after the user has confirmed their number."""
    total = _count_affected(app, change, chosen)
    if total.count and not yes:
        confirm(f"{change.infinitive.capitalize()} {_number_of_tasks(total)}?", as_json=as_json)
    matched = applied = 0
    cursor: str | None = None
    try:
        with progress(change.participle, total.count if total.exact else None) as advance:
            while True:
                swept = app.run_sync(apply(chosen, cursor))
                matched += swept.matched
                applied += swept.applied
                cursor = swept.cursor
                advance(swept.matched)
                if cursor is None:
                    break
    finally:  # changes before an interruption stay
        if applied:
            record(app, change.action, f"{applied} by filter", **detail_of(chosen))
    if as_json:
        json_output.emit(SweptView(matched=matched, applied=applied))
    else:
        click.echo(_summary(applied, change.participle))
    if applied < matched:
        note(f"{matched - applied:,} had changed in the meantime and were left alone.")


def _count_affected(app: Fairlane, change: BulkChange, chosen: Filter) -> Total:
    """Return the number of tasks in states that the change allows."""
    allowed = TRANSITIONS[change.verb].sources
    states = allowed if chosen.states is None else allowed & chosen.states
    if not states:
        raise InvalidFilter(
            f"To {change.infinitive} tasks, choose among those that are "
            f"{', '.join(sorted(allowed))}."
        )
    return app.run_sync(app.backend.ops.total(msgspec.structs.replace(chosen, states=states)))


def confirm(question: str, *, as_json: bool) -> None:
    """Exit unless the user says yes. Programs must pass --yes."""
    if as_json or not _is_interactive():
        raise UsageError(f"{question} Nobody is there to answer: add --yes.")
    if not click.confirm(question, err=True):
        note("Nothing was changed.")
        sys.exit(EXIT_FAILURE)


def _is_interactive() -> bool:
    return sys.stdin.isatty()


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    )
    with bar:
        row = bar.add_task(what, total=total)
        yield lambda done: bar.advance(row, done)


def _number_of_tasks(total: Total) -> str:
    more = "" if total.exact else "at least "
    return f"{more}{total.count:,} {'task' if total.count == 1 else 'tasks'}"


def _summary(applied: int, participle: str) -> str:
    return f"{applied:,} {'task' if applied == 1 else 'tasks'} {participle}."
