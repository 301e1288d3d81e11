"""001's programming interface: the calls and examples of the specification, in Python."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pydantic
import pytest

import fairlane.tq as module
from fairlane.core.errors import InvalidPayload
from fairlane.dialects.errors import AlreadyInitialised, NotInitialised
from fairlane.tq import TQ, Task, TaskTypeContext, tq
from fairlane.wire.spec import RETRY
from tests.dialects.kit import Calls, settled


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[TQ]:
    """The program's queue, on a file of this test's own."""
    tq.init(db=tmp_path / "tasks.db", poll_interval=20)
    yield tq
    await tq.stop()


async def test_the_example_of_section_2(queue: TQ) -> None:
    crawled, mailed = Calls(), Calls()

    async def crawl(payload: dict[str, str]) -> None:
        crawled(payload["url"])

    (tq("crawl").set_worker(crawl).set_worker_count(3).set_rate_limit(10).set_timeout(300))

    tq("crawl").add({"url": "https://www.google.com/"})
    tq("crawl").add({"url": "https://www.baidu.com/"})
    (
        tq("crawl")
        .add({"url": "https://example.com/1"})
        .add({"url": "https://example.com/2"})
        .add({"url": "https://example.com/3"})
    )

    tq("email").set_worker(mailed).set_worker_count(1).set_rate_limit(5)
    tq("email").add({"to": "user@example.com", "subject": "Hello"})

    await crawled.reach(5)
    await mailed.reach(1)
    assert set(crawled.given) >= {"https://www.google.com/", "https://example.com/3"}
    assert mailed.given == [{"to": "user@example.com", "subject": "Hello"}]


async def test_the_example_of_section_5(queue: TQ) -> None:
    sent, processed = Calls(), Calls()

    async def send_email(payload: dict[str, str]) -> None:
        sent((payload["to"], payload["subject"], payload["body"]))

    async def process_image(payload: dict[str, str]) -> None:
        processed(payload["imageUrl"])

    (tq("send_email").set_worker(send_email).set_worker_count(2).set_rate_limit(10).set_timeout(30))
    (
        tq("process_image")
        .set_worker(process_image)
        .set_worker_count(4)
        .set_rate_limit(20)
        .set_timeout(300)
    )
    tq("send_email").add({"to": "user@example.com", "subject": "Welcome", "body": "Hello!"})
    tq("process_image").add({"imageUrl": "/uploads/photo.jpg"})
    tq("send_email").add(
        {"to": "vip@example.com", "subject": "Important"},
        max_attempts=10,
        run_after=datetime(2125, 12, 31, tzinfo=UTC),
    )
    await sent.reach(1)
    await processed.reach(1)
    tq.pause()
    tq.resume()
    stats = await settled(tq.stats, lambda found: found.completed == 2)
    assert (stats.pending, stats.processing, stats.failed) == (1, 0, 0)
    assert stats.by_type["send_email"] == {
        "pending": 1,
        "processing": 0,
        "completed": 1,
        "failed": 0,
        "cancelled": 0,
    }
    assert sent.given == [("user@example.com", "Welcome", "Hello!")]


async def test_the_handler_of_section_2_1(queue: TQ) -> None:
    sent = Calls()

    def handle_email_send(payload: dict[str, str]) -> dict[str, str]:
        sent((payload["to"], payload["subject"], payload["body"]))
        return {"message_id": "abc123"}

    tq("send_email").set_worker(handle_email_send)
    tq("send_email").add({"to": "a@example.com", "subject": "s", "body": "b"})
    await settled(tq.stats, lambda found: found.completed == 1)
    assert sent.given == [("a@example.com", "s", "b")]


async def test_the_example_of_section_7(queue: TQ) -> None:
    crawled = Calls()

    async def crawl(url: str) -> None:
        crawled(url)

    (
        tq("crawl")
        .set_worker(lambda payload: crawl(payload["url"]))
        .set_worker_count(3)
        .set_rate_limit(10)
        .set_timeout(300)
    )
    tq("crawl").add({"url": "https://example.com/1"}).add({"url": "https://example.com/2"})
    tq.pause()
    tq.resume()
    await crawled.reach(2)
    assert set(crawled.given) == {"https://example.com/1", "https://example.com/2"}


@pytest.mark.parametrize(
    "payload",
    [None, True, 0, -0.5, "text", "", [], [1, [2, {"a": None}]], {}, {"$value": 1}, {"a b": "ü"}],
    ids=repr,
)
async def test_any_json_comes_back_exactly(queue: TQ, payload: Any) -> None:
    given = Calls()
    tq("echo").add(payload).set_worker(given)
    await given.reach(1)
    assert given.given == [payload]


async def test_a_worker_that_is_not_async_runs_beside_the_loop(queue: TQ) -> None:
    threads = Calls()
    tq("blocking").set_worker(lambda _: threads(threading.current_thread())).add({})
    await threads.reach(1)
    assert threads.given[0] not in {threading.main_thread(), threading.current_thread()}


async def test_a_lambda_may_call_what_is_async(queue: TQ) -> None:
    crawled = Calls()

    async def crawl(url: str) -> None:
        await asyncio.sleep(0)
        crawled(url)

    tq("crawl").set_worker(lambda payload: crawl(payload["url"])).add({"url": "x"})
    await crawled.reach(1)
    assert crawled.given == ["x"]


class _Gate:
    """A handler that says when it begins, and waits until it may end."""

    def __init__(self) -> None:
        self.begun = Calls()
        self.open = threading.Event()
        self.running = self.most = 0
        self._guard = threading.Lock()

    def __call__(self, payload: Any) -> None:
        with self._guard:
            self.running += 1
            self.most = max(self.most, self.running)
        self.begun(payload)
        self.open.wait(30)
        with self._guard:
            self.running -= 1


async def test_one_task_at_a_time_by_default(queue: TQ) -> None:
    gate, others = _Gate(), Calls()
    tq("slow").set_worker(gate).add(1).add(2)
    await gate.begun.reach(1)
    tq("other").set_worker(others).add(1)
    await others.reach(1)
    assert gate.begun.given == [1]
    gate.open.set()
    await gate.begun.reach(2)
    assert gate.most == 1


async def test_worker_counts_grow_and_shrink(queue: TQ) -> None:
    gate = _Gate()
    context = tq("slow").set_worker(gate).set_worker_count(2).set_worker_count(3)
    for number in range(4):
        context.add(number)
    await gate.begun.reach(3)
    assert len(gate.begun.given) == 3
    context.set_worker_count(1)
    gate.open.set()
    await gate.begun.reach(4)
    assert gate.most == 3


async def test_a_type_may_get_another_worker(queue: TQ) -> None:
    first, second = Calls(), Calls()
    tq("work").set_worker(first).add(1)
    await first.reach(1)
    tq("work").set_worker(second).add(2)
    await second.reach(1)
    assert (first.given, second.given) == ([1], [2])


async def test_nothing_begins_while_paused(queue: TQ) -> None:
    done = Calls()
    tq.pause()
    tq("work").set_worker(done).add(1)
    assert tq.stats().pending == 1
    assert done.given == []
    tq.resume()
    await done.reach(1)


async def test_stop_lets_what_runs_finish(tmp_path: Path) -> None:
    gate = _Gate()
    tq.init(db=tmp_path / "tasks.db")
    tq("slow").set_worker(gate).add(1)
    await gate.begun.reach(1)
    stopping = asyncio.create_task(tq.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    gate.open.set()
    await stopping
    tq.init(db=tmp_path / "tasks.db")
    assert tq.stats().completed == 1
    await tq.stop()


async def test_the_module_can_be_called(queue: TQ) -> None:
    called = cast(Callable[[str], TaskTypeContext[Any]], module)("work")
    assert called is tq("work")
    called.add(1)
    assert module.stats().pending == 1
    module.pause()
    module.resume()
    assert cast(TQ, module)[dict]("work") is called


@pytest.mark.parametrize(
    "call",
    [
        tq.pause,
        tq.resume,
        tq.stats,
        tq.is_paused,
        lambda: tq("work"),
        lambda: tq[dict]("work"),
        lambda: tq.register_handler("work", print),
        lambda: tq.unregister_handler("work"),
    ],
)
def test_without_init_it_says_what_to_do(call: Callable[[], object]) -> None:
    with pytest.raises(NotInitialised, match=r"tq\.init") as caught:
        call()
    assert isinstance(caught.value, RuntimeError)


async def test_init_is_for_once(queue: TQ) -> None:
    with pytest.raises(AlreadyInitialised, match="stop"):
        tq.init(db=":memory:")


def test_the_policy_is_the_one_of_001() -> None:
    assert [RETRY.delay(failures, 0.5) for failures in range(3)] == [10, 20, 40]
    assert RETRY.delay(100, 0.5) == timedelta(hours=6).total_seconds()
    assert (RETRY.delay(0, 0.0), RETRY.delay(0, 1.0)) == (8, 12)


def test_a_task_has_the_fields_of_001() -> None:
    assert set(Task.__struct_encode_fields__) == {
        "id",
        "type",
        "payload",
        "status",
        "attempts",
        "maxAttempts",
        "lastAttemptAt",
        "nextRetryAt",
        "result",
        "error",
        "runAfter",
        "createdAt",
        "updatedAt",
        "completedAt",
    }


# -- typed payloads --------------------------------------------------------------------------------


@dataclass
class Page:
    url: str
    depth: int = 0


class Link(msgspec.Struct):
    url: str


class Site(pydantic.BaseModel):
    url: str


@pytest.mark.parametrize("model", [Page, Link, Site])
async def test_a_model_arrives_as_one(queue: TQ, model: type[Any]) -> None:
    calls = Calls()

    def handle(page: Any) -> None:
        calls(page)

    handle.__annotations__["page"] = model
    tq("crawl").add(model(url="a")).add({"url": "b"}).set_worker(handle)
    await calls.reach(2)
    assert calls.given == [model(url="a"), model(url="b")]


async def test_a_handler_without_annotations_gets_what_the_context_names(queue: TQ) -> None:
    calls = Calls()
    tq[Page]("crawl").set_worker(calls).add(Page("a", depth=2))
    await calls.reach(1)
    assert calls.given == [Page("a", depth=2)]


def found(task_id: str) -> Task:
    task = tq._initialised().get_task(task_id)
    assert task is not None
    return task


async def test_what_is_stored_of_a_model_is_plain_json(queue: TQ) -> None:
    assert found(tq("crawl").enqueue(Page("a"))).payload == {"url": "a", "depth": 0}


async def test_a_payload_that_is_no_such_model_fails_for_good(queue: TQ) -> None:
    task_id = tq[Page]("crawl").set_worker(lambda page: page.depth).enqueue(cast(Page, {"x": 1}))
    task = await settled(lambda: found(task_id), lambda task: task.error is not None)
    assert task.completed_at is not None
    assert "does not fit the handler of crawl" in str(task.error)


async def test_a_model_that_cannot_be_json_is_refused(queue: TQ) -> None:
    @dataclass
    class Odd:
        value: object

    with pytest.raises(InvalidPayload, match="cannot be encoded as JSON"):
        tq("crawl").add(Odd(object()))
    assert tq.stats().pending == 0


async def test_annotations_that_cannot_be_read_say_nothing(queue: TQ) -> None:
    calls = Calls()

    def handle(page: Any) -> None:
        calls(page)

    handle.__annotations__["page"] = "Unknown"
    tq("crawl").set_worker(handle).add({"url": "a"})
    await calls.reach(1)
    assert calls.given == [{"url": "a"}]


# -- what runs -------------------------------------------------------------------------------------


async def test_what_was_unregistered_runs_no_more(queue: TQ) -> None:
    calls, other = Calls(), Calls()
    tq.register_handler("crawl", calls)
    tq("crawl").add(1)
    await calls.reach(1)
    for type in ("crawl", "crawl", "never"):
        tq.unregister_handler(type)
    await settled(lambda: tq._initialised()._app.tasks, lambda tasks: "crawl" not in tasks)
    tq("crawl").add(2)
    tq("crawl").set_worker(other)
    await other.reach(1)
    assert (calls.given, other.given) == ([1], [2])


async def test_another_handler_may_follow_at_once(queue: TQ) -> None:
    gate, other = threading.Event(), Calls()
    tq("crawl").set_worker(lambda _: gate.wait(30)).add(1)
    await settled(tq.stats, lambda found: found.processing == 1)
    tq.unregister_handler("crawl")
    tq("crawl").set_worker(other).add(2)
    await other.reach(1)
    gate.set()
    await settled(tq.stats, lambda found: found.completed == 2)
    tq("crawl").add(3)
    await other.reach(2)


async def test_schedules_come_with_the_application(queue: TQ) -> None:
    crawled, app = Calls(), module.application()
    tq("crawl").set_worker(crawled)
    call = app.tasks["crawl"].prepare(url="https://example.com/")
    app.schedules.put_sync("hourly", call, every=3600)
    app.schedules.run_sync("hourly")
    await crawled.reach(1)
    assert crawled.given == [{"url": "https://example.com/"}]
    assert app is queue.application()


async def test_what_runs_and_what_is_paused(tmp_path: Path) -> None:
    running = [tq.is_running()]
    tq.init(db=tmp_path / "tasks.db")
    paused = [tq.is_paused()]
    running.append(tq.is_running())
    tq.pause()
    paused.append(tq.is_paused())
    running.append(tq.is_running())
    tq.resume()
    paused.append(tq.is_paused())
    await tq.stop()
    running.append(tq.is_running())
    assert running == [False, True, True, False]
    assert paused == [False, True, False]
