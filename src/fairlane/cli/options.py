"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from fairlane.cli.errors import UsageError
from fairlane.cli.parsing import past, tags_of
from fairlane.core import limits
from fairlane.core.filters import EVERYTHING, Filter, new_filter
from fairlane.core.priority import priority_of
from fairlane.core.states import State

F = TypeVar("F", bound=Callable[..., Any])

store_option = click.option(
    "--store", metavar="URL", help="The store. [default: sqlite:///fairlane.db]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
utc_option = click.option("--utc", is_flag=True, help="Print exact times, in UTC.")
blobs_option = click.option(
    "--blobs",
    metavar="URL",
    help="Where payloads above 256 KiB are kept: store, file:///path or s3://bucket.",
)
compress_results_option = click.option(
    "--compress-results", metavar="BYTES", help="Store results above this size compressed."
)
log_format_option = click.option(
    "--log-format", metavar="FORMAT", help="Log as text or as json. [default: text]"
)
log_transitions_option = click.option(
    "--log-transitions", is_flag=True, default=None, help="Log every transition of a task."
)
aging_option = click.option(
    "--aging", metavar="NAME=T,…", help="Set in the store: low_to_medium=10m,medium_to_high=20m."
)
retention_option = click.option(
    "--retention", metavar="NAME=T,…", help="Set in the store: completed=1d,failed=7d."
)
requeue_spread_option = click.option(
    "--requeue-spread",
    metavar="T",
    help="Set in the store: over which time the tasks that a dead worker had started come back.",
)
limit_option = click.option(
    "--limit",
    type=click.IntRange(1, limits.PAGE),
    default=20,
    help="At most this many.",
    show_default=True,
)
cursor_option = click.option(
    "--cursor", metavar="CURSOR", help="Continue where an earlier list ended."
)


def filter_options(*, states: bool = True) -> Callable[[F], F]:
    """Add options that choose tasks. The command receives a `Filter` as `chosen`."""

    def decorate(command: F) -> F:
        @wraps(command)
        def call_with_filter(*args: Any, **given: Any) -> Any:
            words = {name: given.pop(name, None) for name in _NAMES}
            return command(*args, chosen=_filter(words), **given)

        wrapped: Any = call_with_filter
        for option in reversed(_filters(states=states)):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


_NAMES = (
    *("status", "type", "queue", "priority", "tag", "worker", "owner", "schedule_id"),
    *("since", "until", "ended_before"),
)


def _filters(*, states: bool) -> list[Callable[[F], F]]:
    status = click.option(
        "--status",
        multiple=True,
        type=click.Choice([state.value for state in State]),
        help="Only tasks in this state. May be repeated, like most of these.",
    )
    return [
        *([status] if states else []),
        click.option("--type", multiple=True, metavar="NAME", help="Only tasks of this type."),
        click.option("--queue", multiple=True, metavar="NAME", help="Only tasks of this queue."),
        click.option(
            "--priority",
            multiple=True,
            metavar="P",
            help="Only tasks submitted with this priority: a name or 0 to 10.",
        ),
        click.option("--tag", multiple=True, metavar="K=V", help="Only tasks with this tag."),
        click.option("--worker", metavar="ID", help="Only tasks that this worker holds."),
        click.option("--owner", metavar="SUBJECT", help="Only tasks submitted with its tokens."),
        click.option("--schedule", "schedule_id", metavar="ID", help="Only its tasks."),
        click.option(
            "--since",
            type=past,
            metavar="TIME",
            help="Submitted since 2h (ago) or 2026-01-31T12:00Z.",
        ),
        click.option("--until", type=past, metavar="TIME", help="Submitted before."),
        click.option("--ended-before", type=past, metavar="TIME", help="Ended before."),
    ]


def _filter(words: dict[str, Any]) -> Filter:
    tags = words.pop("tag")
    given = {name: value for name, value in words.items() if value}
    if "priority" in given:
        given["priority"] = [priority_of(each) for each in given["priority"]]
    if tags:
        given["tags"] = tags_of(tags)
    return new_filter(**given) if given else EVERYTHING


def need_choice(task_ids: tuple[str, ...], chosen: Filter, *, everything: bool) -> None:
    """Raise UsageError unless tasks are chosen in one way: by id, by filter, or by --all."""
    by_filter = everything or chosen != EVERYTHING
    if task_ids and by_filter:
        raise UsageError("Name tasks by id or choose them by filter, not both.")
    if not task_ids and not by_filter:
        raise UsageError(
            "Name tasks by id, choose them by filter (--type, --status …), or say --all."
        )
