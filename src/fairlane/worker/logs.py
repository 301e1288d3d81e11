"""Child processes send their log records to the worker, which handles them as its own.

An application that configures logging on import has done so in its children, too: their logging is
left as it is.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from fairlane.worker.messages import Logged


def levels() -> dict[str, int]:
    """Return the levels that were set in this process, by logger; the root's name is empty."""
    known = {
        name: logger.level
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and logger.level
    }
    return {"": logging.root.level, **known}


def send_to_worker(send: Callable[[Logged], None], levels: Mapping[str, int]) -> None:
    """Send all further log records to the worker, which has these levels."""
    if logging.root.handlers:
        return
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.root.addHandler(_Sender(send))


class _Sender(logging.Handler):
    def __init__(self, send: Callable[[Logged], None]) -> None:
        super().__init__()
        self._send = send
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sent = os.getpid() == self._process and self._try_send(_logged(record))
            # A process that a handler forked has no connection to the worker; the worker may be
            # gone.
            if not sent and logging.lastResort is not None:
                logging.lastResort.handle(record)
        except Exception:  # noqa: BLE001 (like every handler: logging must not raise)
            self.handleError(record)

    def _try_send(self, logged: Logged) -> bool:
        try:
            self._send(logged)
        except OSError:
            return False
        return True


def _logged(record: logging.LogRecord) -> Logged:
    trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
    return Logged(
        name=record.name,
        level=record.levelno,
        message=_as_utf8(record.getMessage()),
        trace=_as_utf8(trace),
        created=record.created,
        path=record.pathname,
        line=record.lineno,
        function=record.funcName or "",
        process=record.process or 0,
        thread=record.threadName or "",
    )


def _as_utf8(text: str) -> str:
    # Lone surrogates have no UTF-8 form.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def log(logged: Logged) -> None:
    """Log a record of a child as if it had been logged here."""
    logger = logging.getLogger(logged.name)
    if not logger.isEnabledFor(logged.level):
        return
    record = logger.makeRecord(
        logged.name,
        logged.level,
        logged.path,
        logged.line,
        logged.message,
        (),
        None,
        logged.function,
    )
    record.exc_text = logged.trace or None
    record.created = logged.created
    record.msecs = logged.created % 1 * 1000
    record.process = logged.process
    record.threadName = logged.thread
    logger.handle(record)
