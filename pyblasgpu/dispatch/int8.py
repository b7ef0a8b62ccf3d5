"""Whether a product of float64 or complex128 that asks for tensor cores gets them, and what makes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ..gpu import backend
from ..gpu.device import Device
from ..gpu.transfers import memory_bytes
from ..kernels.gemm.int8.image import parts_of
from ..types import Dtype, Region
from . import overrides
from .choose import select
from .decisions import Algorithm, KernelChoice
from .tensor_problem import TensorProblem, obstacle

__all__ = ["Int8Product", "gains", "int8_product"]

STEM = "gemm_int8"
#: What an H200 makes in a second, by ``python -m benchmarks.gemm_int8``: operations on bytes, bytes of
#: memory, and operations of a DGEMM by FMAs. Launches take so many seconds beside.
INT8_RATE, BANDWIDTH, FMA_RATE, LAUNCHES = 1.3e15, 3.2e12, 54e12, 40e-6
#: Rows and columns of C that are computed, at multiples of which.
UNIT = 256
#: Bytes of images and residues that C is cut in blocks for, where they take more; at most this part of what
#: is free.
MOST_WORKSPACE, PART_OF_FREE = 4 << 30, 2
MIN_BLOCK = 1024  # rows and columns of a block, unless C has fewer: with less, packing costs what is gained


class Int8Product(NamedTuple):
    """How a product is made of residues.

    Attributes
    ----------
    choice : KernelChoice
        The Config of the product.
    scales, pack, combine, guarded : Config
        Of what finds the scales of rows, packs residues, puts them together, and multiplies the tiles that
        integers cannot serve.
    rows, cols : int
        Of the blocks of C that are computed one after the other.
    """

    choice: KernelChoice
    scales: Any
    pack: Any
    combine: Any
    guarded: Any
    rows: int
    cols: int


def int8_product(problem: TensorProblem) -> Int8Product | Algorithm:
    """How a product of float64 or complex128 is made; or the algorithm that serves instead, and why.

    Memory that is free counts as it is when a layout comes for the first time.
    """
    dtype, device, layout = problem.dtype, problem.device, problem.layout
    reason, (m, n, k, _) = _obstacle(problem), problem.extents
    if reason:
        return Algorithm("gemm_mma", reason)
    choice = select(STEM, dtype, "", problem.extents, device)
    config = choice.config
    workspace_limit = _workspace_limit(device)
    blocks = _blocks(config, m, n, k, workspace_limit)
    if blocks is None:
        return Algorithm("gemm_mma", f"residues of a block of C have no room in {workspace_limit >> 20} MiB")
    scales = replace(select("row_scales", dtype, "", (m, k), device).config, moduli=config.moduli)
    pack = select("pack_residues", dtype, "", (m, k), device).config
    rows = min(pack.rows, config.PANEL)
    pack = replace(pack, moduli=config.moduli, BLK=config.PANEL, rows=rows, sample=config.sample)
    combine = select("combine_residues", dtype, "", (m, n), device).config.specialize(config)
    guarded = select("gemm_int8_guarded", dtype, layout, problem.extents, device).config
    guarded = replace(guarded, FLAG_M=config.BLK_M, FLAG_N=config.BLK_N)
    guarded = guarded.specialize(layout[0] == "t", layout[1] == "t")
    return Int8Product(choice, scales, pack, combine, guarded, *blocks)


def _obstacle(problem: TensorProblem) -> str:
    """What speaks against tensor cores; nothing does where the answer is empty."""
    dtype, (m, n, k, _) = problem.dtype, problem.extents
    if problem.region is not Region.ALL:
        return f"triangles of {dtype.name} matrices are not made of residues"
    reason = obstacle(problem, STEM)
    if reason:
        return reason
    config = select(STEM, dtype, "", problem.extents, problem.device).config
    if k > config.MOST_K:
        return f"k={k} is too large for sums of products of bytes"
    if overrides.get_override(STEM) is None and not gains(dtype, m, n, k, config.moduli):
        return "small products are faster by FMAs"
    return ""


def gains(dtype: Dtype, m: int, n: int, k: int, moduli: int) -> bool:
    """Whether residues are estimated to take less time than FMAs."""
    rows, cols = -(-m // UNIT) * UNIT, -(-n // UNIT) * UNIT
    images, size, of_reals = moduli * parts_of(dtype), dtype.itemsize, dtype.reals_per_element**2
    products = 2 * rows * cols * k * images / INT8_RATE
    packed, combined = (rows + cols) * k * (2 * size + images), rows * cols * (2 * size + 2 * images)
    by_fma = 2 * of_reals * m * n * k / FMA_RATE
    return products + (packed + combined) / BANDWIDTH + LAUNCHES < by_fma


def _workspace_limit(device: Device) -> int:
    """Bytes of workspace that a product may take."""
    if device.ordinal < 0 or backend.SIMULATED:  # no memory that a driver knows
        return MOST_WORKSPACE
    return min(MOST_WORKSPACE, memory_bytes(device.ordinal).free // PART_OF_FREE)


def _blocks(config: Any, m: int, n: int, k: int, workspace_limit: int) -> tuple[int, int] | None:
    """Rows and columns of the blocks of C, so that images and residues fit in `workspace_limit` bytes: as few
    blocks of rows as leave `MIN_BLOCK` columns beside them, for each of which B is packed, and as many
    columns as fit. None where blocks would be smaller than that.
    """
    of_row = -(-k // 128) * 128 * (config.images + 1)
    unit, cols = config.cluster * config.BLK_M, min(MIN_BLOCK, -(-n // config.BLK_N) * config.BLK_N)
    rows = _equal(m, (workspace_limit - cols * of_row) // (of_row + cols * config.images), unit)
    left = workspace_limit - rows * of_row
    cols = _equal(n, left // (of_row + rows * config.images), config.BLK_N)
    return None if rows < min(m, MIN_BLOCK) or cols < min(n, MIN_BLOCK) else (rows, cols)


def _equal(extent: int, most: int, unit: int) -> int:
    """`extent`, or the size of as few blocks of whole units as have at most `most`, but no less than
    `MIN_BLOCK` where that many fit; 0: none is so small.
    """
    if extent <= most:
        return extent
    if most < unit:
        return 0
    fitting = most // unit * unit
    parts = -(-extent // fitting)
    return max(-(-extent // (parts * unit)) * unit, min(fitting, MIN_BLOCK))
