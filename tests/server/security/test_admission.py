"""Who is refused when there is too much, and for how long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.limits import CLIENTS
from fairlane.core.model import NewTask, Verdict
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.server.admission import AdmissionControl, Overloaded, RateWindows
from fairlane.server.config import Admission, ServerConfig
from fairlane.server.errors import TooManyRequests
from tests.conftest import Servers
from tests.fixtures.stores import opened
from tests.server.http.kit import Reply
from tests.server.kit import Api, refused, serving, told
from tests.server.security.kit import bearer, new_token

# -- units -----------------------------------------------------------------------------------------


class Clock:
    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def retry_after(error: TooManyRequests) -> int:
    return int(dict(error.headers)[b"retry-after"])


def tasks(*priorities: str) -> list[NewTask]:
    return [new_task("work", None, priority=each) for each in priorities]


LEVELS = ("low", "medium", "high", "critical")
DEFAULT_GRADES = {
    0: set(LEVELS),
    9_999: set(LEVELS),
    10_000: {"medium", "high", "critical"},
    49_999: {"medium", "high", "critical"},
    50_000: {"high", "critical"},
    99_999: {"high", "critical"},
    100_000: set(),
    10_000_000: set(),
}


def accepted(door: AdmissionControl, depth: int) -> set[str]:
    found = set()
    for level in LEVELS:
        try:
            door.check(tasks(level), depth)
        except Overloaded:
            continue
        else:
            found.add(level)
    return found


@pytest.mark.parametrize("depth", DEFAULT_GRADES)
def test_grades(depth: int) -> None:
    assert accepted(AdmissionControl(Admission()), depth) == DEFAULT_GRADES[depth]


@pytest.mark.parametrize(
    ("off", "left"),
    [
        ({"low": None}, {"high", "critical"}),
        ({"all": None, "normal": None}, {"medium", "high", "critical"}),
        ({"low": None, "normal": None, "all": None}, set(LEVELS)),
    ],
)
def test_grades_can_be_turned_off(off: dict[str, Any], left: set[str]) -> None:
    assert accepted(AdmissionControl(Admission(**off)), 60_000) == left


def test_levels_between_the_names_belong_to_a_band() -> None:
    door = AdmissionControl(Admission())
    for level, depth in {4: 10_000, 7: 50_000, 9: 100_000}.items():
        door.check([new_task("work", None, priority=level)], depth - 1)
        with pytest.raises(Overloaded):
            door.check([new_task("work", None, priority=level)], depth)


def test_a_batch_is_refused_for_its_least_important_task() -> None:
    with pytest.raises(Overloaded, match="priority low are refused from 10,000 on"):
        AdmissionControl(Admission()).check(tasks("critical", "low"), 10_000)


def test_a_window_slides() -> None:
    clock = Clock(1_020.0)  # where a stretch of 60 s begins
    windows = RateWindows(10, 60.0, clock)
    windows.take("a", 10)
    clock.now += 59
    with pytest.raises(TooManyRequests):
        windows.take("a", 1)
    windows.take("b", 10)
    clock.now += 31  # half of the next stretch: half of what was counts
    windows.take("a", 5)
    with pytest.raises(TooManyRequests):
        windows.take("a", 1)
    clock.now += 120
    windows.take("a", 10)


def test_a_window_forgets_those_who_did_nothing_for_longest() -> None:
    windows = RateWindows(1, 60.0, Clock())
    windows.take("first", 1)
    for number in range(CLIENTS):
        windows.take(str(number), 1)
    windows.take("first", 1)  # forgotten
    with pytest.raises(TooManyRequests):
        windows.take(str(CLIENTS - 1), 1)
    assert len(windows._counts) == CLIENTS


@given(
    most=st.integers(1, 50),
    steps=st.lists(st.tuples(st.floats(0, 100), st.integers(1, 50)), min_size=1, max_size=40),
)
def test_who_waits_as_told_gets_in(most: int, steps: Sequence[tuple[float, int]]) -> None:
    clock = Clock()
    windows = RateWindows(most, 60.0, clock)
    taken: list[tuple[float, int]] = []
    for pause, amount in steps:
        clock.now += pause
        amount = min(amount, most)
        try:
            windows.take("a", amount)
        except TooManyRequests as error:
            wait = retry_after(error)
            assert 1 <= wait <= 120
            clock.now += wait
            windows.take("a", amount)
        taken.append((clock.now, amount))
    for at, _ in taken:  # two stretches touch any window
        within = sum(amount for when, amount in taken if at <= when < at + 60)
        assert within <= 2 * most


# -- over HTTP -------------------------------------------------------------------------------------


@asynccontextmanager
async def admitting(servers: Servers, folder: Path, **terms: Any) -> AsyncIterator[Api]:
    config = ServerConfig(maintenance=False, admission=Admission(**terms))
    async with opened("sqlite-memory", servers, folder) as world, serving(world, config) as api:
        yield api


async def submit(api: Api, priority: Any = "medium", **headers: str) -> Reply:
    body = {"task_type": "work", "parameters": {}, "priority": priority}
    return await api.ask("POST", "/api/v1/tasks", body, **headers)


async def test_over_http_by_depth(servers: Servers, tmp_path: Path) -> None:
    async with admitting(servers, tmp_path, low=3, normal=5, all=7) as api:
        for depth, refused_ones in {3: {"low"}, 5: {"low", "medium"}, 7: set(LEVELS)}.items():
            while await api.world.depth() < depth:
                await api.world.submit()
            api.services.places._view._seen_at = float("-inf")  # it may be half a second old
            for level in LEVELS:
                reply = await submit(api, level)
                if level not in refused_ones:
                    await api.world.run(api.world.ops.cancel([told(reply, 201)["task_id"]]))
                    continue
                details = refused(reply, 429, "overloaded")
                assert details == {"depth": depth, "threshold": depth}
                assert int(reply.headers["retry-after"]) >= 1


async def test_over_http_by_what_is_delayed_too(servers: Servers, tmp_path: Path) -> None:
    """It was accepted, and will be due."""
    async with admitting(servers, tmp_path, all=3) as api:
        world = api.world
        await world.submit(delay_seconds=3_600)
        later = await world.submit(delay_seconds=3_600)
        ended = await world.submit()
        assert await world.settle(await world.claim_one(await world.worker())) is Verdict.APPLIED
        assert (await world.task(ended)).status is State.COMPLETED
        assert (await submit(api)).status == 201
        api.services.places._view._seen_at = float("-inf")
        details = refused(await submit(api, "critical"), 429, "overloaded")
        assert details == {"depth": 3, "threshold": 3}
        await world.run(world.ops.cancel([later]))
        api.services.places._view._seen_at = float("-inf")
        assert (await submit(api)).status == 201


async def test_many_retries_without_a_pause_take_an_operator(
    servers: Servers, tmp_path: Path
) -> None:
    async with admitting(servers, tmp_path) as api:
        one = {"task_type": "work", "parameters": {}, "max_retries": 1_000}
        wild = {**one, "retry_policy": {"base_seconds": 0}}
        _, admin = await new_token(api.world, "admin")
        _, other = await new_token(api.world, "submit")
        for path, body in {
            "/api/v1/tasks": wild,
            "/api/v1/tasks/batch": {"tasks": [one, wild]},
        }.items():
            reply = await api.ask("POST", path, body, **bearer(other))
            refused(reply, 422, "invalid_max_retries")
            assert (await api.ask("POST", path, body, **bearer(admin))).status == 201
        few = {**wild, "max_retries": 10}
        for body in (one, few):
            assert (await api.ask("POST", "/api/v1/tasks", body, **bearer(other))).status == 201
    async with admitting(servers, tmp_path) as api:  # without tokens, everybody operates the queue
        assert (await api.ask("POST", "/api/v1/tasks", wild)).status == 201


async def test_over_http_all_ways_of_submitting(servers: Servers, tmp_path: Path) -> None:
    async with admitting(servers, tmp_path, all=1) as api:
        await api.world.submit()
        _, vip = await new_token(api.world, "submit", exempt=True, name="vip")
        _, other = await new_token(api.world, "submit", name="other")
        one = {"task_type": "work", "parameters": {}}
        for path, body in {
            "/api/v1/tasks": one,
            "/api/v1/tasks/batch": {"tasks": [one]},
            "/api/tasks": {"type": "work", "payload": {}},
        }.items():
            refused(await api.ask("POST", path, body, **bearer(other)), 429, "overloaded")
        assert await api.world.depth() == 1
        for path, body in {"/api/v1/tasks": one, "/api/v1/tasks/batch": {"tasks": [one]}}.items():
            assert (await api.ask("POST", path, body, **bearer(vip))).status == 201


async def test_over_http_by_client(servers: Servers, tmp_path: Path) -> None:
    async with admitting(servers, tmp_path, per_minute=5) as api:
        _, first = await new_token(api.world, "submit", name="first")
        _, second = await new_token(api.world, "submit", name="second")
        _, vip = await new_token(api.world, "submit", exempt=True, name="vip")
        one = {"task_type": "work", "parameters": {}}
        batch = {"tasks": [one] * 4}
        for secret in (first, second):
            reply = await api.ask("POST", "/api/v1/tasks/batch", batch, **bearer(secret))
            assert reply.status == 201
            reply = await api.ask("POST", "/api/v1/tasks/batch", batch, **bearer(secret))
            refused(reply, 429, "too_many_requests")
            assert 1 <= int(reply.headers["retry-after"]) <= 120
            assert (await submit(api, **bearer(secret))).status == 201
            assert (await submit(api, **bearer(secret))).status == 429
        for _ in range(10):
            assert (await submit(api, **bearer(vip))).status == 201


async def test_over_http_by_address_where_there_are_no_tokens(
    servers: Servers, tmp_path: Path
) -> None:
    async with admitting(servers, tmp_path, per_minute=2, per_hour=100) as api:
        assert [(await submit(api)).status for _ in range(3)] == [201, 201, 429]
        # An address is where the connection is from, whatever a header says.
        for header in ("x-forwarded-for", "x-real-ip", "forwarded"):
            assert (await submit(api, **{header: "10.0.0.7"})).status == 429
        assert (await api.ask("GET", "/api/v1/queues")).status == 200
