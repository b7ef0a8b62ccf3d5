"""Output of a command to a terminal and its exit code: errors in one line, characters that the terminal has,
tables as wide as it is, progress also in a file.
"""

from __future__ import annotations

import codecs
import os
import sys
import threading
import unicodedata
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from time import monotonic
from typing import Any, Self, TextIO

from rich.console import Console

from .errors import PyblasgpuError

__all__ = ["SWITCH", "WIDTH", "ProgressBar", "console", "duration", "guarded", "notice"]

#: Columns of a table that goes into a file, a pipe or a notebook.
WIDTH = 140

#: The variable of the environment that switches the notices of calls: 0 for none.
SWITCH = "PYBLASGPU_PROGRESS"
#: Seconds between two lines of progress in a file, and the part of all seconds gone that they are at least.
INTERVAL, SHARE = 10.0, 0.05

#: Exit codes; those of signals are 128 and their number, as of a shell.
FAILED, INTERRUPTED, CLOSED_PIPE = 2, 130, 141
#: Errors of files, options and the machine, and calls that are not served; any other is a defect, and has its
#: traceback.
_FORESEEN = (
    PyblasgpuError,
    ValueError,
    NotImplementedError,
    OSError,
    EOFError,
    MemoryError,
    zlib.error,
    Warning,
)


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


def notice(text: str) -> None:
    """Print a line on stderr, unless the environment switches notices off or there is no stderr."""
    if os.environ.get(SWITCH) != "0" and sys.stderr is not None:
        with suppress(OSError, ValueError):  # it is closed, or its reader has gone
            print(f"pyblasgpu: {text}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a duration in words: '40 s', '5 min' or '1.5 h'."""
    if seconds < 90:
        return f"{ceil(seconds)} s"
    return f"{ceil(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


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

    In a file or a pipe it is a line now and then, and the last one at the end.

    Parameters
    ----------
    *texts : str
        Columns after those that every bar has, in rich's markup.
    left : str, optional
        The column of the time left, in rich's markup; by default an estimate by the steps of the last
        seconds.
    """

    def __init__(self, *texts: str, left: str = ""):
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
            TextColumn(left) if left else TimeRemainingColumn(),
            *map(TextColumn, texts),
        )
        self.bar = Progress(*columns, console=console(WIDTH, stderr=True))
        self._ended = threading.Event()
        self._lines = threading.Thread(target=self._print_lines, daemon=True)

    def say(self, text: str) -> None:
        """A line that stays."""
        self.bar.console.print(text, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self.bar.start()
        out = self.bar.console
        if (not out.is_terminal or out.is_dumb_terminal) and not out.is_jupyter:
            self._lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._lines.is_alive():
            self._lines.join()
        self.bar.stop()

    def _print_lines(self) -> None:
        """Print the bar now and then, ever less often, until it ends."""
        begun = monotonic()
        while not self._ended.wait(max(INTERVAL, SHARE * (monotonic() - begun))):
            with suppress(OSError, ValueError):  # the file is closed, or the disk is full
                self.bar.console.print(self.bar.get_renderable())
