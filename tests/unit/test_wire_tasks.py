"""The table of public field names covers every field, in both directions."""

from datetime import timedelta

import msgspec
import pytest

from fairlane.core.inputs import TaskInput
from fairlane.core.model import Attempt, Progress, Task, TaskError
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from fairlane.wire.tasks import (
    ELSEWHERE,
    FIELDS,
    LARGE,
    TaskSummary,
    TaskView,
    decode_task,
    encode_summary,
    encode_task,
)
from tests.unit import make

TIME = make.NOON + timedelta(microseconds=123456)
ERROR = TaskError("m", "C", retriable=True, reason="timeout", traceback="t")
BARE = make.stored(payload=b'{"a": 1}', depends_on=())
FULL = make.stored(
    level=8,
    effective_level=10,
    state=State.COMPLETED,
    capabilities=("gpu",),
    claimed_at=TIME,
    started_at=TIME,
    completed_at=TIME,
    next_retry_at=TIME,
    expires_at=TIME,
    worker_id="w",
    result=b"null",
    error=ERROR,
    attempts=(
        Attempt(1, "w", TIME, TIME, "failed", ERROR),
        Attempt(2, None, None, TIME, "x", None),
    ),
    progress=Progress(50.0, "half", TIME),
    tags={"k": "v"},
    idempotency_key="i",
    traceparent="p",
    retry=RetryPolicy(1.0, 2.0, 3.0, 0.5),
    workflow_id="wf",
    schedule_id="s",
    owner="o",
    depends_on=("d",),
    tolerant=True,
    inputs={"order": TaskInput(("d",), many=True, path=("lines", 0))},
)


def names(kind: type[msgspec.Struct]) -> list[str]:
    return sorted(kind.__struct_fields__)


def test_every_field_of_the_core_and_of_the_api_is_in_the_table_once() -> None:
    assert sorted(field.core for field in FIELDS) == sorted({*names(Task)} - ELSEWHERE)
    assert sorted(field.public for field in FIELDS) == names(TaskView)
    assert sorted({field.public for field in FIELDS} - LARGE) == names(TaskSummary)


@pytest.mark.parametrize("task", [BARE, FULL])
def test_a_task_survives_json(task: Task) -> None:
    sent = msgspec.json.encode(encode_task(task))
    assert decode_task(msgspec.json.decode(sent, type=TaskView)) == task


def test_a_summary_has_no_large_fields_and_no_traceback() -> None:
    summary = msgspec.json.decode(msgspec.json.encode(encode_summary(FULL)))
    whole = msgspec.json.decode(msgspec.json.encode(encode_task(FULL)))
    whole["error"]["traceback"] = None
    assert summary == {name: value for name, value in whole.items() if name not in LARGE}
