"""Submissions that are made at the same time travel together."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from fairlane.client.gathering import Gatherer, Send
from fairlane.core import limits
from fairlane.core.model import Accepted, NewTask


class Submitter:
    """Gathers what the coroutines of one event loop submit."""

    def __init__(self, send: Send[NewTask, Accepted]) -> None:
        self._gatherer = Gatherer(send, limits.SUBMIT_BATCH)

    def submit(self, task: NewTask) -> Coroutine[Any, Any, Accepted]:
        """Submit one task; answers when it is stored."""
        return self._gatherer.ask(task)
