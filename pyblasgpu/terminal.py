"""Output of a command to a terminal and its exit code: errors in one line, characters that the terminal has,
tables as wide as it is.
"""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TextIO

from rich.console import Console

from .errors import PyblasgpuError

__all__ = ["WIDTH", "ProgressBar", "console", "guarded"]

#: Columns of a table that goes into a file, a pipe or a notebook.
WIDTH = 140

#: Exit codes; those of signals are 128 and their number, as of a shell.
FAILED, INTERRUPTED, CLOSED_PIPE = 2, 130, 141
#: Errors of files, options and the machine; any other is a defect, and has its traceback.
_FORESEEN = (PyblasgpuError, ValueError, OSError, EOFError, MemoryError, zlib.error, Warning)


def guarded(words: Sequence[str], run: Callable[[], int]) -> int:
    """Return the exit code of `run`; or, after a line on stderr, the code of its error.

    Parameters
    ----------
    words : sequence of str
        The command and its subcommand; read when something goes wrong.
    run : callable
    """
    with _legible(), _warnings_in_a_line(words):
        try:
            try:
                code = run()
            finally:  # argparse leaves by SystemExit
                sys.stdout.flush()
            return code
        except BrokenPipeError:
            problem, code = "the reader of the output has gone", CLOSED_PIPE
        except KeyboardInterrupt:
            problem, code = "interrupted", INTERRUPTED
        except ModuleNotFoundError as missing:
            if (missing.name or "").split(".")[0] in ("pyblasgpu", "benchmarks"):
                raise
            problem, code = str(missing), FAILED
        except _FORESEEN as foreseen:
            # functions begin with their name, which may be the command's
            problem, code = _in_a_line(foreseen).removeprefix(f"{words[-1]}: "), FAILED
        _drop_unwritten(sys.stdout)
        with suppress(OSError):
            print(f"{' '.join(words)}: {problem}", file=sys.stderr, flush=True)
        _drop_unwritten(sys.stderr)
        return code


def console(width: int | None = None, stderr: bool = False) -> Console:
    """Return the console of tables and progress: as wide as the terminal; `width` columns in a file or a
    pipe.

    Text is what it is: brackets, as in ``pyblasgpu[sim]``, are no styles.
    """
    stream = sys.stderr if stderr else sys.stdout
    return _Console(file=stream, width=None if stream.isatty() else width, markup=False, emoji=False)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the process here, and without a word."""
        raise BrokenPipeError


def _in_a_line(problem: BaseException) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        named = problem.filename if isinstance(problem.filename, (str, bytes, os.PathLike)) else ""
        return f"{os.fsdecode(named)}: {problem.strerror}" if named else problem.strerror
    return " ".join(str(problem).split()) or type(problem).__name__


def _drop_unwritten(stream: TextIO) -> None:
    """Discard output that cannot be written: the interpreter would try it again at its end, and complain."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


@contextmanager
def _warnings_in_a_line(words: Sequence[str]) -> Iterator[None]:
    """Warnings without their file and line."""
    before = warnings.formatwarning

    def line(message: Any, *_: Any, **__: Any) -> str:
        return f"{' '.join(words)}: {' '.join(str(message).split())}\n"

    warnings.formatwarning = line
    try:
        yield
    finally:
        warnings.formatwarning = before


@contextmanager
def _legible() -> Iterator[None]:
    """Output streams that write what their encoding lacks in other words; closed ones lead nowhere."""
    changed = []
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif stream.errors in ("strict", "surrogateescape", "backslashreplace") and _can_change(stream):
            changed.append((stream, stream.errors))
            stream.reconfigure(errors=_HANDLER)
    try:
        yield
    finally:
        for stream, errors in changed:
            with suppress(OSError, ValueError):
                stream.reconfigure(errors=errors)


def _can_change(stream: Any) -> bool:
    return hasattr(stream, "reconfigure") and not stream.closed


_HANDLER = "pyblasgpu.legible"
_WORDS = {"×": "x", "ᵀ": "^T", "−": "-", "–": "-", "µ": "u", "…": "...", "≤": "<=", "≥": ">=", "·": "."}


def _reworded(problem: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    part = problem.object[problem.start : problem.end]
    if all("\udc80" <= character <= "\udcff" for character in part):  # bytes of a file's name
        return bytes(ord(character) - 0xDC00 for character in part), problem.end
    return "".join(map(_in_ascii, part)), problem.end


def _in_ascii(character: str) -> str:
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return _WORDS.get(character) or plain or "?"


codecs.register_error(_HANDLER, _reworded)


class ProgressBar:
    """A bar on stderr, with the time gone and left; what is printed stays above it.

    Parameters
    ----------
    *texts : str
        Columns after those that every bar has, in rich's markup.
    """

    def __init__(self, *texts: str):
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            *map(TextColumn, texts),
        )
        self.bar = Progress(*columns, console=console(stderr=True))

    def say(self, text: str) -> None:
        """A line that stays."""
        self.bar.console.print(text, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
