"""Fresh stores of one kind, one after another, each beside a model."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from fairlane import engines
from fairlane.core.backend import Backend
from tests.conftest import Servers
from tests.fixtures.servers import PostgresServer
from tests.fixtures.stores import new_store
from tests.model.driving import Pair

P = TypeVar("P", bound=Pair)


class Stores(Generic[P]):
    """Makes pairs of store and model, and counts what they were put through."""

    def __init__(self, kind: str, servers: Servers, folder: Path, pairs: type[P]) -> None:
        self.examples = 0
        self.steps = 0
        self._kind = kind
        self._servers = servers
        self._folder = folder
        self._pairs = pairs
        self._numbers = itertools.count(1)
        self._pair: P | None = None
        self._url: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._put_away()

    def pair(self) -> P:
        """An empty store beside an empty model. The one before is put away."""
        self._put_away()
        url = self._url = self._new_url()

        def reopen() -> Backend:
            return engines.open(url)

        backend = reopen()
        if not self._kind.startswith("postgres"):
            backend.run_sync(backend.ops.migrate())
        self._pair = self._pairs(backend, None if url == "sqlite://" else reopen)
        return self._pair

    def count(self, pair: P) -> None:
        self.examples += 1
        self.steps += pair.steps

    def _new_url(self) -> str:
        match self._kind:
            case "sqlite-file":
                return f"sqlite:///{self._folder}/{next(self._numbers)}.db"
            case "sqlite-memory":
                return "sqlite://"
            case "redis" | "valkey":
                server = self._servers.redis("redis" if self._kind == "redis" else "valkey")
                server.flush()
                return server.url
            case _:
                return new_store(self._postgres)

    @property
    def _postgres(self) -> PostgresServer:
        return self._servers.postgres("oldest" if self._kind.endswith("oldest") else "newest")

    def _put_away(self) -> None:
        if self._pair is None or self._url is None:
            return
        self._pair.backend.driver.close()
        self._pair = None
        if self._kind.startswith("postgres"):
            self._postgres.drop_database(self._url)
        elif self._kind == "sqlite-file":
            for left in self._folder.glob(f"{Path(self._url).stem}.db*"):
                left.unlink()
