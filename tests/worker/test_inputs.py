"""Handlers whose arguments are results of other tasks, on every engine and through a server."""

from __future__ import annotations

import asyncio
import logging
import os
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from fairlane import Fail, Failed, Fairlane, Handle, Prepared, State
from fairlane.client.parent_results import ParentResults
from fairlane.core import limits
from fairlane.core.errors import InvalidArguments, StoreUnavailable
from fairlane.core.flow import Op
from fairlane.core.inputs import Input
from fairlane.core.outcomes import Completed
from fairlane.core.sealing import Key
from fairlane.core.submission import new_task
from fairlane.runtime.arguments import Arguments
from fairlane.runtime.results import Unanswered
from fairlane.worker.processes import Processes
from tests.conformance.test_encryption import keyed
from tests.conftest import Servers
from tests.fixtures.raw import written
from tests.fixtures.stores import KINDS, REMOTE, World, opened
from tests.worker import isolated
from tests.worker.isolated import TARGET
from tests.worker.kit import PATIENCE, application, ended, seen, working

KEY, OTHER = Key("k1", b"1" * 32), Key("k2", b"2" * 32)


class Order(msgspec.Struct):
    number: int
    lines: list[str] = []


class Price(msgspec.Struct, frozen=True):
    cents: int


@pytest.fixture(params=[*KINDS, REMOTE])
async def world(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


def shop(world: World) -> Fairlane:
    """An application whose tasks take results of each other."""
    app = application(world)

    @app.task
    async def load(number: int) -> Order:
        return Order(number, [f"line {n}" for n in range(number)])

    @app.task(max_retries=0)
    async def price(cents: int) -> Price:
        if cents < 0:
            raise Fail("sold out", code="OUT_OF_STOCK")
        return Price(cents)

    @app.task
    async def charge(order: Order, card: str) -> str:
        assert isinstance(order, Order)
        return f"{card} pays order {order.number}"

    @app.task
    async def total(prices: list[Price], currency: str = "EUR") -> str:
        return f"{sum(each.cents for each in prices)} {currency}"

    @app.task
    async def best(prices: tuple[Price | Failed, ...]) -> list[Any]:
        return [p.code if isinstance(p, Failed) else p.cents for p in prices]

    @app.task
    def show(line: str, price: Price | Failed | None = None) -> Any:
        return [line, price if price is None or isinstance(price, Failed) else price.cents]

    @app.task
    async def anything(value: Any) -> Any:
        return [type(value).__name__, value]

    return app


def call(
    app: Fairlane,
    name: str,
    parents: Sequence[Handle[Any]],
    inputs: Mapping[str, Input],
    /,
    *args: Any,
    options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Prepared[Any]:
    """A call of a task, some of whose arguments are results."""
    arguments = app.tasks[name].arguments
    payload = arguments.encode(args, kwargs, later=inputs.keys())
    ids = [parent.task_id for parent in parents]
    most = app.payload_bytes
    task = new_task(
        name, payload, depends_on=ids, inputs=inputs, payload_bytes=most, **(options or {})
    )
    return Prepared(task, arguments.returns, app)


async def submitted(app: Fairlane, name: str, *args: Any) -> Handle[Any]:
    handle: Handle[Any] = await app.tasks[name].submit(*args)
    return handle


TOLERANT = {"on_parent_failure": "continue"}
FIRST = {"value": Input((0,))}


async def test_results_become_arguments(world: World) -> None:
    app = shop(world)
    order = await submitted(app, "load", 7)
    prices = [await submitted(app, "price", cents) for cents in (3, 4)]
    charged = await app.submit(call(app, "charge", [order], {"order": Input((0,))}, card="visa"))
    added = await app.submit(
        call(app, "total", prices, {"prices": Input((1, 0, 1), many=True)}, currency="USD")
    )
    shown = await app.submit(call(app, "show", [order], {"line": Input((0,), path=("lines", 2))}))
    nothing = await app.submit(call(app, "total", [], {"prices": Input((), many=True)}))
    async with working(app):
        assert await charged.result(PATIENCE) == "visa pays order 7"
        assert await added.result(PATIENCE) == "11 USD"
        assert await shown.result(PATIENCE) == ["line 2", None]
        assert await nothing.result(PATIENCE) == "0 EUR"
    task = await app.get(charged.task_id)
    assert task is not None
    assert task.payload == {"card": "visa"}, "nothing is stored twice"
    assert task.inputs["order"].parents == (order.task_id,)


async def test_a_parent_that_failed_is_a_value_or_the_default(world: World) -> None:
    app = shop(world)
    good, bad = await submitted(app, "price", 5), await submitted(app, "price", -1)
    one, many = {"price": Input((0,))}, {"prices": Input((0, 1), many=True)}
    calls = [
        call(app, "best", [good, bad], many, options=TOLERANT),
        call(app, "show", [bad], one, "a line", options=TOLERANT),
        call(app, "show", [good], one, "a line", options=TOLERANT),
        call(app, "anything", [bad], FIRST, options=TOLERANT),
        call(app, "total", [bad], {"currency": Input((0,))}, [], options=TOLERANT),
        call(app, "total", [good, bad], many, options=TOLERANT),
        call(app, "charge", [bad], {"order": Input((0,))}, card="visa", options=TOLERANT),
    ]
    handles = await app.submit_many(calls)
    async with working(app):
        first = [await each.result(PATIENCE) for each in handles[:5]]
        last = [await ended(app, each.task_id) for each in handles[5:]]
    failed = {
        "task_id": bad.task_id,
        "state": "failed",
        "code": "OUT_OF_STOCK",
        "message": "sold out",
    }
    assert first == [
        [5, "OUT_OF_STOCK"],
        ["a line", failed],
        ["a line", 5],
        ["Failed", failed],
        "0 EUR",
    ]
    for task, parameter in zip(last, ("prices", "order"), strict=True):
        assert (task.state, task.attempt) == (State.FAILED, 1)
        assert task.error is not None
        assert task.error.code == "INPUT_MISSING"
        assert f"The parameter {parameter} of shop.<locals>." in task.error.message
        assert f"task {bad.task_id}, which is failed (sold out). Give the" in task.error.message


async def test_a_child_that_does_not_go_on_is_cancelled_as_before(world: World) -> None:
    app = shop(world)
    bad = await submitted(app, "price", -1)
    child = await app.submit(call(app, "anything", [bad], FIRST))
    async with working(app):
        assert (await ended(app, child.task_id)).state is State.CANCELLED


async def test_what_cannot_be_an_argument_fails_for_good(world: World) -> None:
    app = shop(world)
    order, gone = await submitted(app, "load", 1), await submitted(app, "load", 2)
    nowhere = {"value": Input((0,), path=("lines", 1, "sku"))}
    path = await app.submit(call(app, "anything", [order], nowhere))
    deleted = await app.submit(call(app, "anything", [order, gone], {"value": Input((1,))}))
    misfit = await app.submit(call(app, "total", [order], {"prices": Input((0,))}))
    fine = await app.submit(call(app, "anything", [order], FIRST))
    for _ in range(2):
        await end_one(world, "load")
    await world.run(world.ops.delete([gone.task_id]))
    async with working(app):
        tasks = [await ended(app, each.task_id) for each in (path, deleted, misfit)]
        assert (await fine.result(PATIENCE))[0] == "dict"
    assert [(task.state, task.attempt) for task in tasks] == [(State.FAILED, 1)] * 3
    errors = [task.error for task in tasks if task.error is not None]
    assert [error.code for error in errors] == ["INPUT_MISSING", "INPUT_MISSING", "INVALID_PAYLOAD"]
    assert f"'value' is the result of task {order.task_id}, which has no part" in errors[0].message
    assert f"'value' is the result of task {gone.task_id}, which was deleted" in errors[1].message
    assert "Expected `array`, got `object` - at `$.prices`" in errors[2].message


async def end_one(world: World, type: str) -> None:
    """Complete the next task of a type, which is an order."""
    worker = await world.worker()
    (task,) = (await world.ask(worker, 1, types=frozenset({type}))).tasks
    number = msgspec.json.decode(task.payload)["number"]
    await world.settle(task, Completed(b'{"number":%d,"lines":["only"]}' % number))


async def test_all_that_a_handler_can_be(world: World) -> None:
    app = shop(world)
    calls = {"middleware": 0}

    @app.around
    async def count(_: Any, run: Callable[[], Any]) -> Any:
        calls["middleware"] += 1
        return await run()

    @app.task
    def on_thread(order: Order, **more: Any) -> Any:
        return [order.number, more]

    order = await submitted(app, "load", 3)
    inputs = {"order": Input((0,)), "extra": Input((0,), path=("number",))}
    handle = await app.submit(call(app, "on_thread", [order], inputs, other=1))
    async with working(app):
        assert await handle.result(PATIENCE) == [3, {"extra": 3, "other": 1}]
    assert calls["middleware"] == 2


async def test_a_process_of_its_own_gets_the_results_with_its_order(memory: World) -> None:
    isolated.app._connection.adopt(memory.backend)
    app = isolated.app
    good, bad = await memory.submit("double"), await memory.submit("double")
    parents: list[Handle[Any]] = [Handle(app, task_id, Any) for task_id in (good, bad)]
    inputs = {"numbers": Input((0, 1), many=True)}
    child = await app.submit(call(app, "collect", parents, inputs, "n", options=TOLERANT))
    strict = await app.submit(
        call(app, "collect", parents, {"label": Input((1,)), **inputs}, options=TOLERANT)
    )
    worker = await memory.worker()
    tasks = {task.task_id: task for task in await memory.claim(worker, 2)}
    await memory.settle(tasks[good], Completed(b"20"))
    await memory.run(memory.ops.cancel([bad]))
    async with working(app, target=TARGET, concurrency=1):
        label, first, second, pid = await child.result(PATIENCE)
        error = (await ended(app, strict.task_id)).error
        assert error is not None
        assert error.code == "INPUT_MISSING"
    assert (label, first, second["state"]) == ("n", 20, "cancelled")
    assert pid != os.getpid()
    await app.aclose()


def inputs_of(*places: int) -> dict[str, Input]:
    return {"numbers": Input(places, many=True)}


async def test_a_process_of_its_own_is_not_started_for_nothing(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def execute(*_: object) -> Any:
        raise AssertionError("there is nothing to run")

    monkeypatch.setattr(Processes, "execute", execute)
    isolated.app._connection.adopt(memory.backend)
    app = isolated.app
    parent: Handle[Any] = Handle(app, await memory.submit("double"), Any)
    child = await app.submit(call(app, "collect", [parent], inputs_of(0), "n"))
    worker = await memory.worker()
    await memory.settle(await memory.claim_one(worker))
    await memory.run(memory.ops.delete([parent.task_id]))
    async with working(app, target=TARGET):
        task = await ended(app, child.task_id)
    assert task.error is not None
    assert task.error.code == "INPUT_MISSING"
    await app.aclose()


class Msgpack:
    """Values with bytes, in text."""

    def encode(self, value: Any) -> str:
        return b64encode(msgspec.msgpack.encode(value)).decode()

    def decode(self, value: Any) -> Any:
        return msgspec.msgpack.decode(b64decode(value, validate=True))


async def test_results_and_arguments_with_codecs(world: World) -> None:
    app = shop(world)
    app.codec("msgpack", Msgpack())

    @app.task(codec="msgpack")
    async def draw(text: str) -> bytes:
        return text.encode() + b"\xff"

    @app.task
    async def look(images: list[bytes], one: bytes, note: str = "") -> list[Any]:
        return [images == [b"a\xff", b"b\xff"], one == b"a\xff", note]

    @app.task(codec="msgpack")
    async def frame(image: bytes, order: Order, border: bytes) -> bytes:
        assert order.number == 2
        return border + image

    parents = [await submitted(app, "draw", text) for text in "ab"]
    inputs = {"images": Input((0, 1), many=True), "one": Input((0,))}
    looked = await app.submit(call(app, "look", parents, inputs, note="hm"))
    parents.append(await submitted(app, "load", 2))
    inputs = {"image": Input((0,)), "order": Input((2,))}
    framed = await app.submit(call(app, "frame", parents, inputs, border=b"\xfe"))
    async with working(app):
        assert await looked.result(PATIENCE) == [True, True, "hm"]
        assert await framed.result(PATIENCE) == b"\xfea\xff"


async def test_a_result_whose_codec_fails_shows_nothing_of_it(quick: Fairlane) -> None:
    quick.codec("msgpack", Msgpack())

    @quick.task(max_retries=3)
    async def look(image: bytes) -> None: ...

    @quick.task
    async def forge() -> Any:
        return {"$codec": "msgpack", "data": "secret"}

    @quick.task
    async def unknown() -> Any:
        return {"$codec": "other", "data": "secret"}

    parents = [await submitted(quick, name) for name in ("forge", "unknown")]
    calls = [call(quick, "look", parents, {"image": Input((place,))}) for place in range(2)]
    handles = await quick.submit_many(calls)
    async with working(quick):
        tasks = [await ended(quick, each.task_id) for each in handles]
    messages = [task.error.message for task in tasks if task.error is not None]
    assert [task.attempt for task in tasks] == [1, 1]
    assert "codec msgpack cannot decode the result (" in messages[0]
    assert "There is no codec 'other' here" in messages[1]
    assert "secret" not in "".join(messages)


@pytest.mark.parametrize(
    ("world", "kind"),
    [*((each, "store") for each in KINDS), *((each, "file") for each in (*KINDS, REMOTE))],
    indirect=["world"],
)
async def test_a_payload_by_reference_with_inputs(world: World, kind: str, tmp_path: Path) -> None:
    app = shop(world)
    app.blobs = "store" if kind == "store" else f"file://{tmp_path / 'blobs'}"
    order = await submitted(app, "load", 4)
    card = "x" * limits.PAYLOAD_BYTES
    handle = await app.submit(call(app, "charge", [order], {"order": Input((0,))}, card=card))
    async with working(app):
        assert await handle.result(PATIENCE) == f"{card} pays order 4"


@pytest.mark.parametrize("world", KINDS, indirect=True)
async def test_encrypted_results_are_opened_for_the_child_alone(world: World) -> None:
    app = shop(keyed(world, KEY))
    order = await submitted(app, "load", 5)
    path = {"line": Input((0,), path=("lines", 0))}
    shown = await app.submit(call(app, "show", [order], path))
    async with working(app):
        assert await shown.result(PATIENCE) == ["line 0", None]
    raw = await written(world.backend, world.url)
    assert b"line 0" not in raw


async def test_a_result_whose_key_is_missing_is_left_to_others(
    memory: World, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = shop(keyed(memory, OTHER)), shop(keyed(memory, KEY, OTHER))
    order = await submitted(old, "load", 5)
    async with working(old):
        await order.result(PATIENCE)
    child = await new.submit(call(new, "charge", [order], {"order": Input((0,))}, card="visa"))
    with caplog.at_level(logging.ERROR, "fairlane.worker"):
        async with working(shop(keyed(memory, KEY))):
            task = await seen(new, child.task_id, State.SCHEDULED)
    assert (task.retry_count, task.error) == (0, None)
    assert "k2, which is not among those given" in caplog.text
    await memory.advance(60)
    async with working(new):
        assert await child.result(PATIENCE) == "visa pays order 5"


async def test_compressed_results(servers: Servers, tmp_path: Path) -> None:
    async with opened("sqlite-file", servers, tmp_path, compress_results=100) as world:
        app = shop(world)
        order = await submitted(app, "load", 100)
        path = {"line": Input((0,), path=("lines", 99))}
        shown = await app.submit(call(app, "show", [order], path))
        async with working(app):
            assert await shown.result(PATIENCE) == ["line 99", None]
        raw = await written(world.backend, world.url)
        assert b"line 50" not in raw


async def test_tasks_that_start_together_share_reads(memory: World) -> None:
    backend = memory.backend
    reads: list[list[str]] = []
    opened_gate, gate = asyncio.Event(), asyncio.Event()

    class Counting:
        ops = backend.ops

        async def run(self, op: Op[Any]) -> Any:
            opened_gate.set()
            await gate.wait()
            found = await backend.run(op)
            reads.append([task.task_id for task in found if task is not None])
            return found

    parents = [await memory.submit() for _ in range(60)]
    results = ParentResults(Counting())  # type: ignore[arg-type]
    one = new_task("x", depends_on=parents[:1], inputs={"a": Input((0,))}).spec
    many = new_task("x", depends_on=parents, inputs={"a": Input(tuple(range(60)), many=True)}).spec
    first = asyncio.create_task(results.of(one))
    await opened_gate.wait()
    others = [asyncio.create_task(results.of(spec)) for spec in (one, one, many)]
    await asyncio.sleep(0)
    gate.set()
    assert list(await first) == parents[:1]
    found = await asyncio.gather(*others)
    assert [len(each) for each in found] == [1, 1, 60]
    assert sorted(map(len, reads)) == [1, 10, 25, 25], "equal ones and those at once are one read"


async def test_a_store_that_is_away_costs_a_retry(
    quick: Fairlane, memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = True
    read = ParentResults._get

    async def get(self: ParentResults, task_ids: Sequence[str]) -> Any:
        if away:
            raise StoreUnavailable("away")
        return await read(self, task_ids)

    monkeypatch.setattr(ParentResults, "_get", get)
    app = shop(memory)
    order = await submitted(app, "load", 1)
    options = {"max_retries": 1}
    child = await app.submit(
        call(app, "charge", [order], {"order": Input((0,))}, card="visa", options=options)
    )
    async with working(app):
        task = await seen(app, child.task_id, State.RETRYING)
        assert task.error is not None
        assert task.error.code == "STORE_UNAVAILABLE"
        away = False
        await memory.advance(3600)
        assert await child.result(PATIENCE) == "visa pays order 1"


async def test_results_that_are_too_large_together(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INPUT_BYTES", 1_000)
    app = shop(memory)
    large = [await submitted(app, "load", 40) for _ in range(3)]
    inputs = {"value": Input((0, 1, 2), many=True)}
    child = await app.submit(call(app, "anything", large, inputs))
    async with working(app):
        task = await ended(app, child.task_id)
    assert (task.state, task.attempt) == (State.FAILED, 1)
    assert task.error is not None
    assert task.error.code == "INPUTS_TOO_LARGE"


@pytest.mark.parametrize("payload", [b"no json", b'{"card":', b'{"$sealed":"k.AAAAAAAA.x"}'])
async def test_a_damaged_payload_is_reported_as_such(memory: World, payload: bytes) -> None:
    app = shop(memory)
    order = await submitted(app, "load", 1)
    prepared = call(app, "charge", [order], {"order": Input((0,))}, card="visa")
    task = msgspec.structs.replace(prepared.task, payload=payload)
    await memory.submit_all([task])
    async with working(app):
        found = await ended(app, task.task_id)
    assert found.error is not None
    assert found.error.code == "INVALID_PAYLOAD"


async def test_inline_and_in_memory() -> None:
    app = Fairlane("sqlite:///nowhere/at/all.db")

    @app.task
    async def load(number: int) -> dict[str, int]:
        return {"number": number}

    @app.task
    async def charge(order: dict[str, int], card: str = "visa") -> str:
        return f"{card} {order['number']}"

    with app.in_memory() as store:
        order = await load.submit(3)
        child = await app.submit(call(app, "charge", [order], {"order": Input((0,))}))
        store.assert_submitted(charge, card="visa")
        store.assert_not_submitted(charge, order={"number": 3})
        with pytest.raises(AssertionError, match="order is not given"):
            store.assert_submitted(charge, order={"number": 3})
        assert await store.work() == 2
        assert await child.result(PATIENCE) == "visa 3"
    with app.inline():
        order = await load.submit(4)
        child = await app.submit(call(app, "charge", [order], {"order": Input((0,))}))
        assert await child.result(PATIENCE) == "visa 4"


class TestArguments:
    """What can be said of a call, and what a handler gets."""

    @staticmethod
    def handler(order: Order, card: str, note: str = "") -> None: ...

    def test_what_comes_later_need_not_be_given(self) -> None:
        arguments = Arguments(self.handler)
        assert arguments.encode((), {"card": "visa"}, later={"order"}) == b'{"card":"visa"}'
        assert arguments.encode((Order(1),), {}, {"card"}) == b'{"order":{"number":1,"lines":[]}}'
        assert arguments.encode((), {}, {"card", "order", "note"}) == b"{}"
        payload = arguments.encode((), {"card": "visa"}, later={"order"})
        assert arguments.call(payload, {"order"}) == {"card": "visa", "note": ""}

    @pytest.mark.parametrize(
        ("args", "kwargs", "later", "says"),
        [
            ((), {}, {"order"}, "handler is missing a required argument: 'card'"),
            ((), {"card": 5}, {"order"}, "Expected `str`, got `int`"),
            ((), {"card": "v"}, {"order", "x"}, "has no parameter 'x'"),
            ((Order(1), "v"), {}, {"order"}, "is given 'order', which is the result of another"),
            ((), {"card": "v", "y": 1}, {"order"}, "unexpected keyword argument 'y'"),
        ],
    )
    def test_what_does_not_fit(self, args: Any, kwargs: Any, later: Any, says: str) -> None:
        with pytest.raises(InvalidArguments, match=says):
            Arguments(self.handler).encode(args, kwargs, later)

    def test_any_name_is_later_where_any_name_is_taken(self) -> None:
        def anything(**values: int) -> None: ...

        assert Arguments(anything).encode((), {"a": 1}, later={"b"}) == b'{"a":1}'

    @pytest.mark.parametrize(
        ("hint", "expected"),
        [
            (list[Price | Failed], [Price(1), None]),
            (list[Any], [{"cents": 1}, None]),
            (list, [{"cents": 1}, None]),
            (Any, [{"cents": 1}, None]),
            (Sequence[Price | Failed], [Price(1), None]),
            (tuple[Price | Failed, ...], (Price(1), None)),
            (tuple[Price, Failed | None], (Price(1), None)),
            (tuple[Price, Price | Failed | None], (Price(1), None)),
            (set[Price | Failed], {Price(1), None}),
            (frozenset[Price | Failed], frozenset({Price(1), None})),
            (list[Price | Failed] | None, [Price(1), None]),
            (Annotated[list[Annotated[Price | Failed, "x"]], "y"], [Price(1), None]),
        ],
        ids=str,
    )
    def test_a_list_of_results_becomes_what_the_handler_declares(
        self, hint: Any, expected: Any
    ) -> None:
        def handler(prices: Any) -> None: ...

        handler.__annotations__["prices"] = hint
        failed = Failed("t", State.FAILED, None, "m")
        form = msgspec.json.encode({"$failed": failed})
        arguments = Arguments(handler)
        inputs = {"prices": Input((), many=True)}
        (value,) = arguments.take(b'{"prices":[{"cents":1},%b]}' % form, inputs).values()
        kind = type(expected)
        assert value == kind(failed if each is None else each for each in expected)

    @pytest.mark.parametrize(
        "hint", [list[Price], tuple[Price, Price], tuple[Failed, Price], set[Price] | None]
    )
    def test_where_nothing_failed_may_be_it_is_refused(self, hint: Any) -> None:
        def handler(prices: Any) -> None: ...

        handler.__annotations__["prices"] = hint
        form = msgspec.json.encode({"$failed": Failed("t", State.FAILED, None, "m")})
        inputs = {"prices": Input((), many=True)}
        with pytest.raises(Unanswered, match="let its type be"):
            Arguments(handler).take(b'{"prices":[%b,%b]}' % (form, form), inputs)

    def test_a_tuple_has_as_many_results_as_it_says(self) -> None:
        def handler(prices: tuple[Price | Failed, Price]) -> None: ...

        form = msgspec.json.encode({"$failed": Failed("t", State.FAILED, None, "m")})
        with pytest.raises(InvalidArguments, match="Expected 2 results, got 1"):
            Arguments(handler).take(b'{"prices":[%b]}' % form, {"prices": Input((), many=True)})

    def test_a_failure_alone(self) -> None:
        def handler(why: Failed) -> None: ...

        failed = Failed("t", State.FAILED, "C", "m")
        payload = b'{"why":%b}' % msgspec.json.encode({"$failed": failed})
        assert Arguments(handler).take(payload, {"why": Input((0,))}) == {"why": failed}

    def test_in_a_payload_it_means_nothing(self) -> None:
        def handler(why: Failed | dict[str, Any]) -> None: ...

        form = {"$failed": {"task_id": "t"}}
        payload = msgspec.json.encode({"why": form})
        assert Arguments(handler).decode(payload) == {"why": form}

    def test_the_schema_shows_the_result(self) -> None:
        def handler(prices: list[Price | Failed], order: Order | Failed) -> None: ...

        schema = Arguments(handler).schema
        assert schema is not None
        assert schema["properties"] == {
            "prices": {"type": "array", "items": {"$ref": "#/$defs/Price"}},
            "order": {"$ref": "#/$defs/Order"},
        }

    def test_what_is_still_missing(self) -> None:
        arguments, inputs = Arguments(self.handler), {"note": Input((0,))}
        with pytest.raises(InvalidArguments, match="The result for the parameter note does not"):
            arguments.take(b'{"card":"v","note":{"$failed":1}}', inputs)
        failed = msgspec.json.encode({"$failed": Failed("t", State.FAILED, None, "m")})
        with pytest.raises(InvalidArguments, match="order is missing"):
            arguments.take(b'{"card":"v","note":%b}' % failed, inputs)
