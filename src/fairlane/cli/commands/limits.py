"""Commands `pause`, `resume` and `limit`."""

from __future__ import annotations

from typing import Literal

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.bulk_changes import confirm
from fairlane.cli.commands.changes import yes_option
from fairlane.cli.errors import UsageError
from fairlane.cli.options import json_option, store_option
from fairlane.cli.parsing import breaker_of
from fairlane.cli.render import NONE, Cell, Column, Row, console, fields, table, when
from fairlane.cli.store import open_store
from fairlane.core.audit import Action, subject_of
from fairlane.core.breaker import Breaker
from fairlane.core.lanes import Controls, Rules, checked_scope
from fairlane.core.model import moment_or_none
from fairlane.wire.limits import controls_of, type_rules

COLUMNS = (
    Column("type", least=10),
    Column("state"),
    Column("per second", right=True),
    Column("at once", right=True),
    Column("time limit", right=True),
    Column("circuit breaker", wide=70),
)

queue_option = click.option("--queue", metavar="NAME", help="This queue.")
type_option = click.option("--type", metavar="NAME", help="This type.")


@click.command("pause")
@queue_option
@type_option
@yes_option
@store_option
@json_option
def pause_command(
    queue: str | None, type: str | None, yes: bool, store: str | None, as_json: bool
) -> None:
    """Start no more tasks of a queue, of a type, or at all.

    Running tasks go on. Without --queue or --type, everything is paused, after a question.
    """
    if queue is None and type is None and not yes:
        confirm("Pause everything (--queue or --type pauses one queue or type)?", as_json=as_json)
    _set_pause(queue, type, store, paused=True, as_json=as_json)


@click.command("resume")
@queue_option
@type_option
@store_option
@json_option
def resume_command(queue: str | None, type: str | None, store: str | None, as_json: bool) -> None:
    """Start tasks again after a pause.

    Without --queue or --type it ends a pause of everything; pauses of single queues and types
    stay.
    """
    _set_pause(queue, type, store, paused=False, as_json=as_json)


def _set_pause(
    queue: str | None, type: str | None, store: str | None, *, paused: bool, as_json: bool
) -> None:
    if queue is not None and type is not None:
        raise UsageError("Give either --queue or --type, not both.")
    checked_scope(queue if type is None else type)
    with open_store(store) as app:
        controls = app.run_sync(app.backend.ops.pause(paused, queue=queue, type=type))
        record(app, Action.PAUSE if paused else Action.RESUME, subject_of(queue, type))
    if as_json:
        json_output.emit(controls_of(controls))
        return
    what = f"Queue {queue}" if queue else f"Type {type}" if type else "Everything"
    verb = "is paused: running tasks go on" if paused else "is no longer paused"
    click.echo(f"{what} {verb}.")


@click.command("limit")
@click.argument("type", metavar="[TYPE]", required=False)
@click.option("--everything", is_flag=True, help="Limit the rate of all types together.")
@click.option("--rate", type=float, metavar="N", help="Starts per second; 0 for unlimited.")
@click.option("--concurrency", type=int, metavar="N", help="Tasks at once; 0 for unlimited.")
@click.option(
    "--timeout", type=float, metavar="SECONDS", help="For tasks that name none; 0 removes it."
)
@click.option(
    "--breaker",
    metavar="N,T,C",
    help="After N failures within T seconds start no more of the type for C seconds.",
)
@click.option("--no-breaker", is_flag=True, help="Remove the circuit breaker.")
@store_option
@json_option
def limit_command(
    type: str | None,
    everything: bool,
    rate: float | None,
    concurrency: int | None,
    timeout: float | None,
    breaker: str | None,
    no_breaker: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Show or set rates, concurrency, time limits and circuit breakers.

    Limits apply to all workers together, from the next claim on.
    """
    if breaker is not None and no_breaker:
        raise UsageError("Give either --breaker or --no-breaker, not both.")
    circuit: Breaker | Literal[False] | None = False if no_breaker else None
    if breaker is not None:
        circuit = breaker_of(breaker)
    changes = any(each is not None for each in (rate, concurrency, timeout, circuit))
    if changes and (type is None) is not everything:
        raise UsageError("Name the type to be limited, or say --everything: one of the two.")
    if everything and any(each is not None for each in (concurrency, timeout, circuit)):
        raise UsageError("Everything together can only be limited by --rate.")
    checked_scope(type)
    with open_store(store) as app:
        ops = app.backend.ops
        controls = app.run_sync(
            ops.limit(type, rate=rate, concurrency=concurrency, breaker=circuit, timeout=timeout)
            if changes
            else ops.controls()
        )
        if changes:
            given = {
                "rate": rate,
                "concurrency": concurrency,
                "timeout": timeout,
                "breaker": breaker,
            }
            if no_breaker:
                given["breaker"] = "none"
            record(app, Action.LIMIT, subject_of(None, type), **given)
    if as_json:
        json_output.emit(
            controls_of(controls) if type is None else type_rules(type, _rules_of(type, controls))
        )
    else:
        _show(controls, type)


def _rules_of(type: str, controls: Controls) -> Rules:
    return controls.types.get(type, Rules())


def _show(controls: Controls, type: str | None) -> None:
    out = console()
    if type is None:
        everything = controls.everything
        pairs = [
            ("everything", "paused" if everything.paused else "active"),
            ("rate", f"{everything.rate:g} per second" if everything.rate else "unlimited"),
            ("paused queues", ", ".join(sorted(controls.paused_queues)) or NONE),
        ]
        for line in fields(pairs, out.width):
            out.print(line)
        if not controls.types:
            return
        out.print()
    shown_types = sorted(controls.types) if type is None else [type]
    rows = [_row(name, _rules_of(name, controls)) for name in shown_types]
    for line in table(COLUMNS, rows, out.width):
        out.print(line)


def _row(name: str, rules: Rules) -> Row:
    state = Cell("paused", "yellow") if rules.paused else Cell("active")
    breaker = Cell(NONE, "dim")
    if rules.breaker is not None:
        described = (
            f"{rules.breaker.failures} within {rules.breaker.within:g} s: "
            f"off for {rules.breaker.cooldown:g} s"
        )
        breaker = Cell(described)
    if rules.open_until is not None:
        state = Cell(f"open, probe {when(moment_or_none(rules.open_until))}", "red")
    return (
        name,
        state,
        f"{rules.rate:g}" if rules.rate else Cell("unlimited", "dim"),
        f"{rules.concurrency:,}" if rules.concurrency else Cell("unlimited", "dim"),
        f"{rules.timeout:g} s" if rules.timeout else Cell(NONE, "dim"),
        breaker,
    )
