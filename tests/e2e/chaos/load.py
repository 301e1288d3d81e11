"""A client that goes on submitting, whatever happens to the store, and knows what it was told."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from fairlane import Fairlane, RetryPolicy
from fairlane.core.errors import StoreError
from fairlane.core.ids import new_id
from fairlane.core.schedules import NewSchedule, Schedule
from fairlane.core.submission import new_task
from tests.e2e.history.lines import Fail, Invoke, Ok, Recorder, Unknown, digest

PAUSE_SECONDS = 0.05
GATE_SECONDS = 3_600.0
QUICKLY = RetryPolicy(base=0.05, cap=0.5)


class Client:
    """Submits one task at a time, and asks again, by an idempotency key, if no answer comes."""

    def __init__(self, app: Fairlane, recorder: Recorder) -> None:
        self._app = app
        self._recorder = recorder
        self._numbers = itertools.count(1)
        self._name = new_id()

    async def submit(
        self, type: str, *, keyed: bool = True, attempt: float | None = None, **payload: Any
    ) -> str:
        """The id of a task that was accepted. `attempt`: how long one may take."""
        n = next(self._numbers)
        key = f"{self._name}:{n}" if keyed else None
        # Who waits at a gate waits for as long as the test takes, which is more than usual.
        seconds = GATE_SECONDS if attempt is None and "gate" in payload else attempt
        limit = {} if seconds is None else {"timeout_seconds": seconds}
        return await self._insist(type, {"n": n, **payload}, key, **limit)

    async def schedule(self, schedules: Sequence[NewSchedule]) -> list[Schedule]:
        """Declare them: each asks for any number of tasks."""
        calls = [new_id() for _ in schedules]
        for call, each in zip(calls, schedules, strict=True):
            self._recorder.write(Invoke, call=call, op="schedule", payload=digest(each.payload))
        declared = await self._app.run(self._app.backend.ops.put_schedules(schedules))
        for call in calls:
            self._recorder.write(Ok, call=call)
        return declared

    async def submit_some(self, count: int, *types: str, **payload: Any) -> list[str]:
        """So many tasks, of these types in turn."""
        chosen = itertools.islice(itertools.cycle(types), count)
        return list(await asyncio.gather(*(self.submit(each, **payload) for each in chosen)))

    @asynccontextmanager
    async def load(self, rate: float, *types: str) -> AsyncIterator[None]:
        """About so many a second, until the end of the block: some fail once, some wait, and some
        are cancelled as soon as they are accepted."""
        over = asyncio.Event()
        loading = asyncio.create_task(self._load(rate, types, over))
        try:
            yield
        finally:
            over.set()
            await loading

    async def _load(self, rate: float, types: Sequence[str], over: asyncio.Event) -> None:
        luck = random.Random(self._name)
        async with asyncio.TaskGroup() as group:
            for type in itertools.cycle(types):
                payload = {
                    "n": next(self._numbers),
                    "seconds": luck.uniform(0.005, 0.05),
                    "fails": int(luck.random() < 0.1),
                }
                delay = luck.random() if luck.random() < 0.05 else 0.0
                unwanted = luck.random() < 0.05
                group.create_task(self._one_of_many(type, payload, delay, unwanted=unwanted))
                with suppress(TimeoutError):
                    async with asyncio.timeout(luck.expovariate(rate)):
                        await over.wait()
                if over.is_set():
                    return

    async def _one_of_many(
        self, type: str, payload: dict[str, Any], delay: float, *, unwanted: bool
    ) -> None:
        key = f"{self._name}:{payload['n']}"
        task_id = await self._insist(type, payload, key, delay_seconds=delay)
        if unwanted:
            await self.cancel(task_id)

    async def cancel(self, task_id: str) -> None:
        """Once: whether it came to pass may remain unknown."""
        call = new_id()
        self._recorder.write(Invoke, call=call, op="cancel", task=task_id)
        try:
            (answer,) = await self._app.run(self._app.backend.ops.cancel([task_id]))
        except StoreError:
            self._recorder.write(Unknown, call=call)
        else:
            if answer.applied:
                self._recorder.write(Ok, call=call, task=task_id, found=answer.state)
            else:
                self._recorder.write(Fail, call=call)

    async def _insist(
        self, type: str, payload: dict[str, Any], key: str | None, **options: Any
    ) -> str:
        while True:
            # Another id each time: that it is the same task is for the key to say.
            task = new_task(type, payload, idempotency_key=key, retry_policy=QUICKLY, **options)
            call = new_id()
            self._recorder.write(
                Invoke, call=call, op="submit", payload=digest(task.payload), key=key
            )
            try:
                (accepted,) = await self._app.run(self._app.backend.ops.submit([task]))
            except StoreError:
                self._recorder.write(Unknown, call=call)
                if key is None:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                self._recorder.write(Ok, call=call, task=accepted.task_id)
                return accepted.task_id
