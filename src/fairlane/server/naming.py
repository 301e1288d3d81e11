"""By which ids the store is asked for tasks.

A store that is asked twice under one id gives the same tasks: that is how an answer that got lost
is had again. So a poll is asked for under its own id, but for two cases: what it was given has gone
back, so that it has to have others; or an earlier poll of the same worker, which nobody can repeat
since it was given no id, may have been granted tasks that nobody has heard of.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from fairlane.core.ids import new_id
from fairlane.core.model import Ask

REMEMBERED: Final = 1_000


class Naming:
    """The ids of one server process. The polls of a worker have to take turns here."""

    def __init__(self) -> None:
        self._others: OrderedDict[tuple[str, str], str] = OrderedDict()
        """By worker and the poll's own id: the one to ask under instead."""
        self._unheard: OrderedDict[str, str] = OrderedDict()
        """By worker: the own id of a poll that may have been given something."""

    def id_for(self, ask: Ask) -> str:
        """The id to ask under."""
        unheard = self._unheard.get(ask.worker_id)
        if unheard is not None and unheard != ask.request_id:
            # What that one may have been given is for this one, and whatever comes next for that.
            self._rename(ask.worker_id, ask.request_id, self._current(ask.worker_id, unheard))
            self.renew(ask.worker_id, unheard)
            del self._unheard[ask.worker_id]
        return self._current(ask.worker_id, ask.request_id)

    def renew(self, worker_id: str, request_id: str) -> None:
        """What this poll was given is not for it any more: it shall get something else."""
        self._rename(worker_id, request_id, new_id())

    def unheard(self, ask: Ask) -> None:
        """Nobody knows what the store did for a poll that will not be repeated."""
        self._unheard[ask.worker_id] = ask.request_id
        _trim(self._unheard)

    def heard(self, ask: Ask) -> None:
        """The store has answered."""
        if self._unheard.get(ask.worker_id) == ask.request_id:
            del self._unheard[ask.worker_id]

    def _current(self, worker_id: str, request_id: str) -> str:
        return self._others.get((worker_id, request_id), request_id)

    def _rename(self, worker_id: str, request_id: str, other: str) -> None:
        self._others[worker_id, request_id] = other
        _trim(self._others)


def _trim(remembered: OrderedDict[Any, str]) -> None:
    if len(remembered) > REMEMBERED:
        remembered.popitem(last=False)
