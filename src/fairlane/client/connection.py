"""An application's connection to its store: opened when first needed, and prepared then."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from fairlane import engines
from fairlane.client.blobs import Blobs
from fairlane.client.remaking import Remaker
from fairlane.core.audit import Action, NewAudit
from fairlane.core.backend import Backend, Joined
from fairlane.core.blobs import IN_STORE, BlobStore
from fairlane.core.encryption import Encryption
from fairlane.core.errors import AccessDenied, InvalidConnection, StoreError, StoreReadOnly
from fairlane.core.flow import Flow, Op, perform, perform_async
from fairlane.core.sealing import Key
from fairlane.core.store_settings import Changes, StoreSettings

logger = logging.getLogger("fairlane.store")

T = TypeVar("T")


class StoreConnection:
    """The store at a URL. `migrate`: migrate its schema, instead of only checking the version.

    `remake`: make it again if it was emptied. `settings` are values that it sets in the store when
    it opens it. With `keys`, it also lets the store require encryption (see `core/encryption.py`).
    """

    def __init__(
        self,
        url: str,
        keys: tuple[Key, ...],
        token: str | None,
        options: Mapping[str, Any],
        settings: Changes,
        *,
        compress_results: int | None,
        migrate: bool,
        remake: bool,
    ) -> None:
        self.url = url
        self.keys = keys
        self.token = token
        self.blobs: str | BlobStore | None = None
        self.compress_results = compress_results
        self.settings = settings
        self.options = options
        self._migrate = migrate
        self.remake = remake
        self._remaker: Remaker | None = None
        self._guard = threading.Lock()
        self._backend: Backend | None = None
        self._payload_blobs: Blobs | None = None
        self._prepared = False
        self._elsewhere = False

    @property
    def backend(self) -> Backend:
        """The store. The first access opens it."""
        with self._guard:
            if self._backend is None:
                backend = engines.open(
                    self.url,
                    encryption_keys=self.keys,
                    compress_results=self.compress_results,
                    token=self.token,
                    **self.options,
                )
                self._remaker = None
                if self._migrate and self.remake and not backend.driver.remote:
                    self._remaker = Remaker(backend, partial(self._preparation, backend))
                self._backend = backend
            return self._backend

    def payload_blobs(self) -> Blobs:
        """Return what writes and reads payloads by reference."""
        backend = self.backend
        with self._guard:
            if self._payload_blobs is None:
                self._payload_blobs = Blobs(self.blobs, backend, self.keys)
            return self._payload_blobs

    async def run(self, op: Op[T], own: Any = None) -> T:
        """Perform an operation, on the caller's `own` connection if there is one."""
        backend = await self.prepared()
        return await (self._joined(own) or backend).run(op)

    async def prepared(self) -> Backend:
        """Return the store. Like `prepare`, it migrates or checks the schema first."""
        backend = self.backend
        if not self._prepared:
            await perform_async(self._preparation(backend), backend.run)
            self._found_whole()
        return backend

    def run_sync(self, op: Op[T], own: Any = None) -> T:
        self.prepare()
        return (self._joined(own) or self.backend).run_sync(op)

    def _joined(self, own: Any) -> Joined | None:
        """Return the caller's connection as something to perform operations on.

        In a test's store in memory, only its own transactions can be joined. A connection to the
        application's real database has no part in what is submitted there.
        """
        if own is None:
            return None
        try:
            return self.backend.driver.join(own)
        except InvalidConnection:
            if self._elsewhere:
                return None
            raise

    def joins(self, own: Any) -> bool:
        """Return whether what is submitted with this connection waits for a transaction."""
        return self._joined(own) is not None

    def prepare(self) -> None:
        """Migrate or check the schema, and set settings, unless that was done before."""
        backend = self.backend
        if not self._prepared:
            perform(self._preparation(backend), backend.run_sync)
            self._found_whole()

    def _found_whole(self) -> None:
        self._prepared = True
        if self._remaker is not None:
            self._remaker.whole = True

    def adopt(self, backend: Backend) -> None:
        """Use a store that is already open and prepared."""
        with self._guard:
            self._backend, self._prepared, self._payload_blobs = backend, True, None

    @contextmanager
    def elsewhere(self, url: str) -> Iterator[None]:
        """Use another store within this block, and close it at the end.

        `close` has no effect meanwhile: code that is tested may close its application, and must
        not find its own store open afterwards.
        """
        with self._guard:
            before = self._backend, self._prepared, self._payload_blobs, self._elsewhere
            self._backend, self._prepared, self._elsewhere = engines.open(url), False, True
            setting = None if self.blobs is None else IN_STORE  # leave no files behind
            self._payload_blobs = Blobs(setting, self._backend)
        try:
            yield
        finally:
            with self._guard:
                other = self._backend
                self._backend, self._prepared, self._payload_blobs, self._elsewhere = before
            assert other is not None
            other.driver.close()

    async def aclose(self) -> None:
        backend = self._take_backend()
        if backend is not None:
            await backend.driver.aclose()

    def close(self) -> None:
        backend = self._take_backend()
        if backend is not None:
            backend.driver.close()

    def _preparation(self, backend: Backend) -> Flow[None]:
        yield backend.ops.migrate() if self._migrate or self._elsewhere else backend.ops.verify()
        if self.keys and not self._elsewhere and not backend.driver.remote:
            yield from _require_encryption(backend)
        if not self.settings:
            return
        try:
            yield from _set_settings(backend, self.settings)
        except AccessDenied as error:
            logger.warning(
                "The store's settings stay as they are: %s Set them where the server runs, or "
                "with a token of scope admin.",
                error,
            )

    def _take_backend(self) -> Backend | None:
        with self._guard:
            if self._elsewhere:
                return None
            backend, self._backend, self._prepared = self._backend, None, False
            self._payload_blobs = None
            return backend


def _require_encryption(backend: Backend) -> Flow[None]:
    """Let the store refuse plain text from now on, unless that was decided before."""
    if (yield backend.ops.encryption()) is not Encryption.UNDECIDED:
        return
    wanted = Encryption.REQUIRED
    try:
        found = yield backend.ops.set_encryption(wanted, unless_decided=True)
    except (StoreReadOnly, AccessDenied):
        return  # a process that can only read stores no plain text either
    if found is not wanted:
        return
    logger.warning(
        "The store requires encryption from now on, because this process has keys: processes "
        "without keys can no longer submit tasks. `fairlane encryption optional` permits it."
    )
    yield from _record(backend, Action.SET_ENCRYPTION, {"encryption": wanted.value})


def _set_settings(backend: Backend, wanted: Changes) -> Flow[None]:
    """Set those of these settings that the store has not, and record that."""
    before: StoreSettings = yield backend.ops.settings()
    values = before.values()
    changes = {name: seconds for name, seconds in wanted.items() if values[name] != seconds}
    if not changes:
        return
    yield backend.ops.change_settings(changes)
    logger.warning("This process has changed settings of the store: %s", _listed(changes, values))
    if backend.driver.remote:
        return  # a server records its own
    yield from _record(backend, Action.CHANGE_SETTINGS, changes)


def _record(backend: Backend, action: Action, detail: Mapping[str, Any]) -> Flow[None]:
    entry = NewAudit.of(f"app:{socket.gethostname()}", action, "", detail)
    try:
        yield backend.ops.record([entry])
    except StoreError as error:
        logger.warning("This could not be recorded in the audit log: %s", error)


def _listed(changes: Changes, before: Changes) -> str:
    def shown(seconds: float | None) -> str:
        return "never" if seconds is None else f"{seconds:g} s"

    return ", ".join(
        f"{name} from {shown(before[name])} to {shown(seconds)}"
        for name, seconds in changes.items()
    )
