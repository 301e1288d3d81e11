"""001's programming interface: the calls and examples of the specification, in Python."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import fairlane.tq as module
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
    called = cast(Callable[[str], TaskTypeContext], module)("work")
    assert called is tq("work")
    called.add(1)
    assert module.stats().pending == 1
    module.pause()
    module.resume()


@pytest.mark.parametrize("call", [tq.pause, tq.resume, tq.stats, lambda: tq("work")])
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
