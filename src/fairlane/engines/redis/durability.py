"""Read from the server's settings how durable tasks are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairlane.core.backend import Durability
from fairlane.core.errors import StoreError, StoreUnavailable
from fairlane.core.flow import Flow, reads
from fairlane.engines.redis.calls import Command

_UNKNOWN = "unknown"

_SETTINGS = (
    "appendonly",
    "appendfsync",
    "save",
    "maxmemory",
    "maxmemory-policy",
    "min-replicas-to-write",
)


@reads
def durability(fails_over: bool) -> Flow[Durability]:
    """Return the settings and warnings. `fails_over`: whether a replica can become the master."""
    settings = dict.fromkeys(_SETTINGS, _UNKNOWN)
    try:
        flat = yield Command(("CONFIG", "GET", *_SETTINGS))
    except StoreUnavailable:
        raise
    except StoreError:
        pass  # a hosted server without this command, or a user without the right to it
    else:
        settings.update((flat[n].decode(), flat[n + 1].decode()) for n in range(0, len(flat), 2))
    return Durability("redis", settings, tuple(_warnings(settings, fails_over)))


def _warnings(settings: Mapping[str, str], fails_over: bool) -> Iterator[str]:
    """Yield a sentence for each setting under which tasks can be lost."""
    if _UNKNOWN in settings.values():
        yield (
            "CONFIG GET is not allowed, so the server's settings could not be read: its durability "
            "is unknown."
        )
    elif settings["appendonly"] != "yes":
        lost = "everything" if settings["save"] == "" else "everything since the last snapshot"
        yield f"appendonly is off: {lost} is lost when the server crashes."
    elif settings["appendfsync"] != "always":
        yield f"appendfsync is {settings['appendfsync']}: a power cut can lose the last seconds."
    policy = settings["maxmemory-policy"]
    if policy not in {"noeviction", _UNKNOWN}:
        yield (f"maxmemory-policy is {policy}: a full server deletes tasks. Set it to noeviction.")
    if fails_over:
        yield "Replication is asynchronous: a failover loses what had not reached the replica."
        if settings["min-replicas-to-write"] == "0":
            yield (
                "min-replicas-to-write is 0: a master that is cut off still accepts tasks, "
                "and a failover loses all of them."
            )
