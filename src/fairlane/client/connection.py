"""An application's connection to its store: opened when first needed, and prepared then."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.flow import Op
from fairlane.core.sealing import Key

T = TypeVar("T")


class StoreConnection:
    """The store at a URL. `migrate`: migrate its schema, instead of only checking the version."""

    def __init__(
        self,
        url: str,
        keys: tuple[Key, ...],
        token: str | None,
        options: Mapping[str, Any],
        *,
        migrate: bool,
    ) -> None:
        self.url = url
        self.keys = keys
        self.token = token
        self._options = options
        self._migrate = migrate
        self._guard = threading.Lock()
        self._backend: Backend | None = None
        self._prepared = False

    @property
    def backend(self) -> Backend:
        """The store. The first access opens it."""
        with self._guard:
            if self._backend is None:
                self._backend = engines.open(
                    self.url, encryption_keys=self.keys, token=self.token, **self._options
                )
            return self._backend

    async def run(self, op: Op[T], own: Any = None) -> T:
        """Perform an operation, on the caller's `own` connection if there is one."""
        backend = self.backend
        if not self._prepared:
            await backend.run(self._preparation(backend))
            self._prepared = True
        return await (backend if own is None else backend.driver.join(own)).run(op)

    def run_sync(self, op: Op[T], own: Any = None) -> T:
        self.prepare()
        return (self.backend if own is None else self.backend.driver.join(own)).run_sync(op)

    def prepare(self) -> None:
        """Migrate or check the schema, unless that was done before."""
        backend = self.backend
        if not self._prepared:
            backend.run_sync(self._preparation(backend))
            self._prepared = True

    def adopt(self, backend: Backend) -> None:
        """Use a store that is already open and prepared."""
        with self._guard:
            self._backend, self._prepared = backend, True

    @contextmanager
    def elsewhere(self, url: str) -> Iterator[None]:
        """Use another store within this block, and close it at the end."""
        with self._guard:
            before = self._backend, self._prepared
            self._backend, self._prepared = engines.open(url), False
        try:
            yield
        finally:
            other = self.backend
            with self._guard:
                self._backend, self._prepared = before
            other.driver.close()

    async def aclose(self) -> None:
        backend = self._take_backend()
        if backend is not None:
            await backend.driver.aclose()

    def close(self) -> None:
        backend = self._take_backend()
        if backend is not None:
            backend.driver.close()

    def _preparation(self, backend: Backend) -> Op[Any]:
        return backend.ops.migrate() if self._migrate else backend.ops.verify()

    def _take_backend(self) -> Backend | None:
        with self._guard:
            backend, self._backend, self._prepared = self._backend, None, False
            return backend
