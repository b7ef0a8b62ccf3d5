"""The kernels that a benchmark will run: which these are, compiled many at a time, named in a few words."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyblasgpu.gpu.compile import Resources
from pyblasgpu.gpu.device import Device
from pyblasgpu.operands import Operand
from pyblasgpu.routines.gemm import fitted
from pyblasgpu.tuning.build import compile_all
from pyblasgpu.tuning.select import Choice

from .progress import bar


def as_it_runs(config: Any, layout: str, extents: tuple[int, int, int], pad: int = 0, shift: int = 0) -> Any:
    """The Config of a product as the alignment of its operands leaves it.

    Parameters
    ----------
    config : GemmConfig
    layout : str
        How A and B lie, 'nn', 'tn', ...
    extents : (int, int, int)
        m, n and k.
    pad : int
        Elements between two columns (rows, if transposed).
    shift : int
        Elements between an aligned address and the first.
    """
    m, n, k = extents
    dtype = config.dtype_facts
    a, b = (
        Operand(
            shift * dtype.itemsize,
            rows,
            cols,
            *((1, rows + pad) if letter == "n" else (cols + pad, 1)),
            dtype,
        )
        for letter, rows, cols in zip(layout, (m, k), (k, n), strict=True)
    )
    return fitted(config, a, b)


def compiled(configs: Collection[Any], device: Device, what: str) -> dict[Any, Resources | str]:
    """The compiler's report of each of `configs`, or what it complains about; the code is in the store."""
    jobs = [(config.STEM, config) for config in configs]
    done = bar(compile_all(jobs, device.cc), what, len(jobs))
    return {config: report for (_, config), report in done}


def named(config: Any) -> str:
    """A family and its tile."""
    tile = "x".join(str(extent) for extent in (config.BLK_M, config.BLK_N, config.BLK_K))
    return f"{config.STEM} {tile}"


def described(chosen: Choice) -> str:
    """A kernel in a few words."""
    config = chosen.config
    loads = f"loads of {config.VEC_A} and {config.VEC_B}"
    return f"{named(config)}, {loads}, {chosen.splits} chunks of k, {chosen.origin}"
