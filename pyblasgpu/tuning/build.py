"""Compile candidates, many at a time and without a device, and judge them by the compiler's report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from ..errors import ConfigError, PyblasgpuError, require
from ..gpu.compile import KernelSource, Resources, compile_source
from ..gpu.device import Device

__all__ = ["compile_all", "complaint", "source_of"]


def source_of(stem: str, config: Any) -> KernelSource:
    """The kernel of `config` in its plainest variant, the one that is timed."""
    module = import_module(f"..kernels.{stem}", __package__)
    if stem == "gemm_tile":
        return module.source(config)
    return module.source(config, module.Variant(unit=False, conj=False, t_by_rows=True, b_by_rows=True))


def compile_all(
    jobs: Iterable[tuple[str, Any]], cc: tuple[int, int], workers: int | None = None
) -> Iterator[tuple[tuple[str, Any], Resources | str]]:
    """Compile (stem, Config) pairs in processes of their own, none of which touches a device.

    Yields each pair with the compiler's report, or with what the compiler complains about, as they come.
    The code stays in the store of cubins. The processes yield to this one, which may be timing.
    """
    context = get_context("spawn")
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=context, initializer=_be_nice) as pool:
        try:
            pending = {pool.submit(_compile, stem, config, cc): (stem, config) for stem, config in jobs}
            for done in as_completed(pending):
                yield pending.pop(done), done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _be_nice() -> None:
    if hasattr(os, "nice"):  # POSIX
        os.nice(10)


def _compile(stem: str, config: Any, cc: tuple[int, int]) -> Resources | str:
    try:
        return compile_source(source_of(stem, config), cc).resources
    except PyblasgpuError as problem:
        return str(problem)


def complaint(config: Any, report: Resources | str, device: Device) -> tuple[str, str]:
    """What is wrong with a compiled candidate: ('ok', ''), or the rule that it breaks and the details."""
    if isinstance(report, str):
        return "compile", report
    try:
        _check_compiled(config, report, device)
    except ConfigError as broken:
        return broken.rule, str(broken)
    return "ok", ""


def _check_compiled(config: Any, resources: Resources, device: Device) -> None:
    stack, spills = resources.stack_bytes, resources.spill_stores + resources.spill_loads
    require(spills == 0, "spills", "spilled bytes == 0", spills=spills)
    require(stack == 0, "stack", "stack bytes == 0", stack=stack)
    blocks = device.occupancy(config.threads, resources.registers, config.shared_bytes)
    require(blocks >= 1, "residence", "blocks a multiprocessor holds >= 1",
            registers=resources.registers, shared=config.shared_bytes)  # fmt: skip
