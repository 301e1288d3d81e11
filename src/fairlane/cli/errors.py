"""What went wrong, in one sentence on stderr, and the exit code that says whose fault it was.

2: what was asked for cannot be (a flag, a URL, a file, an app, JSON, an id).
1: the store, or the state of things, does not allow it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import textwrap
import traceback

import click

from fairlane.cli.escapes import printable
from fairlane.core.errors import FairlaneError, InvalidInput
from fairlane.core.text import concealed
from fairlane.telemetry.logs import JsonFormatter

logger = logging.getLogger("fairlane.cli")

EXIT_USAGE, EXIT_FAILURE, EXIT_INTERRUPTED = 2, 1, 130


class UsageError(click.UsageError):
    """What was asked for cannot be: exit code 2."""


class CommandFailed(click.ClickException):
    """Understood, but it cannot be done: exit code 1."""


def report(error: BaseException) -> int:
    """Tell the user about it; answers the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_FAILURE
    if isinstance(error, BrokenPipeError):
        # Whoever read along has seen enough; the interpreter must not fail to flush at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILURE
    if os.environ.get("FAIRLANE_DEBUG", "0") not in {"", "0"}:
        click.echo(scrubbed("".join(traceback.format_exception(error))), err=True, nl=False)
    if isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
        click.echo("Interrupted.", err=True)
        return EXIT_INTERRUPTED
    sentence, code = _judged(error)
    print_error(sentence)
    return code


def print_error(sentence: str) -> None:
    """Say on stderr what is wrong."""
    if _logged(logging.ERROR, sentence):
        return
    told = _laid_out(f"Error: {printable(scrubbed(sentence))}")
    if _coloured():
        told = told.replace("Error:", click.style("Error:", fg="red", bold=True), 1)
    click.echo(told, err=True)


def note(sentence: str) -> None:
    """Say something on stderr that is no result."""
    if _logged(logging.INFO, sentence):
        return
    told = _laid_out(printable(scrubbed(sentence)))
    click.echo(click.style(told, dim=True) if _coloured() else told, err=True)


def _logged(level: int, sentence: str) -> bool:
    """Where stderr is a log of JSON lines, this is one more of them."""
    if not any(isinstance(each.formatter, JsonFormatter) for each in logging.root.handlers):
        return False
    logger.log(level, "%s", sentence)
    return True


def _laid_out(sentence: str) -> str:
    """Broken between words on a terminal; one line for everyone else."""
    if not sys.stderr.isatty():
        return sentence
    width = shutil.get_terminal_size().columns
    return textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)


def scrubbed(text: str) -> str:
    """The text without the passwords of URLs in it, and without the secrets of tokens."""
    # Most texts have none, and to look for a sign of one is quicker by far.
    if "://" in text:
        text = _USER_INFO.sub(r"\1***@", text)
    if "=" in text:
        text = _PARAMETER.sub(r"\1***", text)
    return concealed(text)


# Up to the last @ that could belong to it: a password may have one that should have been escaped.
# From the first character that can belong to it: to try at each takes long with a long text.
_USER_INFO = re.compile(r"(?<![\w+.-])([\w+.-]+://)[^\s'\"<>]*@")
_PARAMETER = re.compile(r"((?:password|passwd|pwd|token|secret)=)[^&\s'\"<>]+", re.IGNORECASE)


def _coloured() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def _judged(error: BaseException) -> tuple[str, int]:
    match error:
        case click.UsageError():
            return _usage(error), EXIT_USAGE
        case click.ClickException():
            code = EXIT_USAGE if isinstance(error, click.FileError) else EXIT_FAILURE
            return error.format_message(), code
        case InvalidInput():
            return error.message, EXIT_USAGE
        case FairlaneError():
            return error.message, EXIT_FAILURE
        case _:
            told = f"{error.__class__.__name__}: {error}".rstrip(": ")
            return f"Something unforeseen: {told}. FAIRLANE_DEBUG=1 shows where.", EXIT_FAILURE


def _usage(error: click.UsageError) -> str:
    sentence = " ".join(error.format_message().split()).replace("?.", "?")
    if isinstance(error, UsageError) or error.ctx is None:
        return sentence
    stop = "" if sentence.endswith((".", "?")) else "."
    return f"{sentence}{stop} See {error.ctx.command_path} --help."
