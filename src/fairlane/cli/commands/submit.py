"""Command `submit`: one task, or a file of tasks."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from fairlane.cli import json_output, task_files
from fairlane.cli.bulk_changes import progress
from fairlane.cli.errors import CommandFailed, UsageError, note
from fairlane.cli.escapes import harmless_json
from fairlane.cli.options import json_option, store_option
from fairlane.cli.parsing import duration, instant, payload_of
from fairlane.cli.render import console
from fairlane.cli.settings import resolve
from fairlane.cli.store import open_store
from fairlane.cli.task_options import (
    as_is_option,
    capability_option,
    delay_option,
    options_of,
    priority_option,
    queue_option,
    retries_option,
    tag_option,
    templates_of,
    timeout_option,
)
from fairlane.client import wait_notes
from fairlane.client.app import Fairlane
from fairlane.core import limits
from fairlane.core.errors import FairlaneError
from fairlane.core.model import Accepted, NewTask
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.runtime.calls import not_yet
from fairlane.runtime.failures import failure_of
from fairlane.runtime.tasks import Task
from fairlane.wire.tasks import encode_task

REASON_SECONDS = 3.0
"""How long a task may wait before a note says why, and how often that is checked."""
GLANCE_SECONDS = 0.5
"""The interval at which a terminal shows a task's progress."""


@click.command("submit")
@click.argument("type", required=False)
@click.argument("payload", metavar="[JSON|@FILE|-]", required=False)
@priority_option
@queue_option
@delay_option
@click.option("--run-at", type=instant, metavar="TIME", help="Run it at 2026-01-31T12:00Z.")
@click.option("--expires-at", type=instant, metavar="TIME", help="Do not start it after this time.")
@click.option("--key", metavar="TEXT", help="Idempotency key: the same key, the same task.")
@retries_option
@timeout_option
@tag_option
@capability_option
@click.option("--depends-on", multiple=True, metavar="ID", help="Run it after this task.")
@click.option("--unique", is_flag=True, help="Only if the same task neither waits nor runs.")
@as_is_option
@click.option("--wait", is_flag=True, help="Wait for it and print its result.")
@click.option("--timeout-wait", type=duration, metavar="TIME", help="Wait no longer than this.")
@click.option(
    "--file",
    "path",
    metavar="FILE",
    help="Submit a file with one JSON object per line; - for stdin.",
)
@store_option
@json_option
def submit_command(
    type: str | None,
    payload: str | None,
    path: str | None,
    as_is: bool,
    wait: bool,
    timeout_wait: float | None,
    store: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Submit a task, or a file of tasks.

    What is not said is taken from the definition of the type, which workers publish: its queue,
    priority, retries, time limit and so on. Arguments that do not fit are refused.

    Prints the id of the task. With --wait it prints the result; the exit code is 1 unless the task
    completes.

    \b
    fairlane submit send_email '{"to": "a@example.com"}' --priority high
    fairlane submit report @day.json --delay 10m
    fairlane submit --file tasks.jsonl --queue mail

    Lines of a file have the fields type, payload, queue, priority, required_capabilities,
    max_retries, timeout_seconds, delay_seconds, run_at, expires_at, idempotency_key, unique, tags,
    depends_on and task_id. Flags apply to what a line leaves out. If a line is bad, nothing is
    submitted.
    """
    options = _options(**given) | {"payload_bytes": resolve().payload_bytes}
    if timeout_wait is not None and not wait:
        raise UsageError("--timeout-wait is for --wait.")
    if path is not None:
        if payload is not None or wait:
            raise UsageError("--file takes neither a payload nor --wait: its lines have payloads.")
        defaults = options if type is None else {"type": type, **options}
        _submit_file(path, defaults, store, as_is=as_is, as_json=as_json)
        return
    if type is None:
        raise UsageError("Say which type of task: fairlane submit TYPE '{…}', or --file FILE.")
    content = payload_of(payload)
    new_task(type, content, **options)  # what is wrong in itself needs no store to be refused
    with open_store(store, prepare=True) as app:
        templates = {} if as_is else templates_of(app, type)
        task = task_files.submission_of(type, content, options, templates)
        (accepted,) = app.submit_tasks_sync([task])
        if accepted.known:
            note(f"The task exists already: {accepted.task_id} is {accepted.state}.")
        if not wait:
            _show_accepted(accepted.task_id, accepted.state, accepted.known, as_json=as_json)
            return
    # Waiting uses an event loop, which needs connections of its own.
    with open_store(store) as app:
        ended = asyncio.run(_wait(app, accepted.task_id, timeout_wait))
    _show_end(ended, accepted.task_id, as_json=as_json)


def _options(
    run_at: datetime | None,
    expires_at: datetime | None,
    key: str | None,
    depends_on: tuple[str, ...],
    unique: bool,
    **given: Any,
) -> dict[str, Any]:
    """Return the options that were given, with the names of `new_task`."""
    own: dict[str, Any] = {
        "run_at": run_at,
        "expires_at": expires_at,
        "idempotency_key": key,
        "depends_on": depends_on or None,
        "unique": unique or None,
    }
    return options_of(**given) | {name: value for name, value in own.items() if value is not None}


def _submit_file(
    path: str, defaults: dict[str, Any], store: str | None, *, as_is: bool, as_json: bool
) -> None:
    submitted = known = 0
    with task_files.open_twice(path) as file:
        task_files.check(file, path, defaults, {})  # before a store is needed
        with open_store(store, prepare=True) as app:
            templates = {} if as_is else templates_of(app)
            file.seek(0)
            total = task_files.check(file, path, defaults, templates)
            with progress("submitted", total) as advance:
                for batch in _batches(task_files.tasks(file, defaults, templates)):
                    accepted = _submit_batch(app, batch, submitted)
                    submitted += len(accepted)
                    known += sum(each.known for each in accepted)
                    advance(len(accepted))
    if as_json:
        json_output.emit({"submitted": submitted - known, "known": known})
    else:
        there = f", {known:,} existed already" if known else ""
        new = submitted - known
        click.echo(f"{new:,} {'task' if new == 1 else 'tasks'} submitted{there}.")


def _submit_batch(app: Fairlane, batch: Sequence[NewTask], submitted: int) -> list[Accepted]:
    """Submit tasks of a file. `submitted`: how many of them were submitted before."""
    try:
        return app.submit_tasks_sync(batch)
    except FairlaneError as error:
        if not submitted:
            raise
        raise CommandFailed(
            f"{submitted:,} tasks were submitted, those from task {submitted + 1:,} of "
            f"the file on were not: {error.message}"
        ) from None


def _batches(tasks: Iterator[NewTask]) -> Iterator[Sequence[NewTask]]:
    batch: list[NewTask] = []
    for task in tasks:
        batch.append(task)
        if len(batch) == limits.SUBMIT_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _show_accepted(task_id: str, state: State, known: bool, *, as_json: bool) -> None:
    if as_json:
        json_output.emit({"task_id": task_id, "status": state, "known": known})
    else:
        click.echo(task_id)


async def _wait(app: Fairlane, task_id: str, seconds: float | None) -> Task | None:
    """Wait until the task has ended, and return it. Notes say why it waits, and a terminal shows
    its progress."""
    level = wait_notes.logger.level
    wait_notes.logger.setLevel(logging.ERROR)  # its lines would repeat the notes
    beside = [_show_reasons(app, task_id)]
    if sys.stderr.isatty():
        beside.append(_show_progress(app, task_id))
    showing = [asyncio.create_task(each) for each in beside]
    try:
        async with asyncio.timeout(seconds):
            return await app.ended(task_id)
    except TimeoutError:
        raise await not_yet(app, task_id, seconds) from None
    finally:
        for each in showing:
            each.cancel()
        await asyncio.gather(*showing, return_exceptions=True)
        await app.aclose()
        wait_notes.logger.setLevel(level)


async def _show_reasons(app: Fairlane, task_id: str) -> None:
    """Print why the task still waits after a moment, and again whenever the reason changes."""
    printed: tuple[str, str] | None = None
    while True:
        await asyncio.sleep(REASON_SECONDS)
        decisive = next(iter(await app.why(task_id) or ()), None)
        if decisive is None:
            continue
        # Numbers in these sentences change all the time.
        counting = decisive.code in {"due", "position"}
        reason = (decisive.code, "" if counting else decisive.message)
        if reason != printed:
            printed = reason
            note(f"Task {task_id} waits. {decisive.message}")


async def _show_progress(app: Fairlane, task_id: str) -> None:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        console=console(stderr=True),
        transient=True,
    )
    with bar:
        row = bar.add_task("waiting", total=None)
        while True:
            task = await app.get(task_id)
            if task is not None:
                percent = None if task.progress is None else task.progress.percent
                bar.update(
                    row,
                    description=task.state.value,
                    total=None if percent is None else 100,
                    completed=percent,
                )
            await asyncio.sleep(GLANCE_SECONDS)


def _show_end(task: Task | None, task_id: str, *, as_json: bool) -> None:
    if task is None:
        raise CommandFailed(f"Task {task_id} was deleted before it ended.")
    if as_json:
        json_output.emit(encode_task(task.stored))
    elif task.state is State.COMPLETED:
        result = msgspec.json.format(task.stored.result or b"null", indent=2).decode("utf-8")
        click.echo(harmless_json(result))
    if task.state is not State.COMPLETED:
        raise CommandFailed(failure_of(task).message)
