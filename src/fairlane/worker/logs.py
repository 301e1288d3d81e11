"""What children log is logged by the worker, with whatever handlers that has.

An application that sets up logging where it is imported has done so in its children too: those are
left alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from fairlane.worker.messages import Logged


def levels() -> dict[str, int]:
    """The levels that were set in this process, by logger; the root's name is empty."""
    known = {
        name: logger.level
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and logger.level
    }
    return {"": logging.root.level, **known}


def send_to_worker(say: Callable[[Logged], None], told: Mapping[str, int]) -> None:
    """From now on, what this process logs goes to the worker that has these levels."""
    if logging.root.handlers:
        return
    for name, level in told.items():
        logging.getLogger(name).setLevel(level)
    logging.root.addHandler(_Sender(say))


class _Sender(logging.Handler):
    def __init__(self, say: Callable[[Logged], None]) -> None:
        super().__init__()
        self._say = say
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sent = os.getpid() == self._process and self._sent(_logged(record))
            # What a handler forks has no line to the worker; nor has who has been left.
            if not sent and logging.lastResort is not None:
                logging.lastResort.handle(record)
        except Exception:  # noqa: BLE001 (as every handler: who logs must not suffer)
            self.handleError(record)

    def _sent(self, logged: Logged) -> bool:
        try:
            self._say(logged)
        except OSError:
            return False
        return True


def _logged(record: logging.LogRecord) -> Logged:
    message = record.getMessage()
    if record.exc_info:
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return Logged(
        name=record.name,
        level=record.levelno,
        # Lone surrogates have no UTF-8 form.
        message=message.encode("utf-8", "backslashreplace").decode("utf-8"),
        created=record.created,
        path=record.pathname,
        line=record.lineno,
        function=record.funcName or "",
        process=record.process or 0,
        thread=record.threadName or "",
    )


def log(said: Logged) -> None:
    """Log what a child has said, as if it had been said here."""
    logger = logging.getLogger(said.name)
    if not logger.isEnabledFor(said.level):
        return
    record = logger.makeRecord(
        said.name, said.level, said.path, said.line, said.message, (), None, said.function
    )
    record.created = said.created
    record.msecs = said.created % 1 * 1000
    record.process = said.process
    record.threadName = said.thread
    logger.handle(record)
