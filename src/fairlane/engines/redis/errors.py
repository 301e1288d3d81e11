"""What a server's refusal means to a user.

Redis says why it refuses in the first word of an error. Each of them is passing (the same call may
go through later) or lasting (a person has to do something).
"""

from __future__ import annotations

import re

from fairlane.core.errors import (
    AccessDenied,
    NotAFairlaneStore,
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
from fairlane.engines.redis.scripts import FORMAT

_FULL = "has no memory left: raise maxmemory or free some, and the same call will go through."
_DENIED = "refused access: check the user, the password and the rights in the store URL."
_CLUSTER = "does not serve this part of its cluster at the moment."

_MEANINGS: dict[str, tuple[type[StoreError], str]] = {
    "LOADING": (StoreUnavailable, "is still loading its data."),
    "MASTERDOWN": (StoreUnavailable, "is a replica that has lost its master."),
    "CLUSTERDOWN": (StoreUnavailable, _CLUSTER),
    "TRYAGAIN": (StoreUnavailable, _CLUSTER),
    "UNBLOCKED": (StoreUnavailable, "has changed its role."),
    "NOREPLICAS": (StoreUnavailable, "has too few replicas to accept writes."),
    "MISCONF": (StoreUnavailable, "cannot save to its disk: see its log, free some space."),
    "BUSY": (StoreBusy, "is busy with a script of someone else."),
    "OOM": (StoreFull, _FULL),
    "READONLY": (StoreReadOnly, "is a read-only replica: use the address of its master."),
    "NOAUTH": (AccessDenied, _DENIED),
    "WRONGPASS": (AccessDenied, _DENIED),
    "MOVED": (StoreUnusable, "is part of a cluster, which needs an address of its own kind."),
}

# Where the first word is only ERR: passwords, and rights that a script finds missing.
_SIGNS_OF_NO_RIGHT = ("ACL failure", "user executing the script can't")
_SIGNS_OF_DENIAL = ("AUTH", "invalid password")

_RIGHTS = "See the ACL line in docs/engines.md."
_COMMAND = re.compile(r"run the '([^']+)' command")


def refusal(store: str, word: str, text: str) -> StoreError:
    """The error as users read it. `word` is the first of the server's answer."""
    if word == "FORMAT":
        return _other_format(int(text.removeprefix("FORMAT ")))
    if "WRONGTYPE" in text:
        return NotAFairlaneStore(
            f"{store} has a key under this prefix that is not Fairlane's: nothing was changed. "
            "Use another prefix or database."
        )
    if "max number of clients" in text:
        return StoreUnavailable(f"{store} has no connection left: raise maxclients.")
    if word == "NOPERM" or any(sign in text for sign in _SIGNS_OF_NO_RIGHT):
        return AccessDenied(f"{store} refused access: {_missing_right(text)} {_RIGHTS}")
    if any(sign in text for sign in _SIGNS_OF_DENIAL):
        return AccessDenied(f"{store} {_DENIED}")
    if "unexpected symbol near '#'" in text:
        return StoreUnusable(f"{store} is too old: Redis 7 or Valkey 7.2 is needed.")
    if "unknown command 'SENTINEL'" in text:
        return StoreUnusable(f"{store} is none: for a server by itself use redis://.")
    kind, words = _MEANINGS.get(word, (StoreError, f"refused an operation: {text}"))
    return kind(f"{store} {words}")


def _missing_right(text: str) -> str:
    command = _COMMAND.search(text)
    if command:
        return f"its user may not run the command {command[1]}."
    if "channel" in text:
        return "its user may not use the channel that begins with the store's prefix."
    if " key" in text:
        return "its user may not touch the keys that begin with the store's prefix."
    return "its user may not run a command that the scripts need."  # Redis 7.0 does not say which


def _other_format(found: int) -> StoreError:
    if found == 0:
        return SchemaMissing()
    kind = SchemaTooNew if found > FORMAT else SchemaTooOld
    return kind(f"The store has format {found}, this Fairlane knows {FORMAT}.")
