"""Fixtures for all tests. Servers start when the first test asks, once per pytest process."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Literal, TypeVar

import pytest

from tests.fixtures.process import Server
from tests.fixtures.servers import (
    MissingBinary,
    PostgresServer,
    RedisServer,
    postgres,
    redis,
)

S = TypeVar("S", bound=Server)

# What a shell starts in the background ignores interrupts, and hands that down to all that it
# starts itself: tests that interrupt others would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Servers:
    """Shared servers by name. A test that stops or kills a server makes one of its own instead."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._postgres: dict[str, PostgresServer] = {}
        self._redis: dict[str, RedisServer] = {}

    def postgres(self, version: Literal["oldest", "newest"]) -> PostgresServer:
        if version not in self._postgres:
            self._postgres[version] = self._start(lambda: postgres(version))
        return self._postgres[version]

    def redis(self, flavour: Literal["redis", "valkey"]) -> RedisServer:
        if flavour not in self._redis:
            self._redis[flavour] = self._start(lambda: redis(flavour))
        return self._redis[flavour]

    def _start(self, make: Callable[[], S]) -> S:
        try:
            server = make()
            self._stack.enter_context(server)
        except MissingBinary as missing:  # never a skip: an untested engine is a broken one
            pytest.fail(str(missing), pytrace=False)
        return server


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(stack)


@pytest.fixture(params=["oldest", "newest"])
def postgres_server(request: pytest.FixtureRequest, servers: Servers) -> PostgresServer:
    return servers.postgres(request.param)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh, empty database on each version of PostgreSQL."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(params=["redis", "valkey"])
def redis_server(request: pytest.FixtureRequest, servers: Servers) -> RedisServer:
    """An empty server of each flavour."""
    server = servers.redis(request.param)
    server.flush()
    return server
