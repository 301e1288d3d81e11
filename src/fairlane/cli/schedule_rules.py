"""Rules of schedules on the command line."""

from __future__ import annotations

import click

from fairlane.cli.errors import UsageError
from fairlane.cli.parsing import duration
from fairlane.core.recurrence import Recurrence, cron, every
from fairlane.core.schedules import Overlap

tz_option = click.option("--tz", metavar="ZONE", help="Its time zone. [default: UTC]")
every_option = click.option(
    "--every", type=duration, metavar="TIME", help="Every 90 (seconds), 10m, 1.5h, 2d."
)
offset_option = click.option(
    "--offset", type=duration, metavar="TIME", help="With --every: so much later. [default: 0]"
)
overlap_option = click.option(
    "--overlap",
    type=click.Choice([each.value for each in Overlap]),
    help="If the task before has not ended.",
)


def rule_of(
    expression: str | None, tz: str | None, interval: float | None, offset: float | None
) -> Recurrence:
    """Return the rule that is meant. Raises UsageError."""
    if (expression is None) == (interval is None):
        raise UsageError("Say either a cron rule or --every.")
    if interval is None:
        if offset is not None:
            raise UsageError("--offset is for --every.")
        return cron(expression or "", "UTC" if tz is None else tz)
    if tz is not None:
        raise UsageError("--tz is for a cron rule: --every is counted from 1970, in any zone.")
    return every(interval, offset or 0.0)
