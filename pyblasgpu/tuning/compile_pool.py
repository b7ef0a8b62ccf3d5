"""Compile candidates, many at a time and without a device, and judge them by the compiler's report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from ..errors import ConfigError, PyblasgpuError, require
from ..gpu.build.compile import KernelSource, Resources, compile_source
from ..gpu.device import Device
from ..kernels.registry import family_of
from ..processes import Pool
from ..types import Triangle

__all__ = [
    "Compilers",
    "Verdict",
    "compile_all",
    "complaint",
    "judge",
    "source_of",
]

#: A family's stem, or a triangle by which a Config of a product solves, and the Config.
CompileJob = tuple[Any, Any]


def source_of(stem: str | Triangle, config: Any) -> KernelSource:
    """The kernel of `config` in its plainest variant, the one that is timed.

    With a `Triangle` for its stem the Config is of a family of products, and solves by that.
    """
    module = family_of(config.STEM).module
    if isinstance(stem, Triangle):
        return module.source(config, triangle=stem, solved=True)
    return module.source(config)


class Compilers(Pool):
    """Processes that compile (stem, Config) pairs; none of them touches a device.

    The code stays in the store of cubins. The reports are the linker's.

    Parameters
    ----------
    cc : (int, int)
    workers : int, optional
        How many processes; by default one for each core.
    """

    def __init__(self, cc: tuple[int, int], workers: int | None = None):
        super().__init__(partial(_compile, cc=cc), workers)


def compile_all(
    jobs: Iterable[CompileJob], cc: tuple[int, int], workers: int | None = None
) -> Iterator[tuple[CompileJob, Resources | str]]:
    """Compile (stem, Config) pairs; yields each with its report, in order of completion."""
    with Compilers(cc, workers) as compilers:
        for job in jobs:
            compilers.submit(*job)
        while compilers.pending:
            yield from compilers.finished()


def _compile(stem: str | Triangle, config: Any, cc: tuple[int, int]) -> Resources | str:
    try:
        return compile_source(source_of(stem, config), cc).resources
    except PyblasgpuError as problem:
        return str(problem)
    except Exception as problem:  # of whatever a candidate does to its factory: it is out, the others go on
        return f"{type(problem).__name__}: {problem}"


class Verdict(NamedTuple):
    """Record of a compiled candidate.

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
        "registers": report.registers,
        "stack_bytes": report.stack_bytes,
        "spill_bytes": spills,
        "shared_bytes": shared,
        "blocks": blocks,
        "threads": resident,
    }
    try:
        require(spills == 0, "spills", "spilled bytes == 0", spills=spills)
        require(report.stack_bytes == 0, "stack", "stack bytes == 0", stack=report.stack_bytes)
        require(
            blocks >= 1,
            "residence",
            "blocks a multiprocessor holds >= 1",
            registers=report.registers,
            shared=shared,
        )
        require(blocks >= min_blocks, "blocks", f"blocks >= {min_blocks}", blocks=blocks)
        require(resident >= min_threads, "threads", f"resident threads >= {min_threads}", threads=resident)
    except ConfigError as broken:
        return Verdict(broken.rule, str(broken), numbers)
    return Verdict("ok", "", numbers)


def complaint(config: Any, report: Resources | str, device: Device) -> tuple[str, str]:
    """Return the fault of a compiled candidate: ('ok', ''), or the rule that it breaks and the details."""
    return judge(config, report, device)[:2]
