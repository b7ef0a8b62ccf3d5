"""C := alpha A B + beta C of float64 on INT8 tensor cores: integers modulo small numbers, and what they tell.

For each block of C: scales of rows of A and columns of B, their residues packed, a check of which tiles are
served within FP64's bound, residues of the product, C of them, and the other tiles by FMAs. Which are which
the device alone finds out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dispatch.int8 import Int8Product
from ..dispatch.raster import raster_of
from ..gpu.device import current
from ..kernels.common.options import options_of
from ..kernels.gemm.int8.image import FACTS, Image
from ..kernels.registry import family_of
from ..operands import Operand
from .launch_list import LaunchList

__all__ = ["emit_int8"]

#: Rows of clusters' tiles of a column in which C is rasterized, where nothing asks for another number.
RASTER = 4


class Residues(NamedTuple):
    """An operand in the workspace: images of all moduli and of digits, and facts of its rows."""

    image: Image
    images: Operand
    facts: Operand


def emit_int8(
    launches: LaunchList, how: Int8Product, alpha: Any, a: Operand, b: Operand, beta: Any, c: Operand
) -> None:
    """Emit the product; C is column-major, A and B have contiguous columns or rows."""
    for i in range(c.batch):
        left, right, target = (x.matrices(i, 1) for x in (a, b, c))
        for row in range(0, c.rows, how.rows):
            rows = min(how.rows, c.rows - row)
            with launches.temporary():
                part = left.block(row, 0, rows, a.cols)
                of_a = _emit_residues(launches, how, part)
                for col in range(0, c.cols, how.cols):
                    cols = min(how.cols, c.cols - col)
                    with launches.temporary():
                        of_b = right.block(0, col, b.rows, cols)
                        block = target.block(row, col, rows, cols)
                        _emit_block(launches, how, alpha, (part, of_a), of_b, beta, block)


def _emit_residues(launches: LaunchList, how: Int8Product, operand: Operand) -> Residues:
    """Emit what packs an operand, extent by k."""
    image = how.pack.image(operand.rows, operand.cols)
    facts = launches.scratch(FACTS * image.rows, 1, 1)
    images = _words(launches, image.all_words(how.pack.moduli, how.pack.sample))
    extents, options = (operand.rows, operand.cols), options_of(by_rows=operand.by_rows)
    integers = *extents, options, operand.row_stride, operand.col_stride
    for config, blocks, operands in (
        (how.scales, how.scales.grid(image.rows), (operand, facts)),
        (how.pack, how.pack.grid(image), (operand, facts, images)),
    ):
        kernel = family_of(config.STEM).source(config)
        launches.emit(kernel, blocks, operands, lambda *_: integers, ())
    return Residues(image, images, facts)


def _words(launches: LaunchList, count: int) -> Operand:
    """Scratch for so many words of 4 bytes."""
    return launches.scratch(-(-count * 4 // launches.dtype.itemsize), 1, 1)


def _emit_block(
    launches: LaunchList,
    how: Int8Product,
    alpha: Any,
    left: tuple[Operand, Residues],
    b: Operand,
    beta: Any,
    c: Operand,
) -> None:
    """Emit a block of C, of rows of A whose residues are there, and of columns of B."""
    config, (a, of_a) = how.choice.config, left
    of_b = _emit_residues(launches, how, b.T)
    tiles = config.tiles(c.rows, c.cols)
    flags = _words(launches, tiles * config.flags_of_tile)
    residues = _words(launches, tiles * config.words_of_tile * config.moduli)
    _emit_products(launches, how, of_a, of_b, flags, residues, (c.rows, c.cols))
    kernel = family_of(how.combine.STEM).source(how.combine)
    integers = c.rows, c.cols, c.col_stride
    operands = residues, of_a.facts, of_b.facts, flags, c
    launches.emit(kernel, how.combine.grid(c.rows, c.cols), operands, lambda *_: integers, (alpha, beta))
    guarded = how.guarded
    lead_a = a.row_stride if guarded.trans_a else a.col_stride
    lead_b = b.row_stride if guarded.trans_b else b.col_stride
    others = c.rows, c.cols, a.cols, _raster(launches, 0), lead_a, lead_b, c.col_stride
    kernel = family_of(guarded.STEM).source(guarded)
    blocks = guarded.grid(c.rows, c.cols)
    launches.emit(kernel, blocks, (flags, a, b, c), lambda *_: others, (alpha, beta))


def _emit_products(
    launches: LaunchList,
    how: Int8Product,
    a: Residues,
    b: Residues,
    flags: Operand,
    residues: Operand,
    extents: tuple[int, int],
) -> None:
    """Emit the product of digits, which flags tiles, and those of all moduli."""
    config = how.choice.config
    kernel, options = family_of(config.STEM).source(config), _raster(launches, RASTER)
    tiles, count = config.grid(*extents), current(launches.device).sm_count
    operands = a.images, b.images, a.facts, b.facts, flags, residues
    for first, images in ((config.moduli, 1), (0, config.moduli)):
        integers = *extents, a.image.k, options, tiles, first, images
        blocks = config.blocks(count, tiles * images)
        launches.emit(kernel, blocks, operands, lambda *_, given=integers: given, ())


def _raster(launches: LaunchList, otherwise: int) -> int:
    """The order of tiles, as options of a launch."""
    return options_of(raster=raster_of(launches.dtype, current(launches.device)) or otherwise)
