"""version, migrate, verify, shift_clock: the format and the clock of the store."""

from __future__ import annotations

from fairlane.core.errors import NotAFairlaneStore, NotSupported, StoreError, StoreUnavailable
from fairlane.core.flow import Flow, alters
from fairlane.core.priority import MICROSECONDS
from fairlane.core.versions import check_not_newer, check_ready
from fairlane.engines.files import text
from fairlane.engines.redis.address import CLUSTER
from fairlane.engines.redis.calls import Command
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.keys import NAMES
from fairlane.engines.redis.scripts import FORMAT

MIGRATE = text(__package__, "lua/migrate.lua")
STEPS = [
    text(__package__, f"lua/{name}.lua")
    for name in ("migrate_documents", "migrate_due", "migrate_lanes")
]
"""The first one leads from format 1 to 2."""

_SCAN_AT_ONCE = 1_000


def _version(self: Context) -> Flow[int]:
    asked = Command(("HGET", self.prefix + NAMES["META"], "format"))
    found = yield asked
    if found is not None:
        return int(found)
    # Scan the whole database, but only if there is no store yet.
    cursor = b"0"
    while True:
        cursor, keys = yield Command(
            ("SCAN", cursor, "MATCH", f"{self.prefix}*", "COUNT", _SCAN_AT_ONCE)
        )
        if keys:
            found = yield asked  # another client may have created the store meanwhile
            if found is not None:
                return int(found)
            raise NotAFairlaneStore(
                f"There are keys that begin with {self.prefix} but are not Fairlane's: "
                "nothing was changed. Use another prefix or database."
            )
        if cursor == b"0":
            return 0


@alters
def version(self: Context) -> Flow[int]:
    return (yield from _version(self))


@alters
def migrate(self: Context) -> Flow[int]:
    found = yield from _version(self)
    check_not_newer(found, FORMAT)
    if found == 0:
        yield from _refuse_cluster()
        yield Command(("EVAL", MIGRATE, 1, self.prefix + NAMES["META"], FORMAT))
    else:
        for step, to in zip(STEPS[found - 1 :], range(found + 1, FORMAT + 1), strict=True):
            yield Command(("EVAL", step, 1, self.prefix, to))
    return FORMAT


def _refuse_cluster() -> Flow[None]:
    """Raise NotSupported on a node of a Redis Cluster.

    The node may have the store's keys today, and lose them to another node tomorrow.
    """
    for words, sign in _CLUSTER_SIGNS:
        try:
            answer = yield Command(words)
        except StoreUnavailable:
            raise
        except StoreError:
            continue  # a hosted server without this command, or a user without the right to it
        if sign in (answer if isinstance(answer, bytes) else b" ".join(answer)):
            raise NotSupported(f"The server is a node of a Redis Cluster. {CLUSTER}")
        if answer:
            return


_CLUSTER_SIGNS = (
    (("CONFIG", "GET", "cluster-enabled"), b"cluster-enabled yes"),
    (("INFO", "cluster"), b"cluster_enabled:1"),
)


@alters
def verify(self: Context) -> Flow[None]:
    check_ready((yield from _version(self)), FORMAT)


@alters
def publish_view(self: Context) -> Flow[None]:
    yield from ()
    raise NotSupported("Redis has no SQL, so there is no view to publish.")


@alters
def shift_clock(self: Context, seconds: float) -> Flow[None]:
    meta = self.prefix + NAMES["META"]
    yield Command(("HINCRBY", meta, "clock_offset", round(seconds * MICROSECONDS)))
