"""C := alpha A B + beta C of float32 on tensor cores: operands split into pairs of FP16, and their product.

Three launches: A and B split and packed, the product of the tiles that pairs serve within FP32's bound, and
that of the others by FMAs; in large products some of these by three BF16 numbers. Which are which the device
alone finds out.
"""

from __future__ import annotations

from typing import Any

from ...dispatch.tensor import TensorProduct
from ...kernels.gemm.form import relative_conjugation
from ...kernels.registry import family_of
from ...operands import Operand
from ...types import Region
from ..launch_list import LaunchList
from .gemm_triples import emit_triples, word_behind, words_of_triples
from .halves import RASTER, Halves, Target, distinct, halves_of, is_one

__all__ = ["emit_guarded", "emit_halves", "emit_product", "emit_tensor"]


def emit_tensor(
    launches: LaunchList,
    how: TensorProduct,
    alpha: Any,
    a: Operand,
    b: Operand,
    beta: Any,
    c: Operand,
    region: Region = Region.ALL,
) -> None:
    """Emit the product of `region` of C; C is column-major, A and B have contiguous columns or rows.

    A complex product is one of real matrices, as `kernels.gemm.wgmma.operand_reader` has it.
    """
    one = not a.dtype.is_complex and is_one(a, b)  # of complex operands the first is packed in another way
    target = Target(alpha, beta, c, region)
    left, right, powers = emit_halves(launches, how, a, None if one else b.T, target)
    emit_product(launches, how, left, right, target)
    further = None
    if powers and how.triples:
        further = emit_triples(launches, how.triples, (a, b.T), (left, right), powers, target)
    emit_guarded(launches, how, (a, left), (b, right), target, further)


def emit_halves(
    launches: LaunchList, how: TensorProduct, a: Operand, b: Operand | None, target: Target
) -> tuple[Halves, Halves, Operand | None]:
    """Emit the split of A and of B transposed, extent by k, into one image; without B it is A.

    The third is what `equilibrate` has found.
    """
    sources = distinct(a, b or a)
    reals = launches.dtype.reals_per_element
    extents, k = (reals * a.rows, sources[1].rows), reals * a.cols
    images = [how.pack.image(extent, k) for extent in extents]
    begins = [0, images[0].flags * sources[0].batch if b else 0]
    units = begins[1] + images[1].flags * sources[1].batch
    words = how.pack.rows * how.pack.BLK_K, how.pack.rows, 1  # of a unit: image, scales, flag
    sizes = [units * count for count in words]
    if how.equilibrate and how.triples and b:  # whose image takes the same memory, later
        sizes[0] = max(sizes[0], words_of_triples(how.triples, extents, k, sources))
    made = [launches.scratch(-(-size // reals), 1, 1, unit=4) for size in sizes]
    left, right = sources
    powers = _emit_powers(launches, how, left, right) if b else None
    options = [
        target.options_of_source(x, is_left) for x, is_left in zip(sources, (True, False), strict=True)
    ]
    units_a = begins[1] or units
    integers = (
        *(*extents, k, *options, units_a, a.cols if powers else 0),
        *(left.row_stride, left.col_stride, left.batch_stride),
        *(right.row_stride, right.col_stride, right.batch_stride),
    )
    flag_word = word_behind(powers, a.cols) if powers else made[2]
    operands = *(x.matrices(0, 1) for x in sources), powers or made[1], *made, flag_word
    kernel = family_of(how.pack.STEM).source(how.pack)
    launches.emit(kernel, units, operands, lambda *_: integers, (how.least,))
    first, second = (halves_of(*each, made, words) for each in zip(images, sources, begins, strict=True))
    return first, second, powers


def _emit_powers(launches: LaunchList, how: TensorProduct, a: Operand, b: Operand) -> Operand | None:
    """Emit the powers of two by which each k of A is multiplied, and of B divided; both extent by k."""
    config = how.equilibrate
    if config is None:
        return None
    a, b = a.matrices(0, 1), b.matrices(0, 1)
    powers = launches.scratch(2 * a.cols + 1, 1, 1, unit=4)
    integers = a.rows, b.rows, a.cols, a.row_stride, a.col_stride, b.row_stride, b.col_stride
    kernel = family_of(config.STEM).source(config)
    launches.emit(kernel, config.grid(a.cols), (a, b, powers), lambda *_: integers, ())
    return powers


def emit_product(launches: LaunchList, how: TensorProduct, a: Halves, b: Halves, target: Target) -> None:
    """Emit the product of all tiles that pairs serve; its blocks walk over the whole batch."""
    config, alpha, beta, c, region = how.choice.config, target.alpha, target.beta, target.c, target.region
    reals = launches.dtype.reals_per_element
    rows, ldc, step = (reals * count for count in (c.rows, c.col_stride, c.batch_stride))
    tiles = config.grid(c.rows, c.cols, region, reals) * c.batch
    operands = a.halves, b.halves, a.scales, b.scales, a.flags, b.flags, c
    options = target.options(launches, raster=RASTER)

    def integers(*of_one: Operand) -> tuple[int, ...]:
        return rows, c.cols, a.image.k, options, tiles, a.panels, b.panels, ldc, step

    blocks = launches.persistent_blocks(config, tiles)
    of_one = tuple(operand._replace(batch=1) for operand in operands)
    launches.emit(family_of(config.STEM).source(config), blocks, of_one, integers, (alpha, beta))


def emit_guarded(
    launches: LaunchList,
    how: TensorProduct,
    left: tuple[Operand, Halves],
    right: tuple[Operand, Halves],
    target: Target,
    further: tuple[Halves, Halves] | None = None,
) -> None:
    """Emit the product of the tiles that are left; with `further` flags also those decide."""
    config, alpha, beta, c, region = how.guarded, target.alpha, target.beta, target.c, target.region
    (a, of_a), (b, of_b) = left, right
    lda, ldb = a.leading_dimension(config.trans_a), b.leading_dimension(config.trans_b)
    conj, conj_sums = relative_conjugation(a.conj, b.conj)
    options = target.options(launches, conj_sums)

    images = of_a, of_b, *(further or (of_a, of_b))
    of_further = further[0].image.flags_of_panel if further else 0
    counts = of_a.image.flags_of_panel, of_a.image.flags_of_grain, of_further

    def integers(*operands: Operand) -> tuple[int, ...]:
        *flags, a, b, c = operands
        leading_dimensions = lda, ldb, c.col_stride
        steps = *(x.batch_stride for x in flags), *leading_dimensions, *(x.batch_stride for x in (a, b, c))
        return c.rows, c.cols, a.cols, options, *counts, *steps

    operands = *(x.all_flags(c.batch) for x in images), a, b, c
    kernel = family_of(config.STEM).source(config, conj)
    launches.emit(kernel, config.grid(c.rows, c.cols, region), operands, integers, (alpha, beta))
