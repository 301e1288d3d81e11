"""Flows that compute for long."""

from __future__ import annotations

import asyncio

from fairlane.core.flow import TURN, Flow, perform, perform_async


def busy() -> Flow[list[object]]:
    return [(yield TURN), (yield 1), (yield TURN)]


async def answered(call: int) -> int:
    return call + 1


def test_a_driver_that_blocks_goes_on() -> None:
    assert perform(busy(), lambda call: call + 1) == [None, 2, None]


async def test_others_get_a_turn() -> None:
    seen: list[str] = []

    async def note() -> None:
        seen.append("other")

    async def work() -> None:
        assert await perform_async(busy(), answered) == [None, 2, None]
        seen.append("busy")

    working = asyncio.create_task(work())
    await asyncio.gather(working, asyncio.create_task(note()))
    assert seen == ["other", "busy"]
