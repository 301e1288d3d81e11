"""register, publish, claim, start, progress, settle, heartbeat, holdings, completions, disown,
forget."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.definitions import Definition, checked_batch
from fairlane.core.definitions import checked as checked_definition
from fairlane.core.errors import NotAFairlaneStore, NotSupported, WorkerGone
from fairlane.core.flow import Flow, reads, writes
from fairlane.core.holdings import Holdings, Run
from fairlane.core.ids import checked_all
from fairlane.core.leases import checked, stored_health
from fairlane.core.machine import TRANSITIONS, Move, Verb, bounded
from fairlane.core.model import (
    Ask,
    Beat,
    Grant,
    NewWorker,
    Pulse,
    Report,
    Start,
    Verdict,
)
from fairlane.core.outcomes import (
    Completed,
    Disowned,
    Failed,
    Lost,
    Outcome,
    Released,
    Snoozed,
    TimedOut,
    Unstarted,
)
from fairlane.core.settlement import Settled, Settlement
from fairlane.engines.http.calls import MOST_BYTES, part, post
from fairlane.wire.definitions import PublicationReply, request_of
from fairlane.wire.worker_protocol import Deregistered, Registered
from fairlane.wire.worker_protocol_bulk import (
    ClaimAnswer,
    CompletionsView,
    HeldRun,
    HoldingsView,
    MoveView,
    PulseView,
    Results,
    RunError,
    RunStatus,
    Verdicts,
)

WORKERS: Final = "/internal/workers"
_DEFINITIONS: Final = 40
"""How many fit into a body, whatever their schemas are."""
_ROOM: Final = MOST_BYTES // 2
"""About the maximum size of a batch of results: escapes in JSON make texts longer."""


@writes
def register(_: object, worker: NewWorker) -> Flow[str]:
    checked(worker)
    name, dot, _number = worker.worker_id.rpartition(".")
    body = {
        "worker_id": worker.worker_id,
        "name": name if dot else None,
        "capabilities": sorted(worker.capabilities),
        "capacity": worker.capacity,
        "queues": _names(worker.queues),
        "types": _names(worker.types),
        "host": worker.host,
        "version": worker.version,
        "lease_seconds": worker.lease,
        "reports_start": worker.start_within is not None,
    }
    answer = yield from post(f"{WORKERS}/register", body, Registered)
    return answer.worker_id


@writes
def publish(_: object, definitions: Sequence[Definition]) -> Flow[list[str]]:
    checked_batch(definitions)
    requests = [request_of(checked_definition(each)) for each in definitions]
    changed: list[str] = []
    try:
        for at in range(0, len(requests), _DEFINITIONS):
            body = {"definitions": requests[at : at + _DEFINITIONS]}
            changed += (yield from post(f"{WORKERS}/definitions", body, PublicationReply)).changed
    except NotAFairlaneStore:
        raise NotSupported("The server is too old to publish definitions of tasks.") from None
    return changed


@writes
def claim(_: object, ask: Ask) -> Flow[Grant]:
    body = {
        "request_id": ask.request_id,
        "heard": ask.heard,
        "slots": ask.slots,
        "ahead": ask.ahead,
        "wait_seconds": ask.wait,
        "capabilities": sorted(ask.capabilities),
        "queues": _names(ask.queues),
        "types": _names(ask.types),
    }
    path = f"{WORKERS}/{part(ask.worker_id)}/claim"
    answer = yield from post(path, body, ClaimAnswer, ask.wait)
    return answer.grant(ask.worker_id)


@writes
def start(_: object, worker_id: str, starts: Sequence[Start]) -> Flow[list[Verdict]]:
    checked_all([each.task_id for each in starts])
    return (yield from _send(worker_id, "starts", {"starts": list(starts)}, len(starts)))


@writes
def progress(_: object, worker_id: str, reports: Sequence[Report]) -> Flow[list[Verdict]]:
    checked_all([each.task_id for each in reports])
    sent = [
        {
            "task_id": each.task_id,
            "attempt": each.attempt,
            "progress_percent": each.percent,
            "status_message": each.message,
        }
        for each in reports
    ]
    return (yield from _send(worker_id, "reports", {"reports": sent}, len(sent)))


@writes
def settle(
    _: object, settlements: Sequence[Settlement], *, reaping: bool = False
) -> Flow[list[Settled]]:
    if reaping:
        raise NotSupported("The server handles dead workers and timeouts itself.")
    checked_all([each.task_id for each in settlements])
    settled: list[Settled] = []
    for batch in _batches(settlements):
        body = {"results": [_ended_run(each) for each in batch]}
        path = f"{WORKERS}/{part(batch[0].worker_id)}/results"
        try:
            answer = yield from post(path, body, Results)
        except WorkerGone:  # the server does not know the worker: nothing of this can be its own
            settled += [Settled(Verdict.STALE, None)] * len(batch)
        else:
            settled += map(_settled, batch, answer.verdicts, answer.moves)
    return settled


def _settled(settlement: Settlement, verdict: Verdict, moved: MoveView | None) -> Settled:
    """Return what the server did, in the terms of the core."""
    if moved is None:
        return Settled(verdict, None)
    outcome = settlement.outcome
    error = outcome.error if isinstance(outcome, Failed) else None
    verb = Verb(moved.verb)
    (state,) = TRANSITIONS[verb].targets
    after = moved.after_seconds
    move = Move(verb, state, moved.run, label=moved.reason, after=after, error=error)
    return Settled(verdict, move)


@writes
def heartbeat(_: object, beat: Beat) -> Flow[Pulse]:
    stored = stored_health(beat)
    health = None if stored is None else msgspec.Raw(stored)
    body = {"current_load": beat.load, "status": beat.status, "health": health}
    answer = yield from post(f"{WORKERS}/{part(beat.worker_id)}/pulse", body, PulseView)
    let_go = [(each.task_id, each.attempt) for each in answer.let_go]
    return Pulse(answer.remaining_seconds, answer.status, let_go)


@reads
def holdings(_: object, worker_id: str, limit: int, cursor: str | None = None) -> Flow[Holdings]:
    body = {"limit": limit, "cursor": cursor}
    try:
        answer = yield from post(f"{WORKERS}/{part(worker_id)}/holdings", body, HoldingsView)
    except WorkerGone:
        return Holdings([])
    return Holdings([(each.task_id, each.attempt) for each in answer.runs], answer.cursor)


@reads
def completions(
    _: object, types: Collection[str], queues: frozenset[str] | None = None
) -> Flow[dict[str, int]]:
    names = sorted(types)
    found: dict[str, int] = {}
    try:
        for at in range(0, len(names), limits.BATCH):
            body = {"types": names[at : at + limits.BATCH], "queues": _names(queues)}
            answer = yield from post(f"{WORKERS}/completions", body, CompletionsView)
            found.update(answer.completed)
    except NotAFairlaneStore:
        raise NotSupported("The server is too old to tell how many runs complete.") from None
    return found


@writes
def disown(_: object, worker_id: str, runs: Sequence[Run]) -> Flow[list[Verdict]]:
    checked_all([task_id for task_id, _ in runs])
    sent = [HeldRun(task_id, attempt) for task_id, attempt in runs]
    return (yield from _send(worker_id, "disown", {"runs": sent}, len(sent)))


@writes
def forget(_: object, worker_id: str) -> Flow[bool]:
    try:
        yield from post(f"{WORKERS}/{part(worker_id)}/deregister", {}, Deregistered)
    except WorkerGone:
        return False
    return True


def _ended_run(settlement: Settlement) -> dict[str, Any]:
    """Return how a run ended. The server decides what follows."""
    return {
        "task_id": settlement.task_id,
        "attempt": settlement.attempt,
        "execution_duration_seconds": settlement.seconds,
        **_encode_outcome(settlement.outcome),
    }


def _encode_outcome(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Completed(result):
            return {"status": RunStatus.COMPLETED, "result": msgspec.Raw(result)}
        case Failed(error, after):
            failing = RunError(error.message, error.code, error.retriable, error.traceback)
            wanted = None if after is None else bounded(after)
            return {"status": RunStatus.FAILED, "error": failing, "after_seconds": wanted}
        case TimedOut():
            return {"status": RunStatus.TIMED_OUT}
        case Released():
            return {"status": RunStatus.RELEASED}
        case Snoozed(after):
            return {"status": RunStatus.SNOOZED, "after_seconds": bounded(after)}
        case Lost() | Unstarted() | Disowned():
            raise NotSupported("A server decides itself what follows from the end of a run.")


def _batches(settlements: Sequence[Settlement]) -> Iterator[list[Settlement]]:
    """Yield batches of one worker each, small enough for one request."""
    batch: list[Settlement] = []
    room = _ROOM
    for each in settlements:
        size = _size(each.outcome)
        if batch and (size > room or each.worker_id != batch[0].worker_id):
            yield batch
            batch, room = [], _ROOM
        batch.append(each)
        room -= size
    if batch:
        yield batch


def _size(outcome: Outcome) -> int:
    """About how many bytes an outcome takes in a request."""
    match outcome:
        case Completed(result):
            return len(result)
        case Failed(error):
            return len(error.traceback or "")
    return 0


def _send(worker_id: str, call: str, body: Any, count: int) -> Flow[list[Verdict]]:
    try:
        answer = yield from post(f"{WORKERS}/{part(worker_id)}/{call}", body, Verdicts)
    except WorkerGone:  # the server does not know the worker: nothing of this can be its own
        return [Verdict.STALE] * count
    return list(answer.verdicts)


def _names(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)
