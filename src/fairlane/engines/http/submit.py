"""submit: storing tasks, all or none."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core.dependencies import check_batch
from fairlane.core.flow import Flow, writes
from fairlane.core.model import Accepted, NewTask, microseconds_of
from fairlane.engines.http.calls import post
from fairlane.wire.submission import BatchAccepted, encode_submission
from fairlane.wire.times import time_of


@writes
def submit(_: object, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    return (yield from send(tasks))


def send(tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    """Send tasks to the server."""
    if not tasks:
        return []
    check_batch(tasks)
    body = {"tasks": [encode_submission(task) for task in tasks]}
    answer = yield from post("/api/v1/tasks/batch", body, BatchAccepted)
    return [
        Accepted(
            each.task_id,
            each.status,
            microseconds_of(time_of(each.created_at)),
            each.known,
        )
        for each in answer.tasks
    ]
