"""Redis Cluster is not supported: what is said about it is true, on real nodes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from fairlane.core.errors import InvalidStoreURL, NotSupported, StoreUnavailable
from tests.engines.redis_kit import opened, operator, submitted
from tests.fixtures.servers import RedisServer, redis

ADVICE = "Fairlane does not support Redis Cluster: use a server that is not in cluster mode"
SLOTS = 16_384
STORE_SLOT_KEY = "{fairlane}:meta"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(params=["redis", "valkey"])
def node(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server in cluster mode that has no part of any cluster yet."""
    settings = {"cluster-enabled": "yes", "cluster-port": str(free_port())}
    with redis(request.param, tcp=True, settings=settings) as server:
        yield server


@pytest.fixture
def nodes(node: RedisServer, request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """A cluster of two: the one that would have the store, and the other one."""
    flavour = request.node.callspec.params["node"]
    settings = {"cluster-enabled": "yes", "cluster-port": str(free_port())}
    with ExitStack() as stack:
        other = stack.enter_context(redis(flavour, tcp=True, settings=settings))
        clients = [stack.enter_context(operator(server)) for server in (node, other)]
        slot = clients[0].execute_command("CLUSTER KEYSLOT", STORE_SLOT_KEY)
        owner, stranger = clients
        owner.execute_command("CLUSTER ADDSLOTSRANGE", 0, slot)
        stranger.execute_command("CLUSTER ADDSLOTSRANGE", slot + 1, SLOTS - 1)
        bus = other.settings["cluster-port"]
        owner.execute_command("CLUSTER MEET", "127.0.0.1", other.port, bus)
        until_ok(clients)
        yield node, other


def until_ok(clients: list[Any]) -> None:
    deadline = time.monotonic() + 60
    while not all(each.cluster("INFO")["cluster_state"] == "ok" for each in clients):
        assert time.monotonic() < deadline, "the nodes do not find each other"
        time.sleep(0.05)


async def refusal(server: RedisServer, error: type[Exception]) -> str:
    async with opened(server.url) as backend:
        with pytest.raises(error) as caught:
            await backend.run(backend.ops.migrate())
        with pytest.raises(error):
            await submitted(backend)
    return str(caught.value)


async def test_a_node_that_would_have_the_store(nodes: tuple[RedisServer, RedisServer]) -> None:
    owner, _ = nodes
    async with opened(owner.url) as backend:
        with pytest.raises(NotSupported, match=ADVICE):
            await backend.run(backend.ops.migrate())
    with operator(owner) as client:
        assert client.dbsize() == 0


async def test_a_node_that_refers_to_another_one(nodes: tuple[RedisServer, RedisServer]) -> None:
    _, other = nodes
    said = await refusal(other, NotSupported)
    assert "another node has this store" in said
    assert ADVICE in said


async def test_a_user_who_may_not_read_settings(nodes: tuple[RedisServer, RedisServer]) -> None:
    """As at a host that does not offer CONFIG."""
    owner, _ = nodes
    with operator(owner) as client:
        client.execute_command("ACL SETUSER guest on >secret ~* &* +@all -config")
    url = owner.url.replace("unix://", "unix://guest:secret@")
    async with opened(url) as backend:
        with pytest.raises(NotSupported, match=ADVICE):
            await backend.run(backend.ops.migrate())


async def test_a_node_without_a_cluster(node: RedisServer) -> None:
    assert ADVICE in await refusal(node, StoreUnavailable)


@pytest.mark.parametrize("scheme", ["redis+cluster", "rediss+cluster", "REDIS+Cluster"])
async def test_an_address_of_a_cluster(scheme: str) -> None:
    with pytest.raises(NotSupported, match=ADVICE):
        async with opened(f"{scheme}://user:secret@one:6379,two:6379"):
            pass


async def test_addresses_of_several_servers() -> None:
    with pytest.raises(InvalidStoreURL, match=ADVICE):
        async with opened("redis://one:6379,two:6379"):
            pass
