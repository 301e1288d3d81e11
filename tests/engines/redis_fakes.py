"""Servers that say what they are told to say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self


class Fake:
    """Answers every call with whatever `answer` gives."""

    def __init__(self, answer: Callable[[], bytes]) -> None:
        self._answer = answer
        self._talks: set[asyncio.Task[None]] = set()
        self.calls = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.place = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.gather(*self._talks)  # each ends when its caller hangs up

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        with suppress(ConnectionError):
            while await reader.read(65536):
                self.calls += 1
                writer.write(self._answer() + b"\r\n")
        writer.close()


def saying(*answers: str) -> Fake:
    """These answers, one a call, and the last one from then on."""
    left = list(answers)

    def next_one() -> bytes:
        return (left.pop(0) if len(left) > 1 else left[0]).encode()

    return Fake(next_one)
