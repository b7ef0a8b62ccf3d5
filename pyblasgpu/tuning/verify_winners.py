"""The second verification of winners, on unaligned operands, which take kernels of their own.

The winners of a search are verified while other searches go on. At the end of a run, when its budget is
spent, hundreds of kernels would be left to compile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable
from typing import Any, Protocol

from ..database import FAMILIES, Document
from ..errors import ConfigError
from ..gpu.build.compile import Resources
from .runner import TICK, Runner
from .signals import Interrupts
from .sweep_log import SearchKey, SweepLog
from .worker_bench import Job

__all__ = ["CompilersLike", "WinnerVerifier", "wait"]

#: A kernel as the compilers know it: its family and its Config.
Kernel = tuple[str, Any]


class CompilersLike(Protocol):
    """The compilers; a kernel that is pending already is not begun again."""

    pending: int
    workers: int

    def submit(self, stem: str, config: Any) -> None: ...

    def drop(self) -> None: ...

    def finished(self, timeout: float | None = None) -> Iterable[tuple[tuple, Resources | str]]: ...


def wait(compilers: CompilersLike, interrupts: Interrupts, late: Callable[[], bool] = lambda: False) -> None:
    """Until all that is pending is compiled, or it is `late`."""
    while compilers.pending and not late():
        interrupts.check()
        for _ in compilers.finished(TICK):
            pass


class WinnerVerifier:
    """Winners on their way to be verified at odd extents.

    Parameters
    ----------
    runner : Runner
    log : SweepLog
    job : callable
        ``job(key, config, verify=("odd",))``, what the worker is to run.
    compilers : CompilersLike
    """

    def __init__(self, runner: Runner, log: SweepLog, job: Callable[..., Job], compilers: CompilersLike):
        self._runner, self._log, self._job, self._compilers = runner, log, job, compilers
        self._compiling: dict[Any, tuple[Kernel, SearchKey]] = {}
        self._ready: deque[tuple[Any, SearchKey]] = deque()
        self._verified: set[Any] = set()

    @property
    def pending(self) -> bool:
        """Whether winners wait."""
        return bool(self._compiling or self._ready)

    @property
    def ready(self) -> bool:
        """Whether one waits for the worker alone."""
        return bool(self._ready)

    def trust(self, configs: Iterable[Any]) -> None:
        """Take the current Configs as verified: they serve already."""
        self._verified.update(configs)

    def begin(self, winners: Document, compiled: Container[Kernel]) -> None:
        """Have the kernels for winners compiled that are not among the `compiled`."""
        for config, key in self._unverified(winners):
            if config in self._compiling or (config, key) in self._ready:
                continue
            kernel = key[0], config
            if kernel in compiled:
                self._ready.append((config, key))
            else:
                self._compiling[config] = kernel, key
                self._compilers.submit(*kernel)

    def compiled(self, kernel: Kernel) -> None:
        """`kernel` is in the store of cubins."""
        for config in [config for config, (needed, _) in self._compiling.items() if needed == kernel]:
            self._ready.append((config, self._compiling.pop(config)[1]))

    def verify_next(self) -> None:
        """Verify one that is ready."""
        self.verify(*self._ready.popleft())

    def all_right(self, winners: Document) -> bool:
        """Whether all winners are right; the first that is not is out, and others may win."""
        unverified = self._unverified(winners)
        for config, (stem, *_) in unverified:
            self._compilers.submit(stem, config)
        wait(self._compilers, self._runner.interrupts)
        return all(self.verify(*each) for each in unverified)

    def verify(self, config: Any, key: SearchKey) -> bool:
        """Verify a winner; whether it is right."""
        _, failure = self._runner.finish(self._job(key, config, verify=("odd",)))
        if failure is None:
            self._verified.add(config)
            return True
        detail = f"at odd extents: {failure.detail}"
        self._log.note(key, "", config, outcome=failure.outcome, detail=detail)
        self._log.counts[failure.outcome] += 1
        return False

    def _unverified(self, winners: Document) -> list[tuple[Any, SearchKey]]:
        """The winners that were not verified yet."""
        unverified = {}
        for (stem, dtype, layout, _), entry in winners.entries.items():
            if stem not in FAMILIES:
                continue  # a fused TRSM: the search itself has verified it
            try:
                config = FAMILIES[stem].config(dtype, layout, entry.parameters)
            except ConfigError:  # of an older version's sweep, which is resumed
                continue
            if config not in self._verified:
                unverified[config] = (stem, dtype, layout)
        return list(unverified.items())

    def clear(self) -> None:
        """Forget what is compiled or ready."""
        self._compiling.clear()
        self._ready.clear()
