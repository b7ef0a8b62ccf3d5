"""The tiles of a product on tensor cores whose elements FP16 cannot hold, by three BF16 numbers each."""

from __future__ import annotations

from typing import Any

from ...gpu.device import current
from ...kernels.gemm.wgmma.image import Image
from ...kernels.gemm.wgmma.triples import PARTS
from ...kernels.registry import family_of
from ...operands import Operand
from ..launch_list import LaunchList
from .halves import RASTER, Halves, Target, distinct, halves_of

__all__ = ["emit_triples", "word_behind", "words_of_triples"]


def _images(pack: Any, extents: tuple[int, int], k: int) -> list[Image]:
    return [Image(pack.BLK, pack.BLK_K, extent, k, PARTS) for extent in extents]


def words_of_triples(configs: tuple[Any, Any], extents: tuple[int, int], k: int, sources: list) -> int:
    """Words of the image of both operands."""
    images = _images(configs[0], extents, k)
    return sum(image.halves * x.batch for image, x in zip(images, sources, strict=True))


def word_behind(powers: Operand, k: int) -> Operand:
    """The word behind the powers of two operands that says whether `pack_halves` has set a flag."""
    return powers._replace(pointer=powers.pointer + 8 * k, rows=1)


def emit_triples(
    launches: LaunchList,
    configs: tuple[Any, Any],
    operands: tuple[Operand, Operand],
    pairs: tuple[Halves, Halves],
    powers: Operand,
    target: Target,
) -> tuple[Halves, Halves]:
    """Emit the split of the operands, extent by k, over the image of pairs, and the product.

    What they return has the flags of what triples do not hold. Where pairs hold all, both return at once.
    """
    pack, product = configs
    sources, reals = distinct(*operands), launches.dtype.reals_per_element
    flag_word = word_behind(powers, operands[0].cols)
    halves = _emit_split(launches, pack, sources, pairs, flag_word, target)
    left, right = halves
    c, alpha, beta = target.c, target.alpha, target.beta
    rows, ldc, step = (reals * count for count in (c.rows, c.col_stride, c.batch_stride))
    tiles = product.grid(c.rows, c.cols, target.region, reals) * c.batch
    flags = *(x.flags for x in pairs), left.flags, right.flags
    options = target.options(launches, raster=RASTER)
    k, of_panel = left.image.k, pairs[0].image.flags_of_panel
    integers = rows, c.cols, k, options, tiles, of_panel, left.panels, right.panels, ldc, step
    of_one = tuple(x._replace(batch=1) for x in (left.halves, right.halves, *flags, flag_word, c))
    blocks = product.blocks(current(launches.device).sm_count, tiles)
    kernel = family_of(product.STEM).source(product)
    launches.emit(kernel, blocks, of_one, lambda *_: integers, (alpha, beta))
    return halves


def _emit_split(
    launches: LaunchList,
    pack: Any,
    sources: list[Operand],
    pairs: tuple[Halves, Halves],
    flag_word: Operand,
    target: Target,
) -> tuple[Halves, Halves]:
    left, right = sources
    images = _images(pack, (pairs[0].image.extent, pairs[1].image.extent), pairs[0].image.k)
    units_a = images[0].flags * left.batch
    units = units_a + images[1].flags * right.batch
    flags = launches.scratch(-(-units // launches.dtype.reals_per_element), 1, 1, unit=4)
    image, words = pairs[0].halves._replace(batch=1), (pack.words, 0, 1)
    options = [
        target.options_of_source(x, is_left) for x, is_left in zip(sources, (True, False), strict=True)
    ]
    integers = (
        *(images[0].extent, images[1].extent, images[0].k, *options, units_a, units),
        *(left.row_stride, left.col_stride, left.batch_stride),
        *(right.row_stride, right.col_stride, right.batch_stride),
    )
    blocks = min(units, pack.min_blocks * current(launches.device).sm_count)
    operands = *(x.matrices(0, 1) for x in sources), image, flags, flag_word
    kernel = family_of(pack.STEM).source(pack)
    launches.emit(kernel, blocks, operands, lambda *_: integers, ())
    begins, made = (0, units_a), [image, flags, flags]
    first, second = (halves_of(*each, made, words) for each in zip(images, sources, begins, strict=True))
    return first, second
