"""C := alpha A B + beta C of float64 or complex128 on INT8 tensor cores: integers modulo small numbers, and
their combination.

For each block of C: scales of rows of A and columns of B, their residues packed, a check of which tiles are
served within FP64's bound, residues of the product, C of them, and the other tiles by FMAs. Which are which
the device alone finds out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dispatch.gemm import raster_of
from ...dispatch.tensor import Int8Product
from ...gpu.device import current
from ...kernels.common.options import options_of
from ...kernels.gemm.form import relative_conjugation
from ...kernels.gemm.int8.image import FACTS, Image
from ...kernels.registry import family_of
from ...operands import Operand
from ..launch_list import LaunchList
from .halves import RASTER

__all__ = ["emit_int8"]


class Residues(NamedTuple):
    """An operand, extent by k, and what is made of it in the workspace: images, and facts of its rows."""

    operand: Operand
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
                of_a = _scratch(launches, how, left.block(row, 0, rows, a.cols))
                for col in range(0, c.cols, how.cols):
                    cols = min(how.cols, c.cols - col)
                    with launches.temporary():
                        of_b = _scratch(launches, how, right.block(0, col, b.rows, cols).T)
                        _emit_residues(launches, how, of_a, of_b, col == 0)
                        block = target.block(row, col, rows, cols)
                        _emit_block(launches, how, alpha, of_a, of_b, beta, block)


def _scratch(launches: LaunchList, how: Int8Product, operand: Operand) -> Residues:
    """The workspace of an operand, extent by k."""
    image = how.pack.image(operand.rows, operand.cols)
    facts = _words(launches, 2 * FACTS * image.rows)
    images = _words(launches, image.all_words(how.pack.images, how.pack.sample))
    return Residues(operand, image, images, facts)


def _emit_residues(launches: LaunchList, how: Int8Product, a: Residues, b: Residues, both: bool) -> None:
    """Emit what packs A and B; or, if not `both`, B alone."""
    k, pairs = a.image.k, (a, b)
    options = [options_of(by_rows=x.operand.by_rows, conj=x.operand.conj) for x in pairs]
    steps = [step for x in pairs for step in (x.operand.row_stride, x.operand.col_stride)]
    operands, facts = [x.operand for x in pairs], [x.facts for x in pairs]
    rows = [x.image.rows if both or x is b else 0 for x in pairs]
    units = [how.pack.grid(x.image) if both or x is b else 0 for x in pairs]
    for config, blocks, of_a, arrays in (
        (how.scales, how.scales.grid(sum(rows)), rows[0], (*operands, *facts)),
        (how.pack, sum(units), units[0], (*operands, *facts, a.images, b.images)),
    ):
        integers = a.image.extent, b.image.extent, k, *options, of_a, *steps
        kernel = family_of(config.STEM).source(config)
        launches.emit(kernel, blocks, arrays, lambda *_, values=integers: values, ())


def _words(launches: LaunchList, count: int) -> Operand:
    """Scratch for `count` words of 4 bytes."""
    return launches.scratch(-(-count * 4 // launches.dtype.itemsize), 1, 1)


def _emit_block(
    launches: LaunchList, how: Int8Product, alpha: Any, a: Residues, b: Residues, beta: Any, c: Operand
) -> None:
    """Emit a block of C, of rows of A and of columns of B whose residues are there."""
    config = how.choice.config
    tiles = config.tiles(c.rows, c.cols)
    flags = _words(launches, tiles * config.flags_of_tile)
    residues = _words(launches, tiles * config.words_of_tile * config.images)
    _emit_products(launches, how, a, b, flags, residues)
    kernel = family_of(how.combine.STEM).source(how.combine)
    integers = c.rows, c.cols, c.col_stride
    operands = residues, a.facts, b.facts, flags, c
    launches.emit(kernel, how.combine.grid(c.rows, c.cols), operands, lambda *_: integers, (alpha, beta))
    _emit_guarded(launches, how, alpha, a.operand, b.operand.T, beta, c, flags)


def _emit_guarded(
    launches: LaunchList,
    how: Int8Product,
    alpha: Any,
    a: Operand,
    b: Operand,
    beta: Any,
    c: Operand,
    flags: Operand,
) -> None:
    """Emit the product of the tiles that are left."""
    config = how.guarded
    lda, ldb = a.leading_dimension(config.trans_a), b.leading_dimension(config.trans_b)
    conj, conj_sums = relative_conjugation(a.conj, b.conj)
    options = _raster(launches, 0) | options_of(conj=conj_sums)
    integers = c.rows, c.cols, a.cols, options, int(conj), lda, ldb, c.col_stride
    kernel, blocks = family_of(config.STEM).source(config), config.grid(c.rows, c.cols)
    launches.emit(kernel, blocks, (flags, a, b, c), lambda *_: integers, (alpha, beta))


def _emit_products(
    launches: LaunchList,
    how: Int8Product,
    a: Residues,
    b: Residues,
    flags: Operand,
    residues: Operand,
) -> None:
    """Emit the product of digits, which flags tiles, and those of all moduli."""
    config, extents = how.choice.config, (a.image.extent, b.image.extent)
    kernel, options = family_of(config.STEM).source(config), _raster(launches, RASTER)
    tiles, count = config.grid(*extents), current(launches.device).sm_count
    operands = a.images, b.images, a.facts, b.facts, flags, residues
    for first, images in ((config.images, 1), (0, config.images)):
        integers = *extents, a.image.k, options, tiles, first, images
        blocks = config.blocks(count, tiles * images)
        launches.emit(kernel, blocks, operands, lambda *_, values=integers: values, ())


def _raster(launches: LaunchList, otherwise: int) -> int:
    """The order of tiles, as options of a launch."""
    return options_of(raster=raster_of(launches.dtype, current(launches.device)) or otherwise)
