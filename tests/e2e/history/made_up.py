"""Histories that never happened, to try the checker on: a good one, to be made worse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fairlane import State
from fairlane.core.model import Attempt, Event, Task, moment
from tests.e2e.history.dump import Dump
from tests.e2e.history.holding import Held, Spell
from tests.e2e.history.lines import AnyLine, End, History, Invoke, Ok, Start, Took, digest
from tests.unit.make import SECOND, stored

WORKER = "worker-1"
LEASE = 5.0


def at(seconds: float) -> Any:
    return moment(round(seconds * SECOND))


class Story:
    """Tasks `t1`, `t2` … that were submitted, run and completed, one a second."""

    def __init__(self, tasks: int = 2, **values: Any) -> None:
        self.lines: list[AnyLine] = []
        self.tasks: dict[str, Task] = {}
        self.events: list[Event] = []
        self.effects: dict[str, int] | None = None
        self.counted: dict[State, int] | None = None
        self.rows: list[tuple[str, State | None]] | None = None
        self.alive = frozenset({WORKER})
        self.spells: list[Spell] = []
        for number in range(1, tasks + 1):
            self._complete(f"t{number}", float(10 * number), values)

    def _complete(self, name: str, now: float, values: dict[str, Any]) -> None:
        self.submit(name, now)
        self.event("submit", name, now, 0)
        self.event("claim", name, now + 1)
        self.run(name, now + 1, now + 2)
        self.event("complete", name, now + 3)
        self.hold(name, now + 1, now + 3)
        completed = Attempt(1, WORKER, at(now + 1), at(now + 3), "completed")
        made = {
            "task_id": name,
            "type": "work",
            "state": State.COMPLETED,
            "payload": name.encode(),
            "result": b"1",
            "max_retries": 1,
            "created_at": at(now),
            "run_at": at(now),
            "ready_at": at(now),
            "completed_at": at(now + 3),
            "attempts": (completed,),
        }
        self.tasks[name] = stored(**{**made, **values})

    def submit(self, name: str, now: float, answer: Any = Ok, **values: Any) -> None:
        call = f"call-{len(self.lines)}"
        payload = values.pop("payload", digest(name.encode()))
        asked = Invoke(at=now, wall=now, call=call, op="submit", payload=payload, **values)
        told = {"task": name} if answer is Ok else {}
        self.lines += [asked, answer(at=now + 0.1, wall=now + 0.1, call=call, **told)]

    def ask(self, op: str, now: float, task: str | None = None, found: str | None = None) -> None:
        call = f"call-{len(self.lines)}"
        self.lines += [
            Invoke(at=now, wall=now, call=call, op=op, task=task),
            Ok(at=now + 0.1, wall=now + 0.1, call=call, task=task, found=found),
        ]

    def run(
        self,
        name: str,
        began: float,
        ended: float | None,
        attempt: int = 1,
        worker: str = WORKER,
        result: bytes = b"1",
    ) -> None:
        who: dict[str, Any] = {"task": name, "attempt": attempt, "worker": worker, "pid": 7}
        self.lines.append(Start(at=began, wall=began, **who))
        if ended is not None:
            self.lines.append(End(at=ended, wall=ended, result=digest(result), **who))

    def take(self, name: str, value: Any) -> None:
        """A run was given results."""
        who: dict[str, Any] = {"task": name, "attempt": 1, "worker": WORKER, "pid": 7}
        self.lines.append(Took(at=50, wall=50, value=value, **who))

    def event(self, verb: str, name: str, now: float, attempt: int = 1) -> None:
        self.events.append(
            Event(
                cursor="",
                verb=verb,
                at=at(now),
                task_id=name,
                type="work",
                attempt=attempt,
                worker_id=WORKER,
            )
        )

    def hold(self, name: str, since: float, until: float) -> None:
        self.spells.append(Spell(Held(name, 1, WORKER), LEASE, since, until))

    def change(self, name: str, **values: Any) -> None:
        self.tasks[name] = msgspec.structs.replace(self.tasks[name], **values)

    def without(self, kind: type, name: str) -> None:
        """Strike out a task's lines of a kind."""
        keep: Callable[[AnyLine], bool] = lambda line: (  # noqa: E731
            not isinstance(line, kind) or getattr(line, "task", None) != name
        )
        self.lines = [line for line in self.lines if keep(line)]

    def told(self) -> tuple[History, Dump]:
        rows = [(name, each.status) for name, each in self.tasks.items()]
        states = [each.status for each in self.tasks.values()]
        counted = {state: states.count(state) for state in State}
        return History(self.lines), Dump(
            tasks=self.tasks,
            rows=tuple(rows if self.rows is None else self.rows),
            counted=counted if self.counted is None else self.counted,
            alive=self.alive,
            events=tuple(self.events),
            effects=self.effects,
            spells=tuple(self.spells),
        )
