"""Operands of products on tensor cores, split and packed, and the options of such a product."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dispatch.gemm import raster_of
from ...gpu.device import current
from ...kernels.common.options import STRICT, options_of, options_of_factor
from ...kernels.gemm.wgmma.image import Image
from ...kernels.gemm.wgmma.tiles import ROW_PAIRS
from ...operands import Operand
from ...types import DTYPES, Region, Triangle
from ..launch_list import LaunchList

__all__ = ["RASTER", "Halves", "Target", "distinct", "halves_of", "is_one"]

#: Rows of clusters' tiles of a column in which C is rasterized, where nothing sets another number: what a
#: wave reads of A and of B is about as much.
RASTER = 4
WORD = DTYPES["s"]  # as large as what the parts of an image are counted in


class Halves(NamedTuple):
    """An operand in the workspace as pairs of FP16: images, scales and flags of a batch."""

    image: Image
    halves: Operand
    scales: Operand
    flags: Operand

    @property
    def panels(self) -> int:
        """Panels from one matrix to the next: none where all are one."""
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
        """Return the options of a launch: the order of tiles, the region of C and of factors, conjugated
        sums.
        """
        requested = raster_of(launches.dtype, current(launches.device))
        in_pairs = launches.dtype.is_complex and self.region is not Region.ALL
        of_c = options_of(self.region, conj, raster=requested or raster) | ROW_PAIRS * in_pairs
        return of_c | options_of_factor(self.triangle, self.strict)

    def options_of_source(self, source: Operand, is_left: bool) -> int:
        """Return the options of the launch that packs a factor, extent by k."""
        region = Region.ALL
        if self.triangle is not None and self.triangle.on_left == is_left:
            uplo = self.triangle.uplo if is_left else self.triangle.uplo.flipped
            strict = STRICT * self.strict
            return options_of(Region.of(uplo), by_rows=source.by_rows) | strict
        return options_of(region, by_rows=source.by_rows, conj=source.conj)


def is_one(a: Operand, b: Operand) -> bool:
    """Whether A and B transposed are one operand, as in a rank-k update."""
    return (a.pointer, a.layout) == (b.pointer, b.T.layout)


def distinct(a: Operand, b: Operand) -> list[Operand]:
    """Two operands; a batch of one matrix, again and again, is one."""
    return [x if x.batch_stride else x.matrices(0, 1) for x in (a, b)]


def halves_of(image: Image, source: Operand, begin: int, memories: list[Operand], words: tuple) -> Halves:
    """Return the halves of an operand in units from `begin` on; `words` of each."""
    sizes = image.halves, image.scales, image.flags
    parts = (
        memory._replace(
            pointer=memory.pointer + 4 * count * begin,
            rows=size,
            batch=source.batch,
            batch_stride=size,
            dtype=WORD,
        )
        for memory, count, size in zip(memories, words, sizes, strict=True)
    )
    return Halves(image, *parts)
