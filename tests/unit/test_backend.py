"""A backend: operations and their driver under one roof."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeVar, cast

import pytest

from fairlane.core.backend import Backend, Durability, Joined, Transaction, Wakeup, is_server
from fairlane.core.flow import Flow, Op, perform, reads
from fairlane.core.store import Operations

T = TypeVar("T")


class Echo:
    """Operations that need no store."""

    @reads
    def echo(self, word: str) -> Flow[str]:
        reply: str = yield word
        return reply


class Loopback:
    """A driver whose calls answer themselves."""

    remote = False
    lock_file = None

    def __init__(self) -> None:
        self.closed: list[str] = []

    async def run(self, op: Op[T]) -> T:
        return self.run_sync(op)

    def run_sync(self, op: Op[T]) -> T:
        return perform(op.flow(), lambda call: call)

    def join(self, connection: Any) -> Joined:
        raise NotImplementedError

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        raise NotImplementedError

    def transaction_sync(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def serve_worker(self, worker_id: str, lease: float) -> None:
        raise NotImplementedError

    async def listen(self) -> Wakeup:
        raise NotImplementedError

    async def durability(self) -> Durability:
        return Durability("loopback", {}, ("Nothing is kept.",))

    async def aclose(self) -> None:
        self.closed.append("aclose")

    def close(self) -> None:
        self.closed.append("close")


ECHO = Echo()
OPERATIONS = cast("Operations", ECHO)  # as many of them as these tests need


async def test_it_runs_operations_on_its_driver() -> None:
    backend = Backend(OPERATIONS, Loopback())
    assert backend.ops is OPERATIONS
    assert await backend.run(ECHO.echo("a")) == "a"
    assert backend.run_sync(ECHO.echo("b")) == "b"


async def test_its_end_closes_the_driver_once() -> None:
    driver = Loopback()
    async with Backend(OPERATIONS, driver) as backend:
        assert isinstance(backend, Backend)
        assert driver.closed == []
    assert driver.closed == ["aclose"]


async def test_an_error_closes_the_driver_and_is_passed_on() -> None:
    driver = Loopback()
    with pytest.raises(KeyError, match="lost"):
        async with Backend(OPERATIONS, driver):
            raise KeyError("lost")
    assert driver.closed == ["aclose"]


@pytest.mark.parametrize("url", ["http://host", "https://host:8000/queue", "HTTP://host"])
def test_a_server_s_url(url: str) -> None:
    assert is_server(url)


@pytest.mark.parametrize("url", ["sqlite://", "redis://http", "postgresql://host/http:", "httpx:"])
def test_a_store_s_own_url(url: str) -> None:
    assert not is_server(url)
