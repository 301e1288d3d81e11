"""Hints that there is work: an event within the process, the file's version across processes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from fairlane.engines.sqlite.notices import Notices
from fairlane.engines.waiters import Waiters

POLL_SECONDS = 0.008
"""How often to read the version where the kernel does not report other processes' writes: often
enough for a pickup within 10 ms, seldom enough to cost about a hundredth of a core. Where it does
report them, the version is not read again for this time after a hint, because other processes may
commit a thousand times a second."""
LOOKS_AFTER_A_WRITE = (0.001,) * 32 + tuple(0.002 * 2**n for n in range(8))
"""The kernel reports the write; the commit is visible a little later, when it is on disk."""
DOUBT_SECONDS = 0.02
"""A commit of this process may hide a commit of another: look again after this time, rather than
after each of a thousand commits a second."""


class Commits:
    """How many commits this process has begun, and how many of them have ended."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one commit while it happens. Commits happen one after another."""
        self.begun += 1
        try:
            yield
        finally:
            self.ended = self.begun


class CommitWatch(Protocol):
    """Notices commits of other processes."""

    @property
    def opened(self) -> int:
        """How often the files were opened: other files need other notices."""

    def version(self) -> int:
        """Return a number that changes when another connection commits."""

    def notices(self) -> Notices | None:
        """Return the kernel's notices of writes, if it has any."""

    def close(self) -> None:
        """Stop looking."""


class SqliteWakeup:
    """Hints from this process at once, from others by watching the file."""

    def __init__(self, waiters: Waiters, watch: CommitWatch | None, commits: Commits) -> None:
        self._waiters = waiters
        self._watch = watch
        self._commits = commits
        self._event = asyncio.Event()
        self._entry = waiters.add(self._event)
        self._known = commits.ended
        """So many of our commits were over when the version was last looked at."""
        self._seen = self._version()
        self._notices = None if watch is None else watch.notices()
        self._opened = 0 if watch is None else watch.opened
        self._hinted_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._doubt: asyncio.TimerHandle | None = None

    async def wait(self, seconds: float) -> bool:
        if self._hinted():
            return True
        if self._watch is not None:
            if self._watch.opened != self._opened:
                self._renew_notices(self._watch)
            self._look_again(self._pauses())
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return self._hinted()
        finally:
            self._rest()
        return self._hinted()

    def _renew_notices(self, watch: CommitWatch) -> None:
        if self._notices is not None:
            self._notices.close()
        self._notices = watch.notices()
        self._opened = watch.opened

    def _pauses(self) -> Iterator[float]:
        if self._notices is None:
            return itertools.repeat(POLL_SECONDS)
        recovery = self._hinted_at + POLL_SECONDS - asyncio.get_running_loop().time()
        return iter((recovery,) if recovery > 0 else ())

    def _look_again(self, pauses: Iterator[float]) -> None:
        """After these pauses; and then when the kernel gives reason to."""
        loop = asyncio.get_running_loop()
        pause = next(pauses, None)
        if pause is not None:
            # A bare timer: a coroutine that wakes up so often would cost twice as much.
            self._timer = loop.call_later(pause, self._look, pauses)
        elif self._notices is not None:
            loop.add_reader(self._notices.fileno(), self._noticed, self._notices)

    def _look(self, pauses: Iterator[float]) -> None:
        before = self._seen
        if self._changed():
            self._event.set()
        elif self._seen == before:
            self._look_again(pauses)
        else:
            self._look_again(self._pauses())  # what was written was this process's own

    def _noticed(self, notices: Notices) -> None:
        asyncio.get_running_loop().remove_reader(notices.fileno())
        notices.clear()
        self._look(iter(LOOKS_AFTER_A_WRITE))

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._notices is not None:
            asyncio.get_running_loop().remove_reader(self._notices.fileno())

    def _hinted(self) -> bool:
        hinted = self._changed() or self._event.is_set()
        self._event.clear()
        if hinted:
            self._hinted_at = asyncio.get_running_loop().time()
        return hinted

    def _changed(self) -> bool:
        """Return whether other processes seem to have committed."""
        over = self._commits.ended
        version = self._version()
        mine = self._commits.begun > self._known
        self._known = over
        if version == self._seen:
            return False
        self._seen = version
        if mine and self._doubt is None:
            loop = asyncio.get_running_loop()
            self._doubt = loop.call_later(DOUBT_SECONDS, self._suspect)
        return not mine

    def _suspect(self) -> None:
        self._doubt = None
        self._event.set()

    def _version(self) -> int:
        return 0 if self._watch is None else self._watch.version()

    async def aclose(self) -> None:
        self._waiters.remove(self._entry)
        if self._doubt is not None:
            self._doubt.cancel()
        if self._notices is not None:
            self._notices.close()
        if self._watch is not None:
            self._watch.close()
