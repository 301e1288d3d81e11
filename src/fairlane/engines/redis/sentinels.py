"""Sentinels: who they are, and what to make of their answers."""

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
    """Those who know which server is the master of a service."""

    def __init__(self, endpoints: Sequence[Endpoint], service: str) -> None:
        self.service = service
        self._endpoints = tuple(endpoints)
        self._first = 0

    def master(self) -> Flow[Endpoint]:
        """The master, according to the first Sentinel that knows one. Yields whom to ask."""
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
        raise self._nobody_knows(errors)

    def doubt(self) -> None:
        """What came of an answer was no good: a Sentinel that is cut off keeps telling what was.
        The next one is asked first from now on."""
        self._first = (self._first + 1) % len(self._endpoints)

    def _nobody_knows(self, errors: list[StoreError]) -> StoreError:
        places = ", ".join(map(str, self._endpoints))
        if not errors:
            return StoreUnusable(f"The Sentinels at {places} know of no service {self.service}.")
        for trouble in errors:
            if not isinstance(trouble, StoreUnavailable):
                return trouble
        return StoreUnavailable(
            f"None of the Sentinels at {places} says where {self.service} is at the moment."
        )
