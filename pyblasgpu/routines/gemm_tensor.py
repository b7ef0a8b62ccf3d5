"""C := alpha A B + beta C of float32 on tensor cores: operands split into pairs of FP16, and their product.

Three launches: A and B split and packed, the product of the tiles that pairs serve within FP32's bound, and
that of the others by FMAs. Which are which the device alone finds out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dispatch.raster import raster_of
from ..dispatch.tensor import TensorProduct
from ..gpu.device import current
from ..kernels.common.options import options_of
from ..kernels.gemm.form import Form, relative_conjugation
from ..kernels.gemm.wgmma.image import Image
from ..kernels.registry import family_of
from ..operands import Operand
from ..types import DTYPES, Region
from .launch_list import LaunchList

__all__ = ["emit_tensor"]

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


class Scaled(NamedTuple):
    """alpha A B + beta C of `region` of C."""

    alpha: Any
    beta: Any
    c: Operand
    region: Region


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
    left, right = _emit_halves(launches, how, a, None if is_one else b.T)
    target = Scaled(alpha, beta, c, region)
    _emit_product(launches, how, left, right, target)
    _emit_guarded(launches, how, (a, left), (b, right), target)


def _emit_halves(
    launches: LaunchList, how: TensorProduct, a: Operand, b: Operand | None
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
    options = [options_of(by_rows=x.by_rows, conj=x.conj) for x in sources]
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


def _emit_product(launches: LaunchList, how: TensorProduct, a: Halves, b: Halves, target: Scaled) -> None:
    """Emit the product of all tiles that pairs serve; its blocks walk over the whole batch."""
    config, (alpha, beta, c, region) = how.choice.config, target
    reals = launches.dtype.reals_per_element
    rows, lead, step = (reals * count for count in (c.rows, c.col_stride, c.batch_stride))
    tiles = config.grid(rows, c.cols, region) * c.batch
    operands = a.halves, b.halves, a.scales, b.scales, a.flags, b.flags, c
    options = _options(launches, region, raster=RASTER)

    def integers(*of_one: Operand) -> tuple[int, ...]:
        return rows, c.cols, a.image.k, options, tiles, a.panels, b.panels, lead, step

    blocks = config.blocks(current(launches.device).sm_count, tiles)
    of_one = tuple(operand._replace(batch=1) for operand in operands)
    launches.emit(family_of(config.STEM).source(config), blocks, of_one, integers, (alpha, beta))


def _emit_guarded(
    launches: LaunchList,
    how: TensorProduct,
    left: tuple[Operand, Halves],
    right: tuple[Operand, Halves],
    target: Scaled,
) -> None:
    """Emit the product of the tiles that are left."""
    config, (alpha, beta, c, region) = how.guarded, target
    (a, of_a), (b, of_b) = left, right
    lead_a = a.row_stride if config.trans_a else a.col_stride
    lead_b = b.row_stride if config.trans_b else b.col_stride
    conj, conj_sums = relative_conjugation(a.conj, b.conj)
    options = _options(launches, region, conj_sums)

    def integers(flags_a: Operand, flags_b: Operand, a: Operand, b: Operand, c: Operand) -> tuple[int, ...]:
        flag_steps = flags_a.batch_stride, flags_b.batch_stride
        leads = lead_a, lead_b, c.col_stride
        batches = a.batch_stride, b.batch_stride, c.batch_stride
        return c.rows, c.cols, a.cols, options, of_a.image.flags_of_panel, *flag_steps, *leads, *batches

    operands = of_a.all_flags(c.batch), of_b.all_flags(c.batch), a, b, c
    kernel = family_of(config.STEM).source(config, Form.of(region), conj)
    launches.emit(kernel, config.grid(c.rows, c.cols, region), operands, integers, (alpha, beta))


def _options(launches: LaunchList, region: Region, conj: bool = False, raster: int = 0) -> int:
    """The order of tiles, the triangle of C that is meant, and conjugated sums, as options of a launch."""
    asked = raster_of(launches.dtype, current(launches.device))
    return options_of(region, conj, raster=asked or raster)
