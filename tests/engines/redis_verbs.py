"""Every verb there is, used once: for tests about who may use them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from fairlane.core import limits
from fairlane.core.audit import Action, NewAudit
from fairlane.core.backend import Backend
from fairlane.core.breaker import Breaker
from fairlane.core.client_limits import Rate, Want
from fairlane.core.definitions import Definition
from fairlane.core.encryption import Encryption
from fairlane.core.filters import Filter
from fairlane.core.flow import Op
from fairlane.core.ids import new_id, new_run
from fairlane.core.membership import placed
from fairlane.core.model import (
    Ask,
    Beat,
    Membership,
    NewWorker,
    Report,
    Start,
    TaskError,
    WorkerStatus,
)
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.quotas import Made
from fairlane.core.recurrence import every
from fairlane.core.reruns import Rerun
from fairlane.core.retention import Retention
from fairlane.core.schedules import new_schedule
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.tokens import issued
from tests.engines.redis_kit import PATIENT
from tests.fixtures.stores import settlement

TOMORROW = datetime.now(UTC) + timedelta(days=1)


async def everything(backend: Backend) -> set[str]:
    """Uses every verb there is; answers which."""
    ops, used = backend.ops, set()

    async def do(op: Op[Any]) -> Any:
        used.add(op.name)
        return await backend.run(op)

    await do(ops.migrate())
    await do(ops.verify())
    await do(ops.version())
    await do(ops.shift_clock(0.0))
    wakeup = await backend.driver.listen()

    worker = new_id()
    await do(ops.register(NewWorker(worker)))
    plain = [new_task("work", {"n": n}, queue="q", expires_at=TOMORROW) for n in range(6)]
    once = new_task("work", idempotency_key="key", unique=True)
    await do(ops.submit([*plain, once]))
    child = new_task("child", depends_on=[plain[0].task_id])
    late = new_task("late", delay_seconds=3600)
    failing = new_task("failing", max_retries=0)
    await do(ops.submit([child, late, failing]))
    assert await wakeup.wait(PATIENT)
    await wakeup.aclose()

    await do(ops.limit("work", rate=1000.0, concurrency=100))
    await do(ops.limit("failing", breaker=Breaker(1, 60.0, 60.0)))
    await do(ops.pause(paused=True, queue="elsewhere"))
    await do(ops.controls())
    grant = await do(ops.claim(Ask(worker, new_id(), 20)))
    tasks = {task.task_id: task for task in grant.tasks}
    assert len(tasks) == 8
    held = tasks.pop(plain[1].task_id)
    await do(ops.start(worker, [Start(held.task_id, held.attempt, 0.0)]))
    await do(ops.progress(worker, [Report(held.task_id, held.attempt, 50.0, "half")]))
    await do(ops.heartbeat(Beat(worker)))
    broken = settlement(tasks.pop(failing.task_id), Failed(TaskError("broken")))
    done = [settlement(task, Completed(b"1")) for task in tasks.values()]
    await do(ops.settle([broken, *done]))
    await do(ops.claim(Ask(worker, new_id(), 20)))

    await do(ops.cancel([held.task_id, late.task_id]))
    await do(ops.replay([late.task_id, failing.task_id]))
    await do(ops.delete([held.task_id, plain[0].task_id]))
    await do(ops.put_blob("key", b"content"))
    await do(ops.blob("key"))
    await do(ops.old_blobs(0, 10))
    await do(ops.drop_blob("key", 0))
    await do(ops.blob_owner())
    await do(ops.publish([Definition(type="work")]))
    await do(ops.definition("work"))
    await do(ops.definitions())
    await do(ops.definition_page())
    await do(ops.take_quota(Made.DEFINITIONS, "me", ["work"]))
    await do(ops.take_lanes("me", [("default", "work", ())]))
    await do(ops.drop_definition("work"))
    await do(ops.set_encryption(Encryption.OPTIONAL))
    await do(ops.encryption())
    nightly = new_schedule("nightly", every(86_400), new_task("work"))
    await do(ops.put_schedules([nightly], owner="shop"))
    await do(ops.run_schedule("nightly", new_id()))
    await do(ops.backfill_schedule("nightly", new_id(), 0, 2 * 86_400_000_000))
    await do(ops.pause_schedule("nightly"))
    await do(ops.resume_schedule("nightly"))
    await do(ops.due_schedules())
    await do(ops.fire_due())
    await do(ops.tick_counts())
    await do(ops.schedules(["nightly"]))
    await do(ops.schedule_page())
    await do(ops.sweep_schedules())
    await do(ops.drop_schedule("nightly"))
    token, _ = issued("ci", ["read"], 60.0)
    await do(ops.put_token(token))
    await do(ops.put_token(issued("browser", ["read"], 60.0, parent_id=token.token_id)[0]))
    await do(ops.tokens())
    await do(ops.token(token.digest))
    await do(ops.retire_token(token.token_id, 30.0))
    await do(ops.drop_token(token.token_id))
    await do(ops.record([NewAudit.of("ci", Action.PAUSE)]))
    await do(ops.audit(10))
    await do(ops.trim_audit())
    await do(ops.change_settings({"completed": 5.0}))
    await do(ops.settings())
    await do(ops.reserve([Rate(1, 60)], [Want("me", 1)]))
    await do(ops.elect("keeper", "me", 1.0))
    await do(ops.sample())
    await do(ops.samples(0, 10))
    await do(ops.expired(10))
    await do(ops.move_due())

    some = Filter(states=frozenset({State.QUEUED, State.COMPLETED}))
    await do(ops.get([held.task_id, plain[2].task_id]))
    await do(ops.heads([held.task_id, plain[2].task_id]))
    await do(ops.find(some, 10))
    await do(ops.page(Filter(tags={"a": "b"}), 10))
    await do(ops.total(some))
    await do(ops.facts())
    await do(ops.stats())
    await do(ops.position([late.task_id]))
    await do(ops.why(late.task_id))
    await do(ops.dlq_analysis())
    await do(ops.completions({"work"}))
    await do(ops.workflow(late.task_id))
    await do(ops.cancel_workflow(late.task_id))
    run = new_run(1)
    member = placed(new_task("work"), run, 1, Membership("a", 1), [], {})
    await do(ops.submit_workflow([member]))
    await do(ops.workflow_page())
    await do(ops.watch_workflows())
    await do(ops.workflow_news())
    await do(ops.reopen_workflow(new_id()))
    await do(ops.forget_workflow(new_id()))
    await do(ops.workflow_id_for("k", run))
    await do(ops.cancel_workflow(run))
    await do(ops.resume_workflow(run))
    await do(ops.rerun([Rerun(new_id(), 1)]))
    await do(ops.cancel_workflow(run))
    await do(ops.delete_workflow(run))
    await do(ops.workers())
    await do(ops.events(None, 100))
    await do(ops.tail())
    await do(ops.cancel_where(Filter(types=frozenset({"late"}))))
    await do(ops.replay_where(Filter(types=frozenset({"late"}))))
    await do(ops.delete_where(Filter(types=frozenset({"work"}))))

    await do(ops.holdings(worker, 10))
    await do(ops.disown(worker, [(late.task_id, 1)]))
    await do(ops.mark(worker, WorkerStatus.DRAINING))
    await do(ops.forget(worker))
    await do(ops.bury([worker]))
    nothing = Retention(0, 0, 0, 0, 0, 0)
    await do(ops.prune(nothing))
    gone = new_task("gone")
    await do(ops.submit([gone]))
    await do(ops.cancel([gone.task_id]))
    await do(ops.delete([gone.task_id]))
    await do(ops.submit([new_task("newest")]))
    await do(ops.drop_lanes())
    await do(ops.shift_clock(limits.LANE_SECONDS + 1))
    assert await do(ops.drop_lanes()) > 0
    await do(ops.watch_clock("boot", time.monotonic))
    await do(ops.submit([new_task("ready"), new_task("waiting", delay_seconds=60)]))
    await do(ops.shift_clock(-3600.0))
    await do(ops.bring_back())
    return used
