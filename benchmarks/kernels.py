"""The kernels that a benchmark will run: which these are, compiled many at a time, named in a few words."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from benchmarks.study import Namespace, Option, Row, device_facts
from pyblasgpu.bench.progress import bar
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import KernelChoice
from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.gpu.device import Device, current
from pyblasgpu.gpu.device import named as device_named
from pyblasgpu.operands import Operand
from pyblasgpu.options import parse_device
from pyblasgpu.routines.level3.gemm import alignments
from pyblasgpu.tuning.compile_pool import compile_all
from pyblasgpu.types import Dtype

COMPILE_ONLY = Option(None, kind=parse_device, help="compile for a known device, time nothing")


def device_of(options: Namespace) -> Device:
    """The device here, or the one that kernels are only compiled for."""
    return device_named(options.compile_only) if options.compile_only else current()


def kept_facts(options: Namespace, cublas: Any = None) -> Row:
    """The schema of files that are kept, and the device, unless kernels are only compiled."""
    device = {"device": "", "date": ""} if options.compile_only else device_facts(options, cublas)
    return {"schema": 1, **device}


def choice_of(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], device: Device, pad: int = 0, shift: int = 0
) -> KernelChoice:
    """What a product would run.

    Parameters
    ----------
    dtype : Dtype
    layout : str
        Layouts of A and B, 'nn', 'tn', ...
    extents : (int, int, int)
        m, n and k.
    device : Device
    pad : int
        Elements between two columns (rows, if transposed).
    shift : int
        Elements between an aligned address and the first.
    """
    aligned = alignments(layout, *_operands(dtype, layout, extents, pad, shift))
    return select("gemm", dtype, layout, (*extents, 1), device, aligned=aligned)


def _operands(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], pad: int, shift: int
) -> list[Operand]:
    """A and B."""
    m, n, k = extents
    return [
        Operand(
            shift * dtype.itemsize,
            rows,
            cols,
            *((1, rows + pad) if letter == "n" else (cols + pad, 1)),
            dtype,
        )
        for letter, rows, cols in zip(layout, (m, k), (k, n), strict=True)
    ]


def compiled(configs: Collection[Any], device: Device, what: str) -> dict[Any, Resources | str]:
    """The compiler's report of each of `configs`, or what it complains about; the code is in the store."""
    jobs = [(config.STEM, config) for config in configs]
    done = bar(compile_all(jobs, device.cc), what, len(jobs))
    return {config: report for (_, config), report in done}


def named(config: Any) -> str:
    """A family and its tile."""
    tile = "x".join(str(extent) for extent in (config.BLK_M, config.BLK_N, config.BLK_K))
    return f"{config.STEM} {tile}"


def described(chosen: KernelChoice) -> str:
    """A kernel in a few words."""
    config = chosen.config
    loads = f"loads of {config.VEC_A} and {config.VEC_B}"
    return f"{named(config)}, {loads}, {chosen.splits} slices of k, {chosen.origin}"
