"""Ask Sentinels for the master of a service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairlane.core.errors import StoreError, StoreUnavailable, StoreUnusable
from fairlane.core.flow import Flow


class Endpoint(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Sentinels:
    """The Sentinels that watch a service."""

    def __init__(self, endpoints: Sequence[Endpoint], service: str) -> None:
        self.service = service
        self._endpoints = tuple(endpoints)
        self._first = 0

    def master(self) -> Flow[Endpoint]:
        """Return the master that the first Sentinel with an answer names. Yield whom to ask."""
        errors: list[StoreError] = []
        for n in range(len(self._endpoints)):
            asked = (self._first + n) % len(self._endpoints)
            try:
                answer = yield self._endpoints[asked]
            except StoreError as error:
                errors.append(error)
                continue
            if answer is not None:
                self._first = asked
                host, port = answer
                return Endpoint(host.decode(), int(port))
        raise self._no_master(errors)

    def doubt(self) -> None:
        """Ask the next Sentinel first from now on, because the named master could not be used.

        A Sentinel that is cut off keeps naming the old master.
        """
        self._first = (self._first + 1) % len(self._endpoints)

    def _no_master(self, errors: list[StoreError]) -> StoreError:
        places = ", ".join(map(str, self._endpoints))
        if not errors:
            return StoreUnusable(
                f"The Sentinels at {places} do not know the service {self.service}."
            )
        for error in errors:
            if not isinstance(error, StoreUnavailable):
                return error
        return StoreUnavailable(
            f"None of the Sentinels at {places} names the master of {self.service} at the moment."
        )
