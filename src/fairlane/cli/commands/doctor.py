"""Command `doctor`: check the store and its settings."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import msgspec

from fairlane import __version__
from fairlane.cli import json_output
from fairlane.cli.checks import Check, CheckStatus
from fairlane.cli.encryption_checks import check_encryption
from fairlane.cli.errors import CommandFailed, scrubbed
from fairlane.cli.options import json_option, store_option
from fairlane.cli.parsing import setting_text
from fairlane.cli.render import Cell, console, fields, span
from fairlane.cli.schedule_checks import check_schedules
from fairlane.cli.settings import resolve
from fairlane.cli.store import open_store
from fairlane.cli.worker_checks import check_held_back, check_unserved, check_workers
from fairlane.client.app import Fairlane
from fairlane.core import limits
from fairlane.core.audit import Action, Audit
from fairlane.core.backend import Backend
from fairlane.core.errors import FairlaneError, InvalidInput
from fairlane.core.facts import Facts
from fairlane.core.held_back import holders
from fairlane.core.model import Overdue
from fairlane.core.priority import MICROSECONDS, Aging
from fairlane.core.retention import Retention
from fairlane.core.states import State
from fairlane.core.stats import HOUR, Stats, stats_of
from fairlane.core.store_settings import StoreSettings
from fairlane.core.unserved import unserved

PATIENCE = 2.0
CLOCK_SECONDS = 5.0
"""How much the store's clock may differ from ours without a warning."""
DRIVERS = ("psycopg", "asyncpg", "redis", "hiredis", "uvloop", "cryptography")


_CELLS = {
    CheckStatus.OK: Cell("ok", "green"),
    CheckStatus.WARNING: Cell("note", "yellow"),
    CheckStatus.WRONG: Cell("WRONG", "bold red"),
}


@click.command("doctor")
@store_option
@json_option
def doctor_command(store: str | None, as_json: bool) -> None:
    """Check the store and its settings; exit code 1 on errors."""
    settings = resolve({"store": store})
    url = scrubbed(settings.store_url)
    checks = [_versions()]
    try:
        with open_store(store, patience=PATIENCE) as app:
            asyncio.run(_check_store(app, url, checks))
    except InvalidInput:
        raise  # the URL itself is wrong
    except (CommandFailed, FairlaneError) as error:
        checks.append(Check("store", CheckStatus.WRONG, scrubbed(error.message)))
    well = all(each.status is not CheckStatus.WRONG for each in checks)
    if as_json:
        found = [{"check": c.check, "status": c.status, "message": c.message} for c in checks]
        json_output.emit({"ok": well, "store": url, "checks": found})
    else:
        _show(checks)
    sys.exit(0 if well else 1)


async def _check_store(app: Fairlane, url: str, checks: list[Check]) -> None:
    """Make all checks that need the store. An exception ends them."""
    backend = app.backend
    try:
        began = time.monotonic()
        found = await backend.run(backend.ops.version())
        took = time.monotonic() - began
        checks.append(Check("store", CheckStatus.OK, f"{url} answered within {span(took)}."))
        try:
            await backend.run(backend.ops.verify())
        except FairlaneError as error:
            checks.append(Check("schema", CheckStatus.WRONG, error.message))
            return
        what = "api" if backend.driver.remote else "schema"
        checks.append(Check(what, CheckStatus.OK, f"Version {found}, which is current."))
        durability = await backend.driver.durability()
        settings = ", ".join(f"{name} {value}" for name, value in durability.settings.items())
        checks.append(Check("durability", CheckStatus.OK, f"{durability.engine}: {settings}."))
        checks += [Check("durability", CheckStatus.WARNING, each) for each in durability.warnings]
        checks.append(_settings(await backend.run(backend.ops.settings())))
        checks += await check_encryption(backend, app.url, app.encryption_keys)
        if not backend.driver.remote:
            checks += _remakes((await backend.run(backend.ops.audit(limits.PAGE))).entries)
        before = time.time()
        facts = await backend.run(backend.ops.facts())
        checks.append(clock_check(facts.now / MICROSECONDS, before, time.time()))
        checks += _check_work(facts, stats_of(facts), await _overdue(backend))
        if not backend.driver.remote:
            checks += await check_schedules(backend, facts.now)
    finally:
        await app.aclose()


async def _overdue(backend: Backend) -> list[Overdue]:
    """Return runs that should have ended by now. A server ends them itself."""
    if backend.driver.remote:
        return []
    return await backend.run(backend.ops.expired(limits.BATCH))


def _versions() -> Check:
    drivers = [f"{name} {found}" for name in DRIVERS if (found := _installed(name))]
    python = ".".join(map(str, sys.version_info[:3]))
    return Check(
        "installed",
        CheckStatus.OK,
        f"Fairlane {__version__}, Python {python}; {', '.join(drivers) or 'no further drivers'}.",
    )


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def clock_check(theirs: float, before: float, after: float) -> Check:
    """Compare the store's clock with ours, which was read before and after it."""
    difference = max(before - theirs, theirs - after, 0.0)
    if difference <= CLOCK_SECONDS:
        return Check(
            "clock", CheckStatus.OK, f"The store's differs from ours by {difference:.1f} s."
        )
    return Check(
        "clock",
        CheckStatus.WARNING,
        f"The store's clock is {span(difference)} {'ahead' if theirs > after else 'behind'}: "
        "tasks go by the store's, so give delays rather than times, and set the clocks.",
    )


def _check_work(facts: Facts, stats: Stats, overdue: list[Overdue]) -> Iterator[Check]:
    alive = stats.workers.active + stats.workers.draining + stats.workers.unhealthy
    queued, executing = stats.by_status[State.QUEUED], stats.by_status[State.EXECUTING]
    yield from check_workers(stats, alive, queued)
    oldest = max(
        (band.oldest_age_seconds for band in stats.queues.values() if band.depth), default=0.0
    )
    message = (
        f"{queued:,} queued"
        + (f" (the oldest for {span(oldest)})" if queued else "")
        + f", {executing:,} executing, {stats.by_status[State.SCHEDULED]:,} scheduled, "
        f"{stats.by_status[State.RETRYING]:,} to be retried."
    )
    yield Check("tasks", CheckStatus.WARNING if oldest > HOUR else CheckStatus.OK, message)
    if alive:  # otherwise no worker serves anything, which is said above
        yield from check_held_back(holders(facts.workers))
        yield from check_unserved(unserved(facts))
    # A silent worker is dead only once maintenance has found it: count its tasks as well.
    late = len(overdue) + sum(len(each.current_tasks) for each in facts.workers if each.lost)
    if late:
        yield Check(
            "overdue",
            CheckStatus.WARNING if alive else CheckStatus.WRONG,
            f"{late:,}{'' if len(overdue) < limits.BATCH else ' or more'} executing are past their "
            "time limit or their worker is gone: the maintenance of a worker ends them.",
        )
    yield from _controls(facts, stats)


def _settings(found: StoreSettings) -> Check:
    """Show the settings of the store. No value is wrong: the store refuses those that are."""

    def listed(part: Aging | Retention) -> str:
        values = msgspec.structs.asdict(part).items()
        return ", ".join(f"{name} {setting_text(seconds)}" for name, seconds in values)

    version = f"version {found.version}" if found.version else "the defaults"
    message = (
        f"{version}. Aging: {listed(found.aging)}. Retention: {listed(found.retention)}. "
        f"Tasks of dead workers come back {_coming_back(found.requeue_spread)}."
    )
    return Check("settings", CheckStatus.OK, message[:1].upper() + message[1:])


def _coming_back(spread: float) -> str:
    return f"over {setting_text(spread)}" if spread else "at once"


def _remakes(entries: list[Audit]) -> Iterator[Check]:
    """Show when the store was last made again because it was empty."""
    for entry in entries:
        if entry.action == Action.REMAKE:
            yield Check(
                "store",
                CheckStatus.WARNING,
                f"It was empty on {entry.at:%Y-%m-%d at %H:%M} UTC, and {entry.actor} made it "
                "again: what was stored before is gone.",
            )
            return


def _controls(facts: Facts, stats: Stats) -> Iterator[Check]:
    controls = facts.controls
    paused: list[Any] = ["everything"] if controls.everything.paused else []
    paused += [f"queue {name}" for name in sorted(controls.paused_queues)]
    paused += [f"type {name}" for name, rules in sorted(controls.types.items()) if rules.paused]
    if paused:
        yield Check("flow", CheckStatus.WARNING, f"Paused: {', '.join(paused)}.")
    broken = [
        name for name, rules in sorted(controls.types.items()) if rules.open_until is not None
    ]
    if broken:
        yield Check("flow", CheckStatus.WARNING, f"Circuit breakers are open: {', '.join(broken)}.")
    if stats.dlq_size:
        yield Check(
            "dead letters", CheckStatus.WARNING, f"{stats.dlq_size:,}: see `fairlane dlq analysis`."
        )


def _show(checks: list[Check]) -> None:
    out = console()
    mark = max(len(cell.text) for cell in _CELLS.values()) + 2
    for check in checks:
        cell = _CELLS[check.status]
        (head, *rest) = fields([(check.check.ljust(12), check.message)], out.width - mark)
        from rich.text import Text  # noqa: PLC0415

        out.print(Text(cell.text.ljust(mark), style=cell.style) + head)
        for line in rest:
            out.print(Text(" " * mark) + line)
