"""C := alpha A B + beta C of float32 on tensor cores: operands split into pairs of FP16, and their product.

Four launches: A and B split and packed, the product of the tiles that pairs serve within FP32's bound, and
that of the others by FMAs. Which are which the device alone finds out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dispatch.raster import raster_of
from ..dispatch.tensor import TensorProduct
from ..gpu.device import current
from ..kernels.common.options import options_of
from ..kernels.gemm.form import Form
from ..kernels.gemm.wgmma.image import Image
from ..kernels.registry import family_of
from ..operands import Operand
from ..types import Region
from .launch_list import LaunchList

__all__ = ["emit_tensor"]


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
    """Emit the product of `region` of C; C is column-major, A and B have contiguous columns or rows."""
    left = _emit_halves(launches, how.pack_a, a, how)
    # as in a rank-k update
    is_one = how.pack_a == how.pack_b and (a.pointer, a.layout) == (b.pointer, b.T.layout)
    right = left if is_one else _emit_halves(launches, how.pack_b, b.T, how)
    target = Scaled(alpha, beta, c, region)
    _emit_product(launches, how, left, right, target)
    _emit_guarded(launches, how, (a, left), (b, right), target)


def _emit_halves(launches: LaunchList, config: Any, operand: Operand, how: TensorProduct) -> Halves:
    """Emit the split of an operand, extent by k; a batch of one matrix, again and again, is split once."""
    source = operand if operand.batch_stride else operand.matrices(0, 1)
    image = config.image(operand.rows, operand.cols)
    # without gaps between the matrices of a batch, whose panels are numbered all together
    words = image.halves, image.scales, image.flags
    made = [launches.scratch(count, 1, source.batch, unit=4) for count in words]
    options = options_of(by_rows=operand.by_rows)

    def integers(s: Operand, d: Operand, scales: Operand, flags: Operand) -> tuple[int, ...]:
        batches = s.batch_stride, d.batch_stride, scales.batch_stride, flags.batch_stride
        return s.rows, s.cols, options, s.row_stride, s.col_stride, *batches

    kernel = family_of(config.STEM).source(config)
    launches.emit(kernel, image.flags, (source, *made), integers, (how.least,))
    return Halves(image, *made)


def _emit_product(launches: LaunchList, how: TensorProduct, a: Halves, b: Halves, target: Scaled) -> None:
    """Emit the product of all tiles that pairs serve; its blocks walk over the whole batch."""
    config, (alpha, beta, c, region) = how.choice.config, target
    tiles = config.grid(c.rows, c.cols, region) * c.batch
    operands = a.halves, b.halves, a.scales, b.scales, a.flags, b.flags, c
    options = _options(launches, region)

    def integers(*of_one: Operand) -> tuple[int, ...]:
        return c.rows, c.cols, a.image.k, options, tiles, a.panels, b.panels, c.col_stride, c.batch_stride

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
    options = _options(launches, region)

    def integers(flags_a: Operand, flags_b: Operand, a: Operand, b: Operand, c: Operand) -> tuple[int, ...]:
        flag_steps = flags_a.batch_stride, flags_b.batch_stride
        leads = lead_a, lead_b, c.col_stride
        batches = a.batch_stride, b.batch_stride, c.batch_stride
        return c.rows, c.cols, a.cols, options, of_a.image.blocks, *flag_steps, *leads, *batches

    operands = of_a.all_flags(c.batch), of_b.all_flags(c.batch), a, b, c
    kernel = family_of(config.STEM).source(config, Form.of(region))
    launches.emit(kernel, config.grid(c.rows, c.cols, region), operands, integers, (alpha, beta))


def _options(launches: LaunchList, region: Region) -> int:
    """The order of tiles, and which triangle of C is meant, as the options of a launch tell it."""
    return options_of(region, raster=raster_of(launches.dtype, current(launches.device)))
