"""What a server promises, read from its settings."""

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
    """`fails_over`: whether a replica may take the server's place."""
    settings = dict.fromkeys(_SETTINGS, _UNKNOWN)
    try:
        flat = yield Command(("CONFIG", "GET", *_SETTINGS))
    except StoreUnavailable:
        raise
    except StoreError:
        pass  # hosted servers have no such command, or the user no right to it
    else:
        settings.update((flat[n].decode(), flat[n + 1].decode()) for n in range(0, len(flat), 2))
    return Durability("redis", settings, tuple(_warnings(settings, fails_over)))


def _warnings(settings: Mapping[str, str], fails_over: bool) -> Iterator[str]:
    """Sentences about settings under which tasks can get lost."""
    if _UNKNOWN in settings.values():
        yield (
            "CONFIG GET is not allowed, so the server's settings could not be read: nobody knows "
            "what it promises."
        )
    elif settings["appendonly"] != "yes":
        lost = "everything" if settings["save"] == "" else "everything since the last snapshot"
        yield f"appendonly is off: {lost} is lost when the server ends abruptly."
    elif settings["appendfsync"] != "always":
        yield f"appendfsync is {settings['appendfsync']}: a power cut can undo the last seconds."
    policy = settings["maxmemory-policy"]
    if policy not in {"noeviction", _UNKNOWN}:
        yield (
            f"maxmemory-policy is {policy}: a full server throws tasks away. Set it to noeviction."
        )
    if fails_over:
        yield "Replicas follow a moment behind: a failover undoes what had not reached them."
        if settings["min-replicas-to-write"] == "0":
            yield (
                "min-replicas-to-write is 0: a master that is cut off goes on accepting tasks, "
                "and a failover undoes them all."
            )
