"""resume and delete a workflow: the server does both."""

from __future__ import annotations

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked
from fairlane.core.model import Deleted, Replayed
from fairlane.engines.http.calls import Call, decode, encode
from fairlane.engines.http.errors import code_of
from fairlane.http_client import Reply
from fairlane.wire.changes import ChangeView, SweptView


@writes
def resume_workflow(
    _: object, workflow_id: str, *, from_node: str | None = None
) -> Flow[list[Replayed]]:
    body = encode({"from": from_node})
    changes = yield from _change(Call("POST", f"{_path(workflow_id)}/resume", body))
    return [Replayed(each.task_id, each.applied, each.previous_status) for each in changes]


@writes
def delete_workflow(_: object, workflow_id: str) -> Flow[list[Deleted]]:
    changes = yield from _change(Call("DELETE", _path(workflow_id)))
    return [Deleted(each.task_id, each.applied, each.previous_status) for each in changes]


def _path(workflow_id: str) -> str:
    return f"/api/v1/workflows/{checked(workflow_id)}"


def _change(call: Call) -> Flow[tuple[ChangeView, ...]]:
    reply: Reply = yield call
    if code_of(reply) == "workflow_not_found":
        return ()
    answer = decode(reply, SweptView)
    assert isinstance(answer.results, tuple)
    return answer.results
