"""The tests of ownership catch whatever lets a bound token out of its bounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import records
from fairlane.core.bounded import BoundOperations
from fairlane.core.errors import FairlaneError
from fairlane.core.filters import Filter
from fairlane.core.model import Spec
from fairlane.core.ownership import Bounds
from fairlane.core.tokens import Scope
from fairlane.engines.postgres import find as postgres
from fairlane.server import auth, bound_services, endpoint
from tests.conformance import test_ownership
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, replaced, together
from tests.server.security import test_bounds
from tests.server.security.kit import Guarded, guarded

CHECKS = checks_of(test_ownership)


def _forwards(name: str) -> Break:
    """An operation that ignores the bounds."""

    def forward(self: Any, *args: Any, **how: Any) -> Any:
        return getattr(self._ops, name)(*args, **how)

    return replaced(BoundOperations, name, forward)


def _checks_nothing(*_: Any) -> Any:
    yield from ()


def _keeps_its_verdicts(_: Any, __: Any, verdicts: Any) -> Any:
    yield from ()
    return verdicts


def _shares_keys(bounds: Bounds, task: Any) -> Any:
    return replace(_own_task(bounds, task), idempotency_key=task.idempotency_key)


def _ignores_the_owner(filter: Filter, stored: bytes | None) -> bool:
    return _admits_spec(replace(filter, owner=None), stored)


def _forgets_the_owner(stored: bytes | None) -> Spec:
    return replace(_decode(stored), owner=None)


def _adds_no_tags(bounds: Bounds, tags: Any) -> Any:
    _with_tags(bounds, tags)
    return dict(tags)


_own_task, _with_tags = Bounds.own_task, Bounds._with_tags
_admits_spec, _decode = Filter.admits_spec, Spec.decode

FAULTS: dict[str, Break] = {
    **{
        f"{name} ignores the bounds": _forwards(name)
        for name in (
            *("get", "find", "page", "total", "position", "why", "register"),
            *("cancel", "replay", "delete", "cancel_where"),
        )
    },
    "ids and parents are not looked up": replaced(BoundOperations, "_check_new", _checks_nothing),
    "verdicts tell of foreign tasks": replaced(BoundOperations, "_judge", _keeps_its_verdicts),
    "keys are shared by all": together(
        replaced(Bounds, "own_task", _shares_keys),
        replaced(Bounds, "admits_new", lambda *_: True),
    ),
    "unique keys are shared by all": replaced(Bounds, "_own_hold", lambda _, unique: unique),
    "a key is shown with its namespace": replaced(records, "shown_key", lambda stored: stored),
    "tags are not added": together(
        replaced(Bounds, "_with_tags", _adds_no_tags),
        replaced(Bounds, "admits_new", lambda *_: True),
    ),
    "everything is within the bounds": replaced(Bounds, "_admit", lambda *_: True),
    "queues are not looked at": replaced(Bounds, "narrow_queues", lambda _, queues: queues),
}
EVERYWHERE: dict[str, Break] = {
    "a filter ignores the owner": replaced(Filter, "admits_spec", _ignores_the_owner),
    "the owner is forgotten": replaced(Spec, "decode", staticmethod(_forgets_the_owner)),
}
POSTGRES: dict[str, Break] = {
    **EVERYWHERE,
    "it looks for another owner": replaced(postgres, "_needles", lambda _: [b'"owner":"x"']),
}


@pytest.mark.parametrize(
    ("kind", "break_it"), planted({**FAULTS, **EVERYWHERE}, POSTGRES, EVERYWHERE)
)
async def test_the_suite_catches(
    kind: str,
    break_it: Break,
    servers: Servers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS, FairlaneError) is not None


async def test_the_suite_objects_to_nothing_else(servers: Servers, tmp_path: Path) -> None:
    assert await caught(servers, tmp_path, "sqlite-memory", CHECKS) is None


# -- in the server ---------------------------------------------------------------------------------

Check = Callable[[Guarded], Awaitable[None]]


class _Waits:
    def __init__(self, services: Any, _: Any) -> None:
        self.wait = services.results.wait


class _Sends:
    def __init__(self, services: Any, _: Any) -> None:
        self.send = services.submissions.send


class _Takes:
    def __init__(self, services: Any, _: Any) -> None:
        self.take = services.polls.take


class _Reports:
    def __init__(self, services: Any, _: Any) -> None:
        self.send, self.settle = services.reports.send, services.settle_reports


SERVER: dict[str, tuple[Break, Check]] = {
    "routes get everything": (
        replaced(endpoint, "within", lambda services, _: services),
        test_bounds.test_a_task_of_others_is_like_one_that_does_not_exist,
    ),
    "lists get everything": (
        replaced(BoundOperations, "page", lambda self, *args: self._ops.page(*args)),
        test_bounds.test_lists_and_sweeps_leave_others_alone,
    ),
    "a sweep gets everything": (
        _forwards("delete_where"),
        test_bounds.test_lists_and_sweeps_leave_others_alone,
    ),
    "everything is open": (
        replaced(auth, "_open_to", lambda *_: Scope),
        test_bounds.test_what_concerns_others_is_refused,
    ),
    "results of others are waited for": (
        replaced(bound_services, "_Results", _Waits),
        test_bounds.test_a_result_of_others_is_not_waited_for,
    ),
    "ids are not looked up": (
        replaced(bound_services, "_Submissions", _Sends),
        test_bounds.test_keys_and_ids_of_two_tenants,
    ),
    "workers claim from every queue": (
        replaced(bound_services, "_Polls", _Takes),
        test_bounds.test_workers_of_a_queue,
    ),
    "results tell of foreign tasks": (
        replaced(bound_services, "_Reports", _Reports),
        test_bounds.test_workers_of_a_queue,
    ),
    "tasks have no owner": (
        replaced(auth.Identity, "owned", lambda _, task: task),
        test_bounds.test_tasks_carry_the_subject_of_their_token,
    ),
}


@pytest.mark.parametrize("fault", SERVER)
async def test_the_tests_of_the_server_catch(
    fault: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it, check = SERVER[fault]
    async with guarded(servers, tmp_path) as found:
        with monkeypatch.context() as patch:
            break_it(patch)
            with pytest.raises((AssertionError, TimeoutError)):
                await check(found)
