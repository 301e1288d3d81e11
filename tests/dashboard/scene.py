"""A store in which something of everything goes on, so that no page is empty."""

from __future__ import annotations

from datetime import timedelta

from fairlane import RetryPolicy, State
from fairlane.core.ids import new_id
from fairlane.core.model import Beat, WorkerStatus
from fairlane.core.recurrence import cron, every
from tests.dashboard.apps import app, echo, greet, hold, refuse
from tests.dashboard.kit import Site

TAGS = {"customer": "Ada Lovelace", "region": "eu-west-1"}
SCHEDULE = "nightly"
LATER = RetryPolicy(base=3_600.0, cap=3_600.0)


async def shipped(site: Site) -> str:
    """The id of a workflow that still runs, with tasks in several states and many that are
    alike."""
    with app.graph("order") as g:
        order = g.add(greet, "Ada")
        lines = [g.add(echo.options(after=[order]), line) for line in range(34)]
        g.add(refuse.options(after=[order], node="check " + "x" * 80), "Sold out: " + "y" * 200)
        packed = g.add(hold.options(after=lines, node="pack"), site.file("packing"), 40.0)
        g.returns(g.add(echo.options(node="ship"), packed))
    return await site.workflow(g)


async def furnished(site: Site) -> dict[State, str]:
    """A task in each state (several of some), workers in several, a limit, a pause, schedules."""
    world = site.world
    tasks = {
        State.COMPLETED: await site.ran(
            "echo", {"value": {"list": [1, 2, {"deep": None}]}}, tags=TAGS
        ),
        State.FAILED: await site.ran("refuse", tags=TAGS, idempotency_key="once"),
        State.DEAD_LETTER: await site.ran("fail", {"message": "x" * 300}, max_retries=0),
        State.SCHEDULED: await site.submit(
            "idle", {"a": "b" * 500}, delay_seconds=86_400, tags=TAGS
        ),
        State.QUEUED: await site.submit("idle", queue="a.very.long:name-of-a-queue-" + "x" * 60),
        State.CANCELLED: await site.submit("idle", priority="critical"),
        State.RETRYING: await site.submit("fail", retry_policy=LATER, max_retries=5),
        State.EXECUTING: await site.submit(
            "hold", {"file": site.file("scene"), "percent": 42.5, "message": "Copying files"}
        ),
    }
    await world.run(world.ops.cancel([tasks[State.CANCELLED]]))
    await site.submit("idle", depends_on=[tasks[State.QUEUED]])
    await site.ran("fail", {"message": "No such customer: 17"}, max_retries=0)
    await world.run(world.ops.pause(paused=True, queue="reports"))
    await site.submit("report", queue="reports", priority="low")
    await world.run(world.ops.limit("report", rate=2.5, concurrency=3))
    worker = await world.worker(host="build-7:4711", version="0.1.0", capacity=4)
    await world.run(world.ops.heartbeat(Beat(worker, 1, health={"memory_mb": 812, "cpu": 0.4})))
    leaving = await world.worker(host="build-8:42", queues=frozenset({"reports"}))
    await world.run(world.ops.mark(leaving, WorkerStatus.DRAINING))
    await site.schedule(
        SCHEDULE,
        cron("30 2 28-31 3,10 *", "Europe/Berlin"),
        task={"type": "idle", "payload": {"customer": "Ada"}, "tags": TAGS, "priority": "low"},
        pause_after_failures=3,
        note="The report for the board.",
    )
    for _ in range(3):
        await world.run(world.ops.run_schedule(SCHEDULE, new_id()))
    await site.schedule("long." + "x" * 120, every(timedelta(hours=5)), owner="shop:app")
    await site.schedule("paused", count=7, missed="all", jitter=30)
    await world.run(world.ops.pause_schedule("paused", note="Until the migration is done."))
    for state, task_id in tasks.items():
        await site.reaches(task_id, state)
    return tasks
