"""Command `settings`: how tasks age, how long things are kept, how tasks of dead workers return."""

from __future__ import annotations

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.options import json_option, store_option
from fairlane.cli.parsing import pairs_of, setting_text, settings_of
from fairlane.cli.render import console, fields
from fairlane.cli.store import open_store
from fairlane.core.audit import Action
from fairlane.core.store_settings import DEFAULT, StoreSettings


@click.command("settings")
@click.argument("values", metavar="[NAME=TIME]...", nargs=-1)
@click.option(
    "--if-version", type=int, metavar="N", help="Set only if the settings still have this version."
)
@store_option
@json_option
def settings_command(
    values: tuple[str, ...], if_version: int | None, store: str | None, as_json: bool
) -> None:
    """Show or set how tasks age, how long things are kept, and when tasks of dead workers return.

    completed=30d keeps completed tasks for 30 days; low-to-medium=5m lets a task of low priority
    count as medium after 5 minutes; never turns a step off; requeue-spread=1m lets the tasks that
    a dead worker had started come back over a minute, not at once. Settings hold for all processes,
    from the next claim or death on.
    """
    changes = settings_of(pairs_of(values))
    with open_store(store) as app:
        ops = app.backend.ops
        if changes:
            found = app.run_sync(ops.change_settings(changes, version=if_version))
            record(app, Action.CHANGE_SETTINGS, **_texts(changes))
        else:
            found = app.run_sync(ops.settings())
    if as_json:
        json_output.emit(found)
    else:
        _show(found)


def _texts(values: dict[str, float | None]) -> dict[str, str]:
    return {name: setting_text(seconds) for name, seconds in values.items()}


def _show(found: StoreSettings) -> None:
    out = console()
    defaults = _texts(DEFAULT.values())
    pairs = [("version", str(found.version))]
    for name, text in _texts(found.values()).items():
        usual = "" if text == defaults[name] else f" (default: {defaults[name]})"
        pairs.append((name, text + usual))
    for line in fields(pairs, out.width):
        out.print(line)
