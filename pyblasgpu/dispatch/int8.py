"""Whether a product of float64 that asks for tensor cores gets them, and the Configs that make it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ..gpu.device import Device
from ..types import Dtype, Region
from . import overrides
from .choose import select
from .decisions import Algorithm, KernelChoice
from .leaf import runs

__all__ = ["Int8Product", "gains", "int8_product"]

STEM = "gemm_int8"
#: What an H200 makes in a second, by ``python -m benchmarks.gemm_int8``: operations on bytes, bytes of
#: memory, and operations of a DGEMM by FMAs. Launches take so many seconds beside.
INT8_RATE, BANDWIDTH, FMA_RATE, LAUNCHES = 1.3e15, 3.2e12, 54e12, 40e-6
#: Rows and columns of C that are computed, at multiples of which.
UNIT = 256
#: Bytes of images and residues that C is cut in blocks for, where they take more.
MOST_WORKSPACE = 4 << 30
SHARE_OF_A = 0.9  # of them, at most, for the images of A


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


def int8_product(
    dtype: Dtype,
    layout: str,
    extents: tuple[int, int, int, int],
    device: Device,
    copied: bool,
    region: Region = Region.ALL,
) -> Int8Product | Algorithm:
    """How a product is made on INT8 tensor cores; or the algorithm that serves instead, which tells why.

    Parameters
    ----------
    dtype : Dtype
    layout : str
        How A and B lie, as the Configs of `gemm_mma` tell it.
    extents : (int, int, int, int)
        m, n, k and batch.
    device : Device
    copied : bool
        Whether an operand has neither contiguous columns nor rows.
    region : Region
        Of C.
    """
    reason = _obstacle(dtype, extents, device, copied, region)
    if reason:
        return Algorithm("gemm_mma", reason)
    m, n, k, _ = extents
    choice = select(STEM, dtype, "", extents, device)
    config = choice.config
    scales = replace(select("row_scales", dtype, "", (m, k), device).config, moduli=config.moduli)
    pack = select("pack_residues", dtype, "", (m, k), device).config
    rows = min(pack.rows, config.PANEL)
    pack = replace(pack, moduli=config.moduli, BLK=config.PANEL, rows=rows, sample=config.sample)
    combine = select("combine_residues", dtype, "", (m, n), device).config.serving(config)
    guarded = select("gemm_int8_guarded", dtype, layout, extents, device).config
    guarded = replace(guarded, FLAG_M=config.BLK_M, FLAG_N=config.BLK_N)
    guarded = guarded.serving(layout[0] == "t", layout[1] == "t")
    return Int8Product(choice, scales, pack, combine, guarded, *_blocks(config, m, n, k))


def _obstacle(
    dtype: Dtype, extents: tuple[int, int, int, int], device: Device, copied: bool, region: Region
) -> str:
    """What speaks against tensor cores; nothing does where the answer is empty."""
    m, n, k, _ = extents
    if not runs(STEM, device):
        return f"tensor cores need compute capability 9.0, {device.name} has {device.cc[0]}.{device.cc[1]}"
    if dtype.letter != "d":
        return "products of complex128 are not made of residues"
    if region is not Region.ALL:
        return "triangles of float64 matrices are not made of residues"
    if copied:
        return "an operand has neither contiguous columns nor rows"
    config = select(STEM, dtype, "", extents, device).config
    if k > config.MOST_K:
        return f"k={k} is too large for sums of products of bytes"
    if overrides.get_override(STEM) is None and not gains(m, n, k, config.moduli):
        return "small products are faster without residues"
    return ""


def gains(m: int, n: int, k: int, moduli: int) -> bool:
    """Whether residues are estimated to take less time than FMAs."""
    rows, cols = -(-m // UNIT) * UNIT, -(-n // UNIT) * UNIT
    products = 2 * rows * cols * k * moduli / INT8_RATE
    packed, combined = (rows + cols) * k * (16 + moduli), rows * cols * (16 + 2 * moduli)
    return products + (packed + combined) / BANDWIDTH + LAUNCHES < 2 * m * n * k / FMA_RATE


def _blocks(config: Any, m: int, n: int, k: int) -> tuple[int, int]:
    """Rows and columns of the blocks of C: all of A's images at once, if they take no more than their share,
    and as many columns as fit beside them.
    """
    of_row = -(-k // 128) * 128 * (config.moduli + 1)
    unit = config.cluster * config.BLK_M
    for_a_block = (MOST_WORKSPACE - config.BLK_N * of_row) // (of_row + config.BLK_N * config.moduli)
    rows = _equal(m, max(min(int(MOST_WORKSPACE * SHARE_OF_A) // of_row, for_a_block), 1), unit)
    left = MOST_WORKSPACE - rows * of_row
    return rows, _equal(n, max(left // (of_row + rows * config.moduli), 1), config.BLK_N)


def _equal(extent: int, most: int, unit: int) -> int:
    """`extent`, or the size of as few blocks as have at most `most`, nearly; of whole units."""
    if extent <= most:
        return extent
    parts = -(-extent // max(most // unit * unit, unit))
    return -(-extent // (parts * unit)) * unit
