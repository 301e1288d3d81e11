"""What can be wrong with a Redis server, and what Fairlane says and does about it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any, Literal

import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import (
    AccessDenied,
    InvalidInput,
    InvalidStoreURL,
    NotAFairlaneStore,
    SchemaMissing,
    SchemaTooNew,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Beat, NewTask, Verdict
from fairlane.core.outcomes import Completed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.tally import census
from tests.engines.redis_fakes import saying
from tests.engines.redis_group import until
from tests.engines.redis_kit import (
    PATIENT,
    counted,
    opened,
    operator,
    registered,
    submitted,
)
from tests.fixtures.counters import depths, tallies
from tests.fixtures.servers import RedisServer, redis
from tests.fixtures.stores import settlement, verdicts_of


@pytest.fixture(params=["redis", "valkey"])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server of the test's own, to be broken."""
    with redis(request.param, tcp=True, settings={"enable-debug-command": "yes"}) as own:
        yield own


@pytest.fixture
async def backend(server: RedisServer) -> AsyncIterator[Backend]:
    async with opened(server.url) as own:
        await own.run(own.ops.migrate())
        yield own


# -- the server refuses ----------------------------------------------------------------------------


async def test_a_replica_is_read_only(backend: Backend, server: RedisServer) -> None:
    with operator(server) as client:
        found = {one["id"] for one in client.client_list()} - {str(client.client_id())}
        assert found
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(StoreReadOnly, match="master"):
            await submitted(backend)
        assert await counted(backend) == {}
        # Its name may lead to another server by now: nobody stays with this one.
        assert found.isdisjoint(one["id"] for one in client.client_list())
        client.execute_command("REPLICAOF", "NO", "ONE")
    await submitted(backend)


async def test_a_replica_that_lost_its_master(backend: Backend, server: RedisServer) -> None:
    with operator(server) as client:
        client.config_set("replica-serve-stale-data", "no")
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreUnavailable):
        await backend.run(backend.ops.controls())


async def test_a_full_server_takes_nothing_in_but_lets_work_end(
    backend: Backend, server: RedisServer
) -> None:
    await submitted(backend)
    worker = await registered(backend)
    with operator(server) as client:
        client.config_set("maxmemory", "1mb")
        with pytest.raises(StoreFull, match="maxmemory"):
            await backend.run(backend.ops.submit([new_task("work") for _ in range(10)]))
        with pytest.raises(StoreFull):
            await backend.run(backend.ops.submit([new_task("a-new-lane")]))
        assert await counted(backend) == {State.QUEUED: 1}
        assert client.hlen("{fairlane}:tasks") == 1
        await backend.run(backend.ops.heartbeat(Beat(worker)))
        grant = await backend.run(backend.ops.claim(Ask(worker, "r", 10)))
        done = [settlement(task, Completed(b"1")) for task in grant.tasks]
        assert verdicts_of(await backend.run(backend.ops.settle(done))) == [Verdict.APPLIED]
        client.config_set("maxmemory", 0)
    await submitted(backend)


async def test_a_full_server_is_waited_for(backend: Backend, server: RedisServer) -> None:
    with operator(server) as client:
        client.config_set("maxmemory", "1mb")
        async with opened(server.url, PATIENT) as patient:
            waiting = asyncio.create_task(submitted(patient))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            client.config_set("maxmemory", 0)
            await waiting


async def test_a_server_with_too_few_replicas(backend: Backend, server: RedisServer) -> None:
    with operator(server) as client:
        client.config_set("min-replicas-to-write", 1)
        with pytest.raises(StoreUnavailable, match="replicas"):
            await submitted(backend)
        client.config_set("min-replicas-to-write", 0)
    await submitted(backend)


@pytest.mark.parametrize("flavour", ["redis", "valkey"])
async def test_a_server_that_cannot_save(flavour: Literal["redis", "valkey"]) -> None:
    with redis(flavour, tcp=True, settings={"enable-protected-configs": "yes"}) as server:
        async with opened(server.url) as backend:
            await backend.run(backend.ops.migrate())
            folder = server.folder / "data"
            folder.mkdir()
            with operator(server) as client:
                client.config_set("dir", str(folder))
                folder.rmdir()
                client.config_set("save", "3600 1")
                client.bgsave()
                until(lambda: client.info("persistence")["rdb_last_bgsave_status"] != "ok")
                with pytest.raises(StoreUnavailable, match="disk"):
                    await submitted(backend)
                client.config_set("dir", str(server.folder))
                async with opened(server.url, PATIENT) as patient:
                    waiting = asyncio.create_task(submitted(patient))
                    client.bgsave()
                    await waiting


async def test_a_server_with_no_connection_left(server: RedisServer) -> None:
    with operator(server) as client:
        client.config_set("maxclients", 1)
        async with opened(server.url) as backend:
            with pytest.raises(StoreUnavailable, match="maxclients"):
                await backend.run(backend.ops.version())
            with pytest.raises(StoreUnavailable, match="maxclients"):
                await asyncio.to_thread(backend.run_sync, backend.ops.version())


async def test_a_script_of_someone_else_that_does_not_end(
    backend: Backend, server: RedisServer
) -> None:
    with operator(server) as client, operator(server) as killer:
        client.config_set("busy-reply-threshold", 10)
        endless = threading.Thread(target=_endless, args=(client,))
        endless.start()
        try:
            with pytest.raises(StoreBusy):
                await asking_on_and_on(backend)
        finally:
            killer.script_kill()
            endless.join()
    await submitted(backend)


async def asking_on_and_on(backend: Backend) -> None:
    """Until the server notices that it is busy."""
    while True:
        await backend.run(backend.ops.controls())


def _endless(client: Any) -> None:
    with pytest.raises(Exception, match="killed"):
        client.eval("while true do end", 0)


# -- the server is not there -----------------------------------------------------------------------


async def test_a_server_that_was_killed_is_waited_for() -> None:
    with redis("redis", appendonly=True, settings={"appendfsync": "always"}) as server:
        async with opened(server.url, PATIENT) as backend:
            await backend.run(backend.ops.migrate())
            task_id = await submitted(backend)
            wakeup = await backend.driver.listen()
            server.kill()
            waiting = asyncio.create_task(submitted(backend))
            await asyncio.to_thread(server.start)
            other_id = await waiting
            tasks = await backend.run(backend.ops.get([task_id, other_id]))
            assert [task and task.status for task in tasks] == [State.QUEUED] * 2
            assert await counted(backend) == {State.QUEUED: 2}
            assert await wakeup.wait(PATIENT)
            await wakeup.aclose()
            # The same from ordinary code, which still has a connection to a server before the last.
            await asyncio.to_thread(backend.run_sync, backend.ops.controls())
            server.kill()
            await asyncio.to_thread(server.start)
            await asyncio.to_thread(backend.run_sync, backend.ops.controls())


async def test_a_server_that_forgot_everything_is_not_filled_by_mistake(
    server: RedisServer,
) -> None:
    """It kept nothing on disk: what we remember of its lanes is worth nothing any more."""
    async with opened(server.url, PATIENT) as backend:
        await backend.run(backend.ops.migrate())
        await submitted(backend)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        with pytest.raises(SchemaMissing):
            await submitted(backend)
        with pytest.raises(SchemaMissing):
            await registered(backend)
        await backend.run(backend.ops.migrate())
        task_id = await submitted(backend)
        worker = await registered(backend)
        grant = await backend.run(backend.ops.claim(Ask(worker, "r", 10)))
        assert [(task.task_id, task.type) for task in grant.tasks] == [(task_id, "work")]


async def test_no_server_at_all() -> None:
    async with opened("redis://127.0.0.1:1/0") as backend:
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1"):
            await backend.run(backend.ops.controls())
        with pytest.raises(StoreUnavailable):
            await asyncio.to_thread(backend.run_sync, backend.ops.controls())
        wakeup = await backend.driver.listen()
        assert not await wakeup.wait(0.1)
        await wakeup.aclose()


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ("LOADING Redis is loading the dataset in memory", StoreUnavailable, "loading"),
        ("MASTERDOWN Link with MASTER is down", StoreUnavailable, "master"),
        ("CLUSTERDOWN The cluster is down", StoreUnavailable, "cluster"),
        ("TRYAGAIN Multiple keys request during rehashing of slot", StoreUnavailable, "cluster"),
        ("UNBLOCKED force unblock from blocking operation", StoreUnavailable, "role"),
        ("NOREPLICAS Not enough good replicas to write.", StoreUnavailable, "replicas"),
        ("MISCONF Redis is configured to save RDB snapshots", StoreUnavailable, "disk"),
        ("READONLY You can't write against a read only replica.", StoreReadOnly, "replica"),
        ("BUSY Redis is busy running a script.", StoreBusy, "script"),
        ("OOM command not allowed when used memory > 'maxmemory'.", StoreFull, "maxmemory"),
        ("ERR max number of clients reached", StoreUnavailable, "maxclients"),
    ],
)
async def test_what_passes_is_waited_for(
    answer: str, kind: type[StoreUnavailable], said: str
) -> None:
    async with saying(f"-{answer}") as fake, opened(f"redis://{fake.place}") as backend:
        with pytest.raises(kind, match=said):
            await backend.run(backend.ops.version())
        with pytest.raises(kind, match=said):
            await asyncio.to_thread(backend.run_sync, backend.ops.version())
    async with (
        saying(*3 * [f"-{answer}"], ":1") as fake,
        opened(f"redis://{fake.place}", PATIENT) as backend,
    ):
        assert await backend.run(backend.ops.version()) == 1
        assert fake.calls == 4
    async with (
        saying(*3 * [f"-{answer}"], ":1") as fake,
        opened(f"redis://{fake.place}", PATIENT) as backend,
    ):
        assert await asyncio.to_thread(backend.run_sync, backend.ops.version()) == 1
        assert fake.calls == 4


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("-NOAUTH Authentication required.", AccessDenied),
        ("-NOPERM this user has no permissions to run the 'hget' command", AccessDenied),
        ("-MOVED 1 127.0.0.1:2", StoreUnusable),
        ("-ERR something that nobody has ever heard of", StoreError),
        ("HTTP/1.1 400 Bad Request", StoreUnusable),
    ],
)
async def test_what_lasts_is_told_at_once(answer: str, kind: type[StoreError]) -> None:
    async with saying(answer) as fake, opened(f"redis://{fake.place}", PATIENT) as backend:
        with pytest.raises(kind) as awaited:
            await backend.run(backend.ops.version())
        assert fake.calls == 1
        with pytest.raises(kind) as blocking:
            await asyncio.to_thread(backend.run_sync, backend.ops.version())
        assert fake.calls == 2
        assert not isinstance(awaited.value, StoreUnavailable)
        assert str(awaited.value) == str(blocking.value)


async def test_scripts_that_the_server_forgot(backend: Backend, server: RedisServer) -> None:
    await submitted(backend)
    with operator(server) as client:
        client.script_flush()
    await submitted(backend)
    with operator(server) as client:
        client.script_flush()
    await asyncio.to_thread(backend.run_sync, backend.ops.submit([new_task("work")]))
    assert await counted(backend) == {State.QUEUED: 3}


async def test_connections_that_the_server_closed(backend: Backend, server: RedisServer) -> None:
    async with opened(server.url, PATIENT) as patient:
        for _ in range(3):
            await asyncio.gather(*(submitted(patient) for _ in range(8)))
            await asyncio.to_thread(patient.run_sync, patient.ops.controls())
            with operator(server) as client:
                client.client_kill_filter(_type="normal", skipme=True)
        await submitted(patient)
        await asyncio.to_thread(patient.run_sync, patient.ops.controls())
        assert await counted(patient) == {State.QUEUED: 25}


async def test_a_server_that_is_silent_for_a_while(server: RedisServer) -> None:
    """Longer than anyone waits for a reply: what was sent takes effect nevertheless, once."""
    async with opened(f"{server.url}?socket_timeout=0.2", PATIENT) as backend:
        await backend.run(backend.ops.migrate())
        for n, silence in enumerate((("DEBUG", "SLEEP", "1"), ("CLIENT", "PAUSE", "1000", "ALL"))):
            await asyncio.gather(*(submitted(backend) for _ in range(8)))
            with operator(server) as client:
                asleep = asyncio.create_task(asyncio.to_thread(client.execute_command, *silence))
                await asyncio.sleep(0.05)  # until it is asleep: nobody could tell
                submission = backend.ops.submit([new_task("work")])
                await asyncio.gather(
                    *(submitted(backend) for _ in range(8)),
                    asyncio.to_thread(backend.run_sync, submission),
                )
                await asleep
            assert await counted(backend) == {State.QUEUED: 17 * (n + 1)}


async def test_connections_closed_while_calls_are_under_way(server: RedisServer) -> None:
    async with opened(server.url, PATIENT) as backend:
        await backend.run(backend.ops.migrate())
        with operator(server) as client:
            for n in range(5):
                client.execute_command("CLIENT", "PAUSE", 10_000, "WRITE")
                calls = [asyncio.create_task(submitted(backend)) for _ in range(8)]
                await asyncio.to_thread(until, partial(are_under_way, client, 8))
                client.client_kill_filter(_type="normal", skipme=True)
                client.execute_command("CLIENT", "UNPAUSE")
                ids = await asyncio.gather(*calls)
                assert len(set(ids)) == 8
                assert await counted(backend) == {State.QUEUED: 8 * (n + 1)}


def are_under_way(client: Any, calls: int) -> bool:
    return [one["cmd"] for one in client.client_list()].count("evalsha") == calls


async def test_only_the_listening_connection_is_lost(backend: Backend, server: RedisServer) -> None:
    wakeup = await backend.driver.listen()
    try:
        with operator(server) as client:
            for _ in range(3):
                client.client_kill_filter(_type="pubsub")
                assert await wakeup.wait(PATIENT)  # listening again: something may have been missed
                while await wakeup.wait(0.02):
                    pass
                await submitted(backend)
                assert await wakeup.wait(PATIENT)
    finally:
        await wakeup.aclose()


# -- the caller is interrupted ---------------------------------------------------------------------


async def test_a_cancelled_call_leaves_no_reply_to_the_next(
    backend: Backend, server: RedisServer
) -> None:
    await submitted(backend)
    with operator(server) as client:
        for n in range(10):
            client.execute_command("CLIENT", "PAUSE", 100, "ALL")
            task = new_task("work")
            call = asyncio.create_task(backend.run(backend.ops.submit([task])))
            await asyncio.sleep(0.002 * n)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            client.execute_command("CLIENT", "UNPAUSE")
            # Each of these would choke on the answer to a submission.
            controls = await backend.run(backend.ops.controls())
            assert controls.types == {}
            (found,) = await backend.run(backend.ops.get([task.task_id]))
            assert found is None or (found.task_id, found.status) == (task.task_id, State.QUEUED)
    assert await whole(backend)


async def whole(backend: Backend) -> bool:
    """Whether counters, queues and tasks tell the same story."""
    depth = sum((await backend.run(depths(backend.ops))).values())
    worker = await registered(backend)
    grant = await backend.run(backend.ops.claim(Ask(worker, new_id(), 500)))
    return depth == len(grant.tasks) and await counted(backend) == {State.EXECUTING: depth}


async def test_a_repeated_submission_after_a_lost_answer(
    backend: Backend, server: RedisServer
) -> None:
    """Half of a batch is known: the other half is stored, and each exists once."""
    tasks = [new_task("work", {"n": n}) for n in range(10)]
    await backend.run(backend.ops.submit(tasks[:5]))
    answers = await backend.run(backend.ops.submit(tasks))
    assert [answer.known for answer in answers] == [True] * 5 + [False] * 5
    assert await counted(backend) == {State.QUEUED: 10}


# -- who may, and whose it is ----------------------------------------------------------------------


async def test_a_wrong_password_is_not_told_to_anyone(server: RedisServer) -> None:
    with operator(server) as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">right", "~*", "&*", "+@all")
    for url in (
        f"redis://app:s3cret@127.0.0.1:{server.port}/0",
        f"redis://:s3cret@127.0.0.1:{server.port}/0",
        f"redis://nobody:s3cret@127.0.0.1:{server.port}/0",
    ):
        async with opened(url) as backend:
            with pytest.raises(AccessDenied) as denied:
                await backend.run(backend.ops.controls())
            assert "s3cret" not in str(denied.value)
            with pytest.raises(AccessDenied):
                await asyncio.to_thread(backend.run_sync, backend.ops.controls())
    async with opened(f"redis://app:right@127.0.0.1:{server.port}/0") as backend:
        await backend.run(backend.ops.migrate())
        await submitted(backend)


async def test_a_server_that_wants_a_password(server: RedisServer) -> None:
    with operator(server) as client:
        client.config_set("requirepass", "right")
    async with opened(server.url) as backend:
        with pytest.raises(AccessDenied):
            await backend.run(backend.ops.controls())


@pytest.mark.parametrize(
    "rights", ["~other:* +@all", "~* +@all -@scripting", "~* +@all -hset -hincrby"]
)
async def test_a_user_without_rights(server: RedisServer, rights: str) -> None:
    async with opened(server.url) as backend:
        await backend.run(backend.ops.migrate())
    with operator(server) as client:
        words = rights.split()
        client.execute_command("ACL", "SETUSER", "app", "on", ">right", "&*", *words)
    async with opened(f"redis://app:right@127.0.0.1:{server.port}/0") as backend:
        with pytest.raises(AccessDenied):
            await submitted(backend)
    async with opened(server.url) as backend:
        assert await counted(backend) == {}


async def test_a_store_that_was_never_made(server: RedisServer) -> None:
    async with opened(server.url) as backend:
        assert await backend.run(backend.ops.version()) == 0
        for op in (backend.ops.controls(), backend.ops.submit([new_task("work")])):
            with pytest.raises(SchemaMissing):
                await backend.run(op)
        with operator(server) as client:
            assert client.dbsize() == 0


async def test_keys_of_someone_else_are_left_alone(server: RedisServer) -> None:
    with operator(server) as client:
        client.set("{fairlane}:theirs", "precious")
        client.set("fairlane:elsewhere", "also")
        async with opened(server.url) as backend:
            for op in (
                backend.ops.migrate(),
                backend.ops.version(),
                backend.ops.submit([new_task("work")]),
            ):
                with pytest.raises(NotAFairlaneStore):
                    await backend.run(op)
            with pytest.raises(NotAFairlaneStore):
                await asyncio.to_thread(backend.run_sync, backend.ops.controls())
        assert sorted(client.keys()) == [b"fairlane:elsewhere", b"{fairlane}:theirs"]
        async with opened(server.url, prefix="mine") as backend:
            await backend.run(backend.ops.migrate())
            await submitted(backend)
        assert client.get("{fairlane}:theirs") == b"precious"


@pytest.mark.parametrize("name", ["meta", "tasks"])
async def test_a_key_of_another_type(server: RedisServer, name: str) -> None:
    async with opened(server.url) as backend:
        if name != "meta":
            await backend.run(backend.ops.migrate())
        with operator(server) as client:
            client.set(f"{{fairlane}}:{name}", "a text")
        with pytest.raises(NotAFairlaneStore):
            await submitted(backend)


async def test_a_store_of_a_newer_fairlane(backend: Backend, server: RedisServer) -> None:
    await submitted(backend)
    with operator(server) as client:
        client.hset("{fairlane}:meta", "format", 99)
    for op in (
        backend.ops.submit([new_task("work")]),
        backend.ops.migrate(),
        backend.ops.verify(),
    ):
        with pytest.raises(SchemaTooNew):
            await backend.run(op)
    assert await backend.run(backend.ops.version()) == 99


async def test_two_stores_on_one_server(server: RedisServer) -> None:
    async with opened(server.url, prefix="a") as a, opened(server.url, prefix="b") as b:
        await a.run(a.ops.migrate())
        await b.run(b.ops.migrate())
        await submitted(a)
        assert await counted(a) == {State.QUEUED: 1}
        assert await counted(b) == {}


@pytest.mark.parametrize("prefix", ["", "a b", "{x}", "x" * 200, "ü"])
def test_a_prefix_that_makes_no_sense(prefix: str) -> None:
    with pytest.raises(InvalidInput):
        engines.open("redis://localhost", prefix=prefix)


@pytest.mark.parametrize("url", ["redis://host:port/0", "redis://u:s3cret@host:99999999/0"])
def test_a_url_that_makes_no_sense(url: str) -> None:
    with pytest.raises(InvalidStoreURL) as refused:
        engines.open(url)
    assert "s3cret" not in str(refused.value)


async def test_a_closed_store_says_so(server: RedisServer) -> None:
    async with opened(server.url) as backend:
        await backend.run(backend.ops.migrate())
    with pytest.raises(StoreUnusable, match="closed"):
        await backend.run(backend.ops.controls())
    with pytest.raises(StoreUnusable, match="closed"):
        backend.run_sync(backend.ops.controls())


# -- what a server promises ------------------------------------------------------------------------


async def test_durability_is_read_from_the_server(backend: Backend, server: RedisServer) -> None:
    found = await backend.driver.durability()
    assert found.settings["appendonly"] == "no"
    assert any("appendonly" in warning for warning in found.warnings)
    with operator(server) as client:
        client.config_set("appendonly", "yes")
        client.config_set("appendfsync", "always")
        assert (await backend.driver.durability()).warnings == ()
        client.config_set("appendfsync", "everysec")
        (warning,) = (await backend.driver.durability()).warnings
        assert "everysec" in warning
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert any("noeviction" in text for text in (await backend.driver.durability()).warnings)


async def test_durability_without_the_right_to_look(server: RedisServer) -> None:
    with operator(server) as client:
        client.execute_command(
            "ACL", "SETUSER", "app", "on", ">right", "~*", "&*", "+@all", "-config"
        )
    async with opened(f"redis://app:right@127.0.0.1:{server.port}/0") as backend:
        found = await backend.driver.durability()
        assert found.settings["appendonly"] == "unknown"
        assert any("CONFIG" in warning for warning in found.warnings)


# -- loops and threads -----------------------------------------------------------------------------


def test_one_event_loop_after_another(server: RedisServer) -> None:
    """A backend that is closed in each of them, and one that ordinary code uses in between."""
    backend = engines.open(server.url)
    backend.run_sync(backend.ops.migrate())

    async def work() -> int:
        async with opened(server.url) as own:
            await submitted(own)
            return len(await counted(own))

    assert [asyncio.run(work()) for _ in range(3)] == [1, 1, 1]
    backend.run_sync(backend.ops.controls())
    backend.driver.close()


def test_many_threads(server: RedisServer) -> None:
    backend = engines.open(server.url, patience=PATIENT)
    backend.run_sync(backend.ops.migrate())
    batches: list[list[NewTask]] = [[new_task("work")] for _ in range(200)]

    def work() -> None:
        while batches:
            try:
                batch = batches.pop()
            except IndexError:
                return
            backend.run_sync(backend.ops.submit(batch))

    threads = [threading.Thread(target=work) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = census(backend.run_sync(tallies(backend.ops)))
    assert found[State.QUEUED] == 200
    backend.driver.close()
