"""A client that goes on submitting workflows, of every shape, whatever happens to the store."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from fairlane import Fairlane, gather
from fairlane.core.errors import StoreError
from fairlane.core.ids import new_id
from fairlane.core.model import NewTask
from fairlane.runtime.planning import plan_of
from fairlane.runtime.shapes import Prepared, Shape, leaves
from tests.e2e.chaos.app import node
from tests.e2e.history.lines import Fail, Invoke, Ok, Recorder, Unknown, digest

PAUSE_SECONDS = 0.05
FAILING, RETRYING = 0.05, 0.1
"""The parts of the tasks that fail for good, and that fail once."""
UNWANTED = 0.05
"""The part of the workflows that are cancelled as soon as they are accepted; from as many more, one
task is."""

Node = Prepared[Any]
AnyShape = Shape[Any]


class WorkflowClient:
    """Submits workflows, each again and again until it is told that it is stored."""

    def __init__(self, app: Fairlane, recorder: Recorder) -> None:
        self._app = app
        self._recorder = recorder
        self._numbers = itertools.count(1_000_000)
        self._luck = random.Random(20)
        self.submitted: list[str] = []

    @asynccontextmanager
    async def load(self, rate: float) -> AsyncIterator[None]:
        """About so many workflows a second, until the end of the block. Of the first two, one has
        no task that fails, and one has a task that does."""
        over = asyncio.Event()
        loading = asyncio.create_task(self._load(rate, over))
        try:
            yield
        finally:
            over.set()
            await loading

    async def _load(self, rate: float, over: asyncio.Event) -> None:
        kinds = itertools.cycle([self.chain, self.fan, self.diamond, self.nested])
        sound, broken = ({"bad": bad, "fails": 0} for bad in (False, True))
        async with asyncio.TaskGroup() as group:
            for options in (sound, broken):
                group.create_task(self.submit(self._then(self._node(**options), **sound)))
            for kind in kinds:
                group.create_task(self._one_of_many(kind()))
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._luck.expovariate(rate)):
                        await over.wait()
                if over.is_set():
                    return

    async def _one_of_many(self, shape: AnyShape) -> None:
        luck = self._luck.random()
        task_ids = await self.submit(shape)
        if luck < UNWANTED:
            await self._cancel(task_ids[::-1])
        elif luck < 2 * UNWANTED:
            await self._cancel([task_ids[int(luck * 1_000) % len(task_ids)]])

    async def submit(self, shape: AnyShape) -> list[str]:
        """Submit a workflow; return the ids of its tasks."""
        plan = plan_of(leaves(shape.tree), shape.tree)
        tasks = [call.task for call in plan.calls]
        while not await self._submitted(tasks):  # noqa: ASYNC110 (the store may be away)
            await asyncio.sleep(PAUSE_SECONDS)
        self.submitted.append(plan.workflow_id)
        return [task.task_id for task in tasks]

    async def _submitted(self, tasks: Sequence[NewTask]) -> bool:
        calls = [new_id() for _ in tasks]
        for call, task in zip(calls, tasks, strict=True):
            self._recorder.write(Invoke, call=call, op="submit", payload=digest(task.payload))
        try:
            accepted = await self._app.run(self._app.backend.ops.submit(tasks))
        except StoreError:
            for call in calls:
                self._recorder.write(Unknown, call=call)
            return False
        for call, answer in zip(calls, accepted, strict=True):
            self._recorder.write(Ok, call=call, task=answer.task_id)
        return True

    async def _cancel(self, task_ids: Sequence[str]) -> None:
        """Once: whether it came to pass may remain unknown."""
        calls = {task_id: new_id() for task_id in task_ids}
        for task_id, call in calls.items():
            self._recorder.write(Invoke, call=call, op="cancel", task=task_id)
        try:
            answers = await self._app.run(self._app.backend.ops.cancel(task_ids))
        except StoreError:
            for call in calls.values():
                self._recorder.write(Unknown, call=call)
            return
        for answer in answers:
            call = calls[answer.task_id]
            if answer.applied:
                self._recorder.write(Ok, call=call, task=answer.task_id, found=answer.state)
            else:
                self._recorder.write(Fail, call=call)

    # -- shapes ------------------------------------------------------------------------------------

    def chain(self) -> AnyShape:
        shape: AnyShape = Shape(self._node())
        for _ in range(4):
            shape = self._then(shape)
        return shape

    def fan(self) -> AnyShape:
        """Several, the results of which one takes, however they ended."""
        return gather(*(self._node() for _ in range(6))).then(
            node.options(on_parent_failure="continue"), **self._options()
        )

    def diamond(self) -> AnyShape:
        """One, whose result two take, and the results of all three are taken by another."""
        first = self._node()
        return self._then(gather(self._then(first), self._then(first), first))

    def nested(self) -> AnyShape:
        """Gathers in each other, and another one after them."""
        inner = gather(self._node(), gather(self._node(), self._then(self._node())))
        outer = self._then(gather(inner, self._node(), gather(self._node())))
        return self._then(gather(outer, self._then(outer)))

    def _then(self, shape: AnyShape | Node, **chosen: Any) -> AnyShape:
        return shape.then(node, **{**self._options(), **chosen})

    def _node(self, **chosen: Any) -> Node:
        return node.prepare(**{**self._options(), **chosen})

    def _options(self) -> dict[str, Any]:
        luck = self._luck.random()
        return {
            "n": next(self._numbers),
            "seconds": self._luck.uniform(0, 0.03),
            "bad": luck < FAILING,
            "fails": int(FAILING <= luck < FAILING + RETRYING),
        }
