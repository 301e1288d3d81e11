"""What Lua must know for itself says the same as the core, on the same values.

Each twin runs in a script that is assembled like the engine's own: with the very libraries that its
verbs use, and a few lines that call one function of them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from redis import Redis

from fairlane import engines
from fairlane.core import machine
from fairlane.core.backend import Backend
from fairlane.core.breaker import CLOSED, Breaker, Circuit, after
from fairlane.core.dependencies import dependency_on, dependency_on_all
from fairlane.core.ids import new_id
from fairlane.core.lanes import Bucket, Rules, allowance, opens_in, refilled
from fairlane.core.model import Ask, NewWorker, TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.priority import HIGHEST, LOWEST, MICROSECONDS, Aging
from fairlane.core.settlement import Settlement
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.tally import TallyKey, keys_of
from fairlane.core.uniqueness import Hold, Mode, counts, mask
from fairlane.engines import files
from fairlane.engines.redis import claim, scripts
from fairlane.engines.redis.keys import checked_prefix
from tests.fixtures.counters import tallies
from tests.fixtures.servers import RedisServer

NOW = 1_000_000 * MICROSECONDS
"""Small enough for cjson, which writes 14 digits."""
PREFIX = checked_prefix("fairlane")
SETS = [0, mask(State), mask({State.QUEUED, State.CANCELLED}), *(mask({each}) for each in State)]

Lua = Callable[..., list[Any]]
"""(libraries, body of a function of `row`, rows, arguments from the eighth on) -> answers."""


@pytest.fixture
def backend(redis_server: RedisServer) -> Iterator[Backend]:
    backend = engines.open(redis_server.url)
    backend.run_sync(backend.ops.migrate())
    yield backend
    backend.driver.close()


@pytest.fixture
def lua(backend: Backend, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Lua:
    def run(needs: str, body: str, rows: list[list[Any]], *arguments: Any) -> list[Any]:
        twins = f"""#!lua
-- needs: {needs}
now = {NOW}
local answers, stream = {{}}, nil
local function answer(row)
    {body}
end
for i, row in ipairs(cjson.decode(ARGV[1])) do
    answers[i] = answer(row)
end
return cjson.encode(answers)
"""

        def text(package: str, path: str) -> str:
            return twins if path == "lua/twins.lua" else files.text(package, path)

        monkeypatch.setattr(scripts, "text", text)
        source = scripts.script("twins").source
        with Redis.from_url(redis_server.url) as client:
            reply = client.eval(source, 1, PREFIX, msgspec.json.encode(rows), *[""] * 6, *arguments)
        answers: list[Any] = msgspec.json.decode(reply)
        assert len(answers) == len(rows) > 0
        return answers

    return run


def test_bond(lua: Lua) -> None:
    cases = list(itertools.product(State, (True, False)))
    found = lua(
        "record accounting moves dependents",
        "return dependency_on(row[1], row[2])",
        [[state.code, "1" if tolerant else "0"] for state, tolerant in cases],
    )
    assert found == [dependency_on(state, tolerant=tolerant).value for state, tolerant in cases]


def test_bonds_of_a_rerun(lua: Lua) -> None:
    states: list[State | None] = [None, *State]
    parents = [[], *([each] for each in states), *itertools.product(states, states)]
    cases = list(itertools.product(parents, (True, False)))
    found = lua(
        "record accounting moves dependents replays",
        """
        local ids = {}
        for i = 1, #row[1] do
            ids[i] = string.rep(char(i), 16)
        end
        local pending = pending_of(table.concat(ids), row[2], function(id)
            local state = row[1][byte(id)]
            return state > 0 and state or nil
        end)
        return not pending and 'broken' or #pending > 0 and 'pending' or 'met'
        """,
        [
            [[0 if state is None else state.code for state in each], "1" if tolerant else "0"]
            for each, tolerant in cases
        ],
    )
    assert found == [dependency_on_all(each, tolerant=tolerant).value for each, tolerant in cases]


def test_counts(lua: Lua) -> None:
    cases = list(itertools.product(SETS, State))
    found = lua(
        "record accounting moves dependents",
        "return counts(row[1], row[2])",
        [[states, state.code] for states, state in cases],
    )
    assert found == [counts(states, state) for states, state in cases]


def test_blocks(lua: Lua) -> None:
    period = 10 * MICROSECONDS
    ages = (-1, 0, 1, period - 1, period, period + 1)
    cases = list(itertools.product(SETS, (None, 1, period), State, ages))
    found = lua(
        "record accounting moves dependents admission",
        "return blocks(row[1], row[2], row[3], row[4])",
        [
            [states, "" if period is None else str(period), state.code, NOW - age]
            for states, period, state, age in cases
        ],
    )
    assert found == [
        Hold(b"", states, period, Mode.EXISTING).blocks(state, NOW - age, NOW)
        for states, period, state, age in cases
    ]


def test_replaces(lua: Lua) -> None:
    found = lua(
        "record accounting moves dependents admission",
        "return is_waiting(char(row[1]))",
        [[state.code] for state in State],
    )
    hold = Hold(b"", mask(State), None, Mode.REPLACE)
    assert found == [hold.replaces(state) for state in State]


RATES = (0.05, 0.3, 1.0, 7.5, 1_000.0)
AGES = (-5_000_000, 0, 1, 333_333, 1_000_000, 19_999_999, 60_000_000)
BUCKETS = [None, *(Bucket(tokens, NOW - age) for tokens in (0.0, 0.4, 1.0, 6.9) for age in AGES)]

PUT_BUCKET = """
    call('DEL', BUCKETS)
    if row[1] ~= '' then
        call('HSET', BUCKETS, 'type', row[1])
    end
"""


def _stored(bucket: Bucket | None) -> str:
    return "" if bucket is None else f"{bucket.tokens!r} {bucket.at}"


def test_refilled(lua: Lua) -> None:
    cases = list(itertools.product(BUCKETS, RATES))
    found = lua(
        "record claim_limits",
        f"{PUT_BUCKET} return {{refilled('type', row[2])}}",
        [[_stored(bucket), rate] for bucket, rate in cases],
    )
    for (bucket, rate), answer in zip(cases, found, strict=True):
        expected = refilled(bucket, rate, NOW)
        assert answer == [pytest.approx(expected.tokens), expected.at], (bucket, rate)


def test_allowance_and_opens_in(lua: Lua) -> None:
    openings = (None, NOW - 1, NOW, NOW + 1, NOW + 30 * MICROSECONDS)
    cases = [
        (
            Rules(
                rate=rate,
                concurrency=concurrency,
                breaker=Breaker(1, 1.0, cooldown),
                open_until=until,
            ),
            bucket,
            held,
        )
        for rate in (0.0, *RATES)
        for concurrency in (0, 1, 3)
        for until in openings
        for cooldown in (1.0, 30.0)
        for bucket in BUCKETS[::4]
        for held in (0, 1, 5)
    ]
    found = lua(
        "record claim_limits",
        PUT_BUCKET
        + """
    local quota = {type = 'type', rate = row[2], slots = row[3], open_until = row[4], counted = {7}}
    quota.opened_at = row[6]
    call('DEL', SLOTS .. 7)
    for run = 1, row[5] do
        call('SADD', SLOTS .. 7, run)
    end
    opening_wait = nil
    local left = allowance(quota, BATCH, {})
    return {left.most, opening_wait or -1}
""",
        [
            [
                *(_stored(bucket), rules.rate, rules.slots, rules.open_until or 0, held),
                rules.opened_at or 0,
            ]
            for rules, bucket, held in cases
        ],
    )
    for (rules, bucket, held), (most, wait) in zip(cases, found, strict=True):
        full = refilled(bucket, rules.rate, NOW)
        assert most == allowance(rules, full, held, NOW), (rules, bucket, held)
        opens = opens_in(rules, full, NOW)
        assert (None if wait < 0 else wait / MICROSECONDS) == (
            None if opens is None else pytest.approx(opens, abs=1e-6)
        ), (rules, bucket, held)


def test_after(lua: Lua) -> None:
    times = (-120, -61, -60, -59.5, -1, 0, 0.5, 1, 1.5, 29.5, 30, 31, 32)
    at = [NOW + int(seconds * MICROSECONDS) for seconds in times]
    circuits = [
        CLOSED,
        *(Circuit((each,)) for each in at),
        Circuit(tuple(at[:4])),
        Circuit(tuple(at)),
        *(Circuit(open_until=each) for each in at),
    ]
    breakers = [
        Breaker(most, within, cooldown)
        for most in (1, 2, 5)
        for within in (0.7, 60.0)
        for cooldown in (1.1, 30.0)
    ]
    cases = list(itertools.product(circuits, breakers, (0, 1, 3), (0, 1, 3)))
    found = lua(
        "record slots catalogue circuits",
        """
    local failures, open_until = read_circuit(row[1])
    return stored_circuit(circuit_after(failures, open_until, cjson.decode(row[2]), row[3], row[4]))
""",
        [
            [msgspec.json.encode(circuit).decode(), msgspec.json.encode(breaker).decode(), *runs]
            for circuit, breaker, *runs in cases
        ],
    )
    for case, answer in zip(cases, found, strict=True):
        expected = after(*case, NOW)
        assert answer == msgspec.json.encode(expected).decode(), case


@pytest.mark.parametrize(
    "aging",
    [
        Aging(),
        Aging(None, None, None),
        Aging(0.0, 0.0, 0.0),
        Aging(10.0, None, 5.0),
        Aging(3.0, 20.0, 40.5),
    ],
)
def test_effective(lua: Lua, aging: Aging) -> None:
    steps = {s.to_age for level in range(HIGHEST + 1) for s in aging.segments(level) if s.to_age}
    ages = {0, 1, 2_000 * MICROSECONDS, *(age + by for age in steps for by in (-1, 0, 1))}
    # A claim reads each of its streams from the oldest task on, and goes by what it found last.
    cases = list(itertools.product(range(LOWEST, HIGHEST + 1), sorted(ages, reverse=True)))
    found = lua(
        "record claim_order",
        """
    local level, ready_at = row[1], now - row[2]
    if not stream or stream.level ~= level then
        stream = {level = level}
    end
    return {effective_level({level = level}, ready_at), effective_level(stream, ready_at)}
""",
        [[level, age] for level, age in cases],
        claim._encoded_aging(aging),
        aging.youth,
    )
    assert found == [[aging.effective(level, age)] * 2 for level, age in cases]


REPLAYED = (State.SCHEDULED, State.RETRYING, State.FAILED, State.DEAD_LETTER, State.CANCELLED)


@pytest.mark.parametrize("level", [None, 5, 8])
def test_keys_of(backend: Backend, level: int | None) -> None:
    ops, run = backend.ops, backend.run_sync
    tasks = {state: _stored_task(backend, state) for state in REPLAYED}
    move = machine.replay(reset_retry_count=True, level=level)
    for state, task_id in tasks.items():
        before = _counted(backend)
        (answer,) = run(ops.replay([task_id], level=level))
        assert (answer.applied, answer.state) == (True, state)
        (lane,) = run(ops.facts()).lanes
        expected = Counter(keys_of(move, lane, 5, state.code))
        assert _counted(backend) - before == expected, state


def _counted(backend: Backend) -> Counter[TallyKey]:
    return Counter({key: times for key, times, _ in backend.run_sync(tallies(backend.ops))})


def _stored_task(backend: Backend, state: State) -> str:
    """Store a task of level 5 that is in this state."""
    ops, run = backend.ops, backend.run_sync
    task = new_task(
        "work",
        priority=5,
        delay_seconds=1_000 if state is State.SCHEDULED else 0,
        max_retries=1 if state is State.RETRYING else 0,
    )
    run(ops.submit([task]))
    if state is State.CANCELLED:
        run(ops.cancel([task.task_id]))
    elif state is not State.SCHEDULED:
        worker = run(ops.register(NewWorker(new_id())))
        (claimed,) = run(ops.claim(Ask(worker, new_id(), 1))).tasks
        error = TaskError("x", retriable=state is not State.FAILED)
        report = Settlement(claimed.task_id, claimed.attempt, worker, Failed(error), claimed)
        run(ops.settle([report]))
    (stored,) = run(ops.get([task.task_id]))
    assert stored is not None
    assert stored.status is state
    return task.task_id
