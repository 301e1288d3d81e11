"""Errors as one sentence on stderr, and as an exit code.

2: the command line is wrong (a flag, a URL, a file, an app, JSON, an id).
1: the command is right, but the store or the state of the tasks does not allow it.
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


NO_ARGUMENTS: tuple[type[click.UsageError], ...] = tuple(
    filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)])
)
"""What click 8.2 raises for a group without a command; its message is the help. Click 8.1 prints
the help itself."""


class UsageError(click.UsageError):
    """The command line is wrong: exit code 2."""


class CommandFailed(click.ClickException):
    """The command cannot be carried out: exit code 1."""


def report(error: BaseException) -> int:
    """Print an error, and return the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_FAILURE
    if isinstance(error, BrokenPipeError):
        # The reader has closed the pipe. The interpreter must not fail to flush it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILURE
    if os.environ.get("FAIRLANE_DEBUG", "0") not in {"", "0"}:
        click.echo(scrubbed("".join(traceback.format_exception(error))), err=True, nl=False)
    if isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
        click.echo("Interrupted.", err=True)
        return EXIT_INTERRUPTED
    if isinstance(error, NO_ARGUMENTS):
        click.echo(error.format_message(), err=True)
        return EXIT_USAGE
    sentence, code = _describe(error)
    print_error(sentence)
    return code


def print_error(sentence: str) -> None:
    """Print an error on stderr."""
    if _log(logging.ERROR, sentence):
        return
    line = _wrap(f"Error: {printable(scrubbed(sentence))}")
    if _coloured():
        line = line.replace("Error:", click.style("Error:", fg="red", bold=True), 1)
    click.echo(line, err=True)


def note(sentence: str) -> None:
    """Print a note on stderr: something that is not a result."""
    if _log(logging.INFO, sentence):
        return
    line = _wrap(printable(scrubbed(sentence)))
    click.echo(click.style(line, dim=True) if _coloured() else line, err=True)


def _log(level: int, sentence: str) -> bool:
    """Log the sentence if stderr is a log of JSON lines. Return whether it was logged."""
    if not any(isinstance(each.formatter, JsonFormatter) for each in logging.root.handlers):
        return False
    logger.log(level, "%s", sentence)
    return True


def _wrap(sentence: str) -> str:
    """Return the sentence, wrapped at words if stderr is a terminal."""
    if not sys.stderr.isatty():
        return sentence
    width = shutil.get_terminal_size().columns
    return textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)


def scrubbed(text: str) -> str:
    """Return the text without passwords in URLs and without secrets of tokens."""
    # Most texts have none, and these tests are much faster than the patterns.
    if "://" in text and "@" in text:
        text = _WORD.sub(_without_user_info, text)
    if "=" in text:
        text = _PARAMETER.sub(r"\1***", text)
    return concealed(text)


def _without_user_info(word: re.Match[str]) -> str:
    # Up to the last @: a password may contain one that should have been escaped. No pattern does
    # both: it would search for the @ again from each scheme.
    text = word.group()
    scheme, end = _SCHEME.search(text), text.rfind("@")
    if scheme is None or end < scheme.end():
        return text
    return f"{text[: scheme.end()]}***{text[end:]}"


_WORD = re.compile(r"[^\s'\"<>]+")
_SCHEME = re.compile(r"[\w+.-]://")
_PARAMETER = re.compile(r"((?:password|passwd|pwd|token|secret)=)[^&\s'\"<>]+", re.IGNORECASE)


def _coloured() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def _describe(error: BaseException) -> tuple[str, int]:
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
            error_text = f"{error.__class__.__name__}: {error}".rstrip(": ")
            return (
                f"Something unforeseen: {error_text}. FAIRLANE_DEBUG=1 shows where.",
                EXIT_FAILURE,
            )


def _usage(error: click.UsageError) -> str:
    sentence = " ".join(error.format_message().split()).replace("?.", "?")
    if isinstance(error, UsageError) or error.ctx is None:
        return sentence
    stop = "" if sentence.endswith((".", "?")) else "."
    return f"{sentence}{stop} See {error.ctx.command_path} --help."
