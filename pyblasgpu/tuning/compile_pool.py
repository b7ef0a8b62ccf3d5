"""Compile candidates, many at a time and without a device, and judge them by the compiler's report."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from queue import Empty, Queue
from typing import Any, NamedTuple

from ..database import FAMILIES
from ..errors import ConfigError, PyblasgpuError, require
from ..gpu.compile import KernelSource, Resources, compile_source
from ..gpu.device import Device
from ..kernels.gemm.trmm_fused import TRIANGLES

__all__ = [
    "Compilers",
    "Verdict",
    "beside",
    "compile_all",
    "complaint",
    "cores",
    "judge",
    "source_of",
]

#: A family's stem, or a triangle by which a Config of a product solves, and the Config.
Job = tuple[str, Any]


def cores() -> int:
    """Processor cores that this process may use; a container or a batch system may grant a few of many."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def source_of(stem: str, config: Any) -> KernelSource:
    """The kernel of `config` in its plainest variant, the one that is timed.

    With one of `TRIANGLES` for its stem the Config is of a family of products, and solves by that.
    """
    module = FAMILIES[config.STEM].module
    if stem in TRIANGLES:
        return module.source(config, triangle=stem, solved="nonunit")
    if FAMILIES[stem].routine == "gemm":
        return module.source(config)
    return module.source(config, module.Variant(unit=False, conj=False, t_by_rows=True, b_by_rows=True))


class Compilers:
    """Processes that compile (stem, Config) pairs; none of them touches a device.

    The code stays in the store of cubins. The processes yield to this one and to whoever is timing.

    Parameters
    ----------
    cc : (int, int)
    workers : int, optional
        How many processes; by default one for each of `cores`.
    """

    def __init__(self, cc: tuple[int, int], workers: int | None = None):
        self.workers = workers or cores()
        self.pending = 0
        self._cc, self._pool = cc, _processes(self.workers)
        self._done: Queue[tuple[Job, Future, bool]] = Queue()
        self._futures: dict[Job, Future] = {}

    def submit(self, stem: str, config: Any) -> None:
        """Begin to compile; what is pending already is reported once."""
        if (stem, config) not in self._futures:
            self.pending += 1
            self._begin((stem, config), again=False)

    def finished(self, timeout: float | None = None) -> Iterator[tuple[Job, Resources | str]]:
        """What is ready, after at most `timeout` seconds for the first of it: the compiler's reports, or
        what it complains about."""
        wait = True
        while self.pending:
            try:
                job, future, again = self._done.get(wait, timeout)
            except Empty:
                return
            if self._futures.get(job) is not future:
                continue  # dropped
            report = self._report(job, future, again)
            if report is not None:
                wait = False
                del self._futures[job]
                self.pending -= 1
                yield job, report

    def drop(self) -> None:
        """Nobody waits any more for what is pending."""
        for future in self._futures.values():
            future.cancel()
        self._futures.clear()
        self.pending = 0

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, *_: object) -> None:
        _stop(self._pool)

    def _begin(self, job: Job, again: bool) -> None:
        try:
            future = self._alone(job) if again else self._pool.submit(_compile, *job, self._cc)
        except BrokenExecutor:
            self._pool = _processes(self.workers)
            future = self._pool.submit(_compile, *job, self._cc)
        self._futures[job] = future
        future.add_done_callback(lambda done: self._done.put((job, done, again)))

    def _alone(self, job: Job) -> Future:
        """In a process of its own: some job took the others' down, and it may be this one."""
        pool = _processes(1)
        future = pool.submit(_compile, *job, self._cc)
        pool.shutdown(wait=False)
        return future

    def _report(self, job: Job, future: Future, again: bool) -> Resources | str | None:
        """None where the job is tried once more, because some job took the processes down."""
        try:
            return future.result()
        except BrokenExecutor:
            if again:
                return "the compiler's process died"
            self._begin(job, again=True)
            return None


@contextmanager
def beside(count: int) -> Iterator[ProcessPoolExecutor]:
    """So many processes that yield to whoever is timing, and end with the block."""
    pool = _processes(count)
    try:
        yield pool
    finally:
        _stop(pool)


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_retire)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the processes at once: the interpreter would wait at its exit for what nobody waits for here."""
    for process in list((pool._processes or {}).values()):  # from Python 3.14 on, pool.terminate_workers()
        process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)


def compile_all(
    jobs: Iterable[Job], cc: tuple[int, int], workers: int | None = None
) -> Iterator[tuple[Job, Resources | str]]:
    """Compile (stem, Config) pairs; yields each with its report, as they come."""
    with Compilers(cc, workers) as compilers:
        for job in jobs:
            compilers.submit(*job)
        while compilers.pending:
            yield from compilers.finished()


def _retire() -> None:
    """Give way to whoever is timing; Ctrl-C is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):  # POSIX
        os.nice(10)


def _compile(stem: str, config: Any, cc: tuple[int, int]) -> Resources | str:
    try:
        return compile_source(source_of(stem, config), cc).resources
    except PyblasgpuError as problem:
        return str(problem)
    except Exception as problem:  # of whatever a candidate does to its factory: it is out, the others go on
        return f"{type(problem).__name__}: {problem}"


class Verdict(NamedTuple):
    """What is to be recorded of a compiled candidate.

    Attributes
    ----------
    outcome : str
        'ok', or the rule that is broken: 'compile', 'spills', 'stack', 'residence', 'blocks', 'threads'.
    detail : str
        The complaint in words, '' if there is none.
    numbers : dict
        Registers and bytes of stack and spills of a thread, bytes of shared memory of a block, and how many
        blocks and threads a multiprocessor holds; empty where nothing was compiled.
    """

    outcome: str
    detail: str
    numbers: dict[str, int]


def judge(
    config: Any, report: Resources | str, device: Device, min_blocks: int = 1, min_threads: int = 0
) -> Verdict:
    """Judge a candidate by the linker's numbers, which replace the estimates, and the device's occupancy.

    Parameters
    ----------
    config : object
        The Config that was compiled.
    report : Resources or str
        The linker's report, or what the compiler complains about.
    device : Device
    min_blocks, min_threads : int
        The guidelines: what a multiprocessor must hold.
    """
    if isinstance(report, str):
        return Verdict("compile", report, {})
    shared, spills = config.shared_bytes, report.spill_stores + report.spill_loads
    blocks = device.occupancy(config.threads, report.registers, shared)
    resident = blocks * config.threads
    numbers = {
        "registers": report.registers, "stack_bytes": report.stack_bytes, "spill_bytes": spills,
        "shared_bytes": shared, "blocks": blocks, "threads": resident,
    }  # fmt: skip
    try:
        require(spills == 0, "spills", "spilled bytes == 0", spills=spills)
        require(report.stack_bytes == 0, "stack", "stack bytes == 0", stack=report.stack_bytes)
        require(blocks >= 1, "residence", "blocks a multiprocessor holds >= 1",
                registers=report.registers, shared=shared)  # fmt: skip
        require(blocks >= min_blocks, "blocks", f"blocks >= {min_blocks}", blocks=blocks)
        require(resident >= min_threads, "threads", f"resident threads >= {min_threads}", threads=resident)
    except ConfigError as broken:
        return Verdict(broken.rule, str(broken), numbers)
    return Verdict("ok", "", numbers)


def complaint(config: Any, report: Resources | str, device: Device) -> tuple[str, str]:
    """What is wrong with a compiled candidate: ('ok', ''), or the rule that it breaks and the details."""
    return judge(config, report, device)[:2]
