"""The second verification of winners: where operands are unaligned, which takes kernels of its own.

The winners of a search are checked while others go on: at the end of a run, when its budget is spent,
hundreds of kernels would be left to compile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from typing import Any

from ..database import FAMILIES, Document
from ..errors import ConfigError
from .bench import Job
from .journal import Journal, Search
from .lab import Lab

__all__ = ["Recheck"]

#: A kernel as the compilers know it: its family and its Config.
Kernel = tuple[str, Any]


class Recheck:
    """Winners on their way to be verified at odd extents.

    Parameters
    ----------
    lab : Lab
    journal : Journal
    job : callable
        ``job(key, config, verify=("odd",))``, what the worker is to run.
    submit : callable
        ``submit(stem, config)`` begins to compile.
    """

    def __init__(
        self, lab: Lab, journal: Journal, job: Callable[..., Job], submit: Callable[[str, Any], None]
    ):
        self._lab, self._journal, self._job, self._submit = lab, journal, job, submit
        self._compiling: dict[Kernel, tuple[Any, Search]] = {}
        self._ready: deque[tuple[Any, Search]] = deque()
        self._right: set[Any] = set()

    def __contains__(self, kernel: Kernel) -> bool:
        """Whether a kernel is being compiled for it."""
        return kernel in self._compiling

    @property
    def pending(self) -> bool:
        """Whether winners wait."""
        return bool(self._compiling or self._ready)

    @property
    def ready(self) -> bool:
        """Whether one waits for the worker alone."""
        return bool(self._ready)

    def begin(self, found: Document, compiled: Container[Kernel], compiling: Container[Kernel]) -> None:
        """Have the kernels for winners compiled that are neither `compiled` nor `compiling` already."""
        begun = {config for config, _ in (*self._compiling.values(), *self._ready)}
        for config, key in self.doubtful(found):
            kernel = key[0], scalar(config)
            if config in begun or kernel in self._compiling:
                continue  # one of two with the same kernel is left to the end of the run
            if kernel in compiled:
                self._ready.append((config, key))
                continue
            self._compiling[kernel] = config, key
            if kernel not in compiling:
                self._submit(*kernel)

    def compiled(self, kernel: Kernel) -> None:
        """`kernel` is in the store of cubins."""
        if kernel in self._compiling:
            self._ready.append(self._compiling.pop(kernel))

    def verify_next(self) -> None:
        """Verify one that is ready."""
        self.verify(*self._ready.popleft())

    def verify(self, config: Any, key: Search) -> bool:
        """Whether a winner is right; if it is not, it is out."""
        _, failure = self._lab.finish(self._job(key, config, verify=("odd",)))
        if failure is None:
            self._right.add(config)
            return True
        detail = f"at odd extents: {failure.detail}"
        self._journal.note(key, "", config, outcome=failure.outcome, detail=detail)
        self._journal.counts[failure.outcome] += 1
        return False

    def doubtful(self, found: Document) -> list[tuple[Any, Search]]:
        """The winners that were not verified yet."""
        fresh = {}
        for (stem, dtype, layout, _), entry in found.entries.items():
            try:
                config = FAMILIES[stem].config(dtype, layout, entry.parameters)
            except ConfigError:  # of an older version's sweep, which is resumed
                continue
            if config not in self._right:
                fresh[config] = (stem, dtype, layout)
        return list(fresh.items())

    def clear(self) -> None:
        """Nobody waits any more for what is compiled."""
        self._compiling.clear()
        self._ready.clear()


def scalar(config: Any) -> Any:
    """The Config that runs where operands are unaligned."""
    return config.unaligned(True, True) if hasattr(config, "unaligned") else config
