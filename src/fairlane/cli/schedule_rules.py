"""Options for rules of schedules."""

from __future__ import annotations

import click

from fairlane.cli.parsing import duration
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
