"""C := alpha A B + beta C of float32 on tensor cores: operands split into pairs of FP16, and their product.

Three launches: A and B split and packed, the product of the tiles that pairs serve within FP32's bound, and
that of the others by FMAs. Which are which the device alone finds out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dispatch.raster import raster_of
from ..dispatch.tensor import TensorProduct
from ..gpu.device import current
from ..kernels.common.options import STRICT, options_of, options_of_factor
from ..kernels.gemm.form import Form, relative_conjugation
from ..kernels.gemm.wgmma.image import Image
from ..kernels.registry import family_of
from ..operands import Operand
from ..types import DTYPES, Region, Triangle
from .launch_list import LaunchList

__all__ = ["Target", "emit_guarded", "emit_halves", "emit_product", "emit_tensor"]

WORD = DTYPES["s"]  # as large as what the parts of an image are counted in

#: Rows of clusters' tiles of a column in which C is rasterized, where nothing asks for another number: what a
#: wave reads of A and of B is about as much.
RASTER = 4


class Halves(NamedTuple):
    """An operand in the workspace as pairs of FP16: images, scales and flags of a batch."""

    image: Image
    halves: Operand
    scales: Operand
    flags: Operand

    @property
    def panels(self) -> int:
        """From one matrix to the next: none where all are one."""
        return self.image.panels if self.flags.batch > 1 else 0

    def all_flags(self, batch: int) -> Operand:
        """The flags, for each matrix of a batch."""
        flags = self.flags
        return flags if flags.batch == batch else flags._replace(batch=batch, batch_stride=0)


class Target(NamedTuple):
    """alpha A B + beta C of `region` of C; with a `triangle` one of the factors is one, without its diagonal
    if it is `strict`.
    """

    alpha: Any
    beta: Any
    c: Operand
    region: Region = Region.ALL
    triangle: Triangle | None = None
    strict: bool = False

    def options(self, launches: LaunchList, conj: bool = False, raster: int = 0) -> int:
        """Those of a launch: the order of tiles, what is meant of C and of factors, conjugated sums."""
        asked = raster_of(launches.dtype, current(launches.device))
        of_c = options_of(self.region, conj, raster=asked or raster)
        return of_c | options_of_factor(self.triangle, self.strict)

    def options_of_source(self, source: Operand, is_left: bool) -> int:
        """Those by which a factor is packed, extent by k."""
        region = Region.ALL
        if self.triangle is not None and self.triangle.on_left == is_left:
            uplo = self.triangle.uplo if is_left else self.triangle.uplo.flipped
            strict = STRICT * self.strict
            return options_of(Region.of(uplo), by_rows=source.by_rows) | strict
        return options_of(region, by_rows=source.by_rows, conj=source.conj)


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
    # as in a rank-k update; of complex operands the first is packed otherwise than the second
    is_one = not a.dtype.is_complex and (a.pointer, a.layout) == (b.pointer, b.T.layout)
    target = Target(alpha, beta, c, region)
    left, right = emit_halves(launches, how, a, None if is_one else b.T, target)
    emit_product(launches, how, left, right, target)
    emit_guarded(launches, how, (a, left), (b, right), target)


def emit_halves(
    launches: LaunchList, how: TensorProduct, a: Operand, b: Operand | None, target: Target
) -> tuple[Halves, Halves]:
    """Emit the split of A and of B transposed, extent by k, into one image; without B it is A.

    A batch of one matrix, again and again, is split once.
    """
    sources = [x if x.batch_stride else x.matrices(0, 1) for x in (a, b or a)]
    reals = launches.dtype.reals_per_element
    extents, k = (reals * a.rows, sources[1].rows), reals * a.cols
    images = [how.pack.image(extent, k) for extent in extents]
    begins = [0, images[0].flags * sources[0].batch if b else 0]
    units = begins[1] + images[1].flags * sources[1].batch
    words = how.pack.rows * how.pack.BLK_K, how.pack.rows, 1  # of a unit: image, scales, flag
    made = [launches.scratch(-(-units * count // reals), 1, 1, unit=4) for count in words]
    left, right = sources
    powers = _emit_powers(launches, how, left, right) if b else None
    options = [
        target.options_of_source(x, is_left) for x, is_left in zip(sources, (True, False), strict=True)
    ]
    units_a = begins[1] or units
    integers = (
        *(*extents, k, *options, units_a, powers.rows // 2 if powers else 0),
        *(left.row_stride, left.col_stride, left.batch_stride),
        *(right.row_stride, right.col_stride, right.batch_stride),
    )
    operands = *(x.matrices(0, 1) for x in sources), powers or made[1], *made
    kernel = family_of(how.pack.STEM).source(how.pack)
    launches.emit(kernel, units, operands, lambda *_: integers, (how.least,))
    first, second = (_halves(*each, made, words) for each in zip(images, sources, begins, strict=True))
    return first, second


def _emit_powers(launches: LaunchList, how: TensorProduct, a: Operand, b: Operand) -> Operand | None:
    """Emit the powers of two by which each k of A is multiplied, and of B divided; both extent by k."""
    config = how.equilibrate
    if config is None:
        return None
    a, b = a.matrices(0, 1), b.matrices(0, 1)
    powers = launches.scratch(2 * a.cols, 1, 1, unit=4)
    integers = a.rows, b.rows, a.cols, a.row_stride, a.col_stride, b.row_stride, b.col_stride
    kernel = family_of(config.STEM).source(config)
    launches.emit(kernel, config.grid(a.cols), (a, b, powers), lambda *_: integers, ())
    return powers


def _halves(image: Image, source: Operand, begin: int, made: list[Operand], words: tuple) -> Halves:
    """What the units from `begin` on hold of an operand; `words` of each."""
    sizes = image.halves, image.scales, image.flags
    parts = (
        whole._replace(
            pointer=whole.pointer + 4 * count * begin,
            rows=size,
            batch=source.batch,
            batch_stride=size,
            dtype=WORD,
        )
        for whole, count, size in zip(made, words, sizes, strict=True)
    )
    return Halves(image, *parts)


def emit_product(launches: LaunchList, how: TensorProduct, a: Halves, b: Halves, target: Target) -> None:
    """Emit the product of all tiles that pairs serve; its blocks walk over the whole batch."""
    config, alpha, beta, c, region = how.choice.config, target.alpha, target.beta, target.c, target.region
    reals = launches.dtype.reals_per_element
    rows, lead, step = (reals * count for count in (c.rows, c.col_stride, c.batch_stride))
    tiles = config.grid(rows, c.cols, region) * c.batch
    operands = a.halves, b.halves, a.scales, b.scales, a.flags, b.flags, c
    options = target.options(launches, raster=RASTER)

    def integers(*of_one: Operand) -> tuple[int, ...]:
        return rows, c.cols, a.image.k, options, tiles, a.panels, b.panels, lead, step

    blocks = config.blocks(current(launches.device).sm_count, tiles)
    of_one = tuple(operand._replace(batch=1) for operand in operands)
    launches.emit(family_of(config.STEM).source(config), blocks, of_one, integers, (alpha, beta))


def emit_guarded(
    launches: LaunchList,
    how: TensorProduct,
    left: tuple[Operand, Halves],
    right: tuple[Operand, Halves],
    target: Target,
) -> None:
    """Emit the product of the tiles that are left."""
    config, alpha, beta, c, region = how.guarded, target.alpha, target.beta, target.c, target.region
    (a, of_a), (b, of_b) = left, right
    lead_a = a.row_stride if config.trans_a else a.col_stride
    lead_b = b.row_stride if config.trans_b else b.col_stride
    conj, conj_sums = relative_conjugation(a.conj, b.conj)
    options = target.options(launches, conj_sums)

    def integers(flags_a: Operand, flags_b: Operand, a: Operand, b: Operand, c: Operand) -> tuple[int, ...]:
        flag_steps = flags_a.batch_stride, flags_b.batch_stride
        leads = lead_a, lead_b, c.col_stride
        batches = a.batch_stride, b.batch_stride, c.batch_stride
        flags = of_a.image.flags_of_panel, of_a.image.flags_of_grain
        return c.rows, c.cols, a.cols, options, *flags, *flag_steps, *leads, *batches

    operands = of_a.all_flags(c.batch), of_b.all_flags(c.batch), a, b, c
    kernel = family_of(config.STEM).source(config, Form.of(region), conj)
    launches.emit(kernel, config.grid(c.rows, c.cols, region), operands, integers, (alpha, beta))
