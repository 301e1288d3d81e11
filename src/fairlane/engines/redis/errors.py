"""Translate error replies of the server into the errors that users read.

The first word of an error reply is its code. An error is temporary (the same call may succeed
later) or permanent (a person has to change something).
"""

from __future__ import annotations

import re

from fairlane.core.errors import (
    AccessDenied,
    NotAFairlaneStore,
    NotSupported,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from fairlane.engines.redis.address import CLUSTER
from fairlane.engines.redis.scripts import FORMAT

_FULL = "has no memory left: raise maxmemory or free some memory, then repeat the call."
_DENIED = "refused access: check the user and the password in the store URL, and the user's rights."
_CLUSTER = f"cannot serve this part of its cluster at the moment. {CLUSTER}"
_OTHER_NODE = f"is a node of a Redis Cluster, and another node has this store. {CLUSTER}"

_MEANINGS: dict[str, tuple[type[StoreError], str]] = {
    "LOADING": (StoreUnavailable, "is still loading its data."),
    "MASTERDOWN": (StoreUnavailable, "is a replica that has lost its master."),
    "CLUSTERDOWN": (StoreUnavailable, _CLUSTER),
    "TRYAGAIN": (StoreUnavailable, _CLUSTER),
    "UNBLOCKED": (StoreUnavailable, "has changed its role."),
    "NOREPLICAS": (StoreUnavailable, "has too few replicas to accept writes."),
    "MISCONF": (StoreUnavailable, "cannot save to its disk: see its log, or free some space."),
    "BUSY": (StoreBusy, "is busy with a script of another client."),
    "OOM": (StoreFull, _FULL),
    "READONLY": (StoreReadOnly, "is a read-only replica: use the address of its master."),
    "NOAUTH": (AccessDenied, _DENIED),
    "WRONGPASS": (AccessDenied, _DENIED),
    "MOVED": (NotSupported, _OTHER_NODE),
    "ASK": (NotSupported, _OTHER_NODE),
}

# Errors whose code is only ERR: passwords, and rights that a script lacks.
_SIGNS_OF_NO_RIGHT = ("ACL failure", "user executing the script can't")
_SIGNS_OF_DENIAL = ("AUTH", "invalid password")

_RIGHTS = "See the ACL line in docs/engines.md."
_COMMAND = re.compile(r"run the '([^']+)' command")


def reported(store: str, code: str, text: str) -> StoreError:
    """Return the error for a reply of the server. `code` is its first word, `store` names it."""
    if code == "FORMAT":
        return _other_format(int(text.removeprefix("FORMAT ")))
    if "WRONGTYPE" in text:
        return NotAFairlaneStore(
            f"{store} has a key with this prefix that Fairlane did not write: nothing was changed. "
            "Use another prefix or database."
        )
    if "max number of clients" in text:
        return StoreUnavailable(f"{store} has no connection left: raise maxclients.")
    if code == "NOPERM" or any(sign in text for sign in _SIGNS_OF_NO_RIGHT):
        return AccessDenied(f"{store} refused access: {_missing_right(text)} {_RIGHTS}")
    if any(sign in text for sign in _SIGNS_OF_DENIAL):
        return AccessDenied(f"{store} {_DENIED}")
    if "unexpected symbol near '#'" in text:
        return StoreUnusable(f"{store} is too old: Fairlane needs Redis 7 or Valkey 7.2.")
    if "unknown command 'SENTINEL'" in text:
        return StoreUnusable(f"{store} is not a Sentinel: use redis:// for a single server.")
    kind, words = _MEANINGS.get(code, (StoreError, f"refused an operation: {text}"))
    return kind(f"{store} {words}")


def _missing_right(text: str) -> str:
    command = _COMMAND.search(text)
    if command:
        return f"its user may not run the command {command[1]}."
    if "channel" in text:
        return "its user may not use the channel that begins with the store's prefix."
    if " key" in text:
        return "its user may not touch the keys that begin with the store's prefix."
    return "its user may not run a command that the scripts need."  # Redis 7.0 does not name it


def _other_format(found: int) -> StoreError:
    if found == 0:
        return SchemaMissing()
    kind = SchemaTooNew if found > FORMAT else SchemaTooOld
    return kind(f"The store has format {found}, this version of Fairlane uses format {FORMAT}.")
