"""Events about whole workflows, which are not in the journal; and the metric of their ends."""

from __future__ import annotations

import asyncio

import pytest

from fairlane.core.ids import new_run
from tests.conformance.test_workflows import CHAIN, failure, members
from tests.server.kit import Api
from tests.server.stream.kit import listening

TYPES = ("submitted", "completed", "failed", "cancelled")


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_a_workflow_is_submitted_and_ends(api: Api, end: str) -> None:
    world = api.world
    worker = await world.worker()
    submitted: list[str] = []

    async def submit() -> None:
        """Again and again: what happened before somebody listened is not told."""
        while True:
            workflow_id = new_run(3)
            submitted.append(workflow_id)
            tasks = members(workflow_id, CHAIN, max_retries=0)
            await world.run(world.ops.submit_workflow(tasks))
            if end == "cancelled":
                await world.run(world.ops.cancel_workflow(workflow_id))
            elif end == "failed":
                await world.claim_and_settle(worker, failure())
            else:
                for _ in range(3):
                    await world.claim_and_settle(worker)
            await world.advance(60)
            await world.run(world.ops.watch_workflows())
            await asyncio.sleep(0.1)

    wanted = "&".join(f"type=workflow.{each}" for each in TYPES)
    async with listening(api, query=wanted) as listener:
        submitting = asyncio.create_task(submit())
        began = (await listener.until("workflow.submitted"))["data"]
        ended = (await listener.until(f"workflow.{end}"))["data"]
        submitting.cancel()
        await asyncio.gather(submitting, return_exceptions=True)
    for data in (began, ended):
        assert data["workflow_id"] in submitted
        assert (data["name"], data["tasks"]) == ("order", 3)
    text = (await api.ask("GET", "/metrics")).body.decode()
    (line,) = [
        each
        for each in text.splitlines()
        if each.startswith(f'fairlane_workflows_total{{state="{end}"}}')
    ]
    assert float(line.split()[-1]) >= 1
