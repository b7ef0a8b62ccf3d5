"""C := alpha A B + beta C of float64 or complex128 on INT8 tensor cores: integers modulo small numbers, and
their combination.

Each block of C has scales of rows of A and columns of B, their residues packed, and a check of which tiles
are served within FP64's bound. Then there are residues of the product, C of them, and the other tiles by
FMAs. Which are which the device alone finds out.

Of a triangle of C only its tiles are computed and kept. Operands of which not all fits are taken by rows of
blocks, of each first what is off the diagonal:

    [A11        ]      A11 and A21 are one block, packed once where both factors are one operand,
    [A21 A22    ]      so are A22 and A32 with them; in the next row of blocks A31 and A32 are ordinary
    [A31 A32 A33]      products, whose columns are packed anew
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dispatch.gemm import raster_of
from ...dispatch.split_k import tile_schedule_of
from ...dispatch.tensor import Int8Product
from ...gpu.device import current
from ...kernels.common.options import options_of
from ...kernels.gemm.form import relative_conjugation
from ...kernels.gemm.int8.guarded import GemmInt8Guarded
from ...kernels.gemm.int8.image import FACTS, Image
from ...kernels.gemm.int8.sample_pairs import BLOCKS
from ...kernels.registry import family_of
from ...operands import Operand
from ...types import Region
from ..copies import emit_scale
from ..launch_list import LaunchList
from .halves import RASTER, is_one

__all__ = [
    "ProductMemory",
    "ProductTarget",
    "Residues",
    "emit_block",
    "emit_combined",
    "emit_images",
    "emit_int8",
    "emit_packed",
    "emit_real_diagonal",
    "emit_residues",
    "emit_verdicts",
    "new_memory",
    "new_residues",
]


SHARE = 4  # tiles of one image that take about as long as a tile by FMAs


class Residues(NamedTuple):
    """Rows of an operand, extent by k, and what is made of them in the workspace: images, and facts of rows.

    The rows begin at the row `begin` of the `image`.
    """

    operand: Operand
    image: Image
    images: Operand
    facts: Operand
    begin: int = 0

    def rows_from(self, first: int, count: int) -> Residues:
        """Return the residues of some rows, from the beginning of a panel on."""
        facts = self.facts._replace(pointer=self.facts.pointer + 8 * first)
        operand = self.operand.block(first, 0, count, self.operand.cols)
        return self._replace(operand=operand, facts=facts, begin=self.begin + first)


class ProductTarget(NamedTuple):
    """alpha A B + beta C of `region` of one matrix C."""

    alpha: Any
    beta: Any
    c: Operand
    region: Region

    def part(self, row: int, col: int, rows: int, cols: int, region: Region) -> ProductTarget:
        """Return `region` of a block of C."""
        return self._replace(c=self.c.block(row, col, rows, cols), region=region)


class ProductMemory(NamedTuple):
    """Workspace of a product: flags of tiles, and residues of all moduli."""

    flags: Operand
    residues: Operand


def emit_int8(
    launches: LaunchList,
    how: Int8Product,
    alpha: Any,
    a: Operand,
    b: Operand,
    beta: Any,
    c: Operand,
    region: Region = Region.ALL,
) -> None:
    """Emit the product of `region` of C; C is column-major, A and B have contiguous columns or rows."""
    is_real = region.hermitian and c.dtype.is_complex
    for i in range(c.batch):
        left, right = a.matrices(i, 1), b.matrices(i, 1).T
        target = ProductTarget(alpha, beta, c.matrices(i, 1), region)
        if is_real and beta != 0:
            emit_real_diagonal(launches, target.c)
        with launches.temporary():
            verdicts = emit_verdicts(launches, how, left, right)
            emit_region = _emit_all if region is Region.ALL else _emit_triangle
            emit_region(launches, how, left, right, target, verdicts)
        if is_real:
            emit_real_diagonal(launches, target.c)


def emit_verdicts(launches: LaunchList, how: Int8Product, a: Operand, b: Operand) -> Operand | None:
    """Emit what samples operands extent by k, in large products."""
    if how.sampler is None:
        return None
    verdicts = _words(launches, BLOCKS)
    options = (options_of(by_rows=x.by_rows) for x in (a, b))
    steps = (step for x in (a, b) for step in (x.row_stride, x.col_stride))
    integers = a.rows, b.rows, a.cols, *options, *steps
    kernel = family_of(how.sampler.STEM).source(how.sampler)
    launches.emit(kernel, BLOCKS, (a, b, verdicts), lambda *_: integers, ())
    return verdicts


def _emit_all(
    launches: LaunchList,
    how: Int8Product,
    a: Operand,
    b: Operand,
    target: ProductTarget,
    verdicts: Operand | None,
) -> None:
    """Emit the product of operands extent by k. B is packed for each row of blocks."""
    for row in range(0, a.rows, how.rows):
        rows = min(how.rows, a.rows - row)
        with launches.temporary():
            of_a = new_residues(launches, how, a.block(row, 0, rows, a.cols))
            for col in range(0, b.rows, how.cols):
                cols = min(how.cols, b.rows - col)
                with launches.temporary():
                    of_b = new_residues(launches, how, b.block(col, 0, cols, b.cols))
                    emit_residues(launches, how, verdicts, *(() if col else (of_a,)), of_b)
                    part = target.part(row, col, rows, cols, Region.ALL)
                    emit_block(launches, how, of_a, of_b, part, verdicts)


def _emit_triangle(
    launches: LaunchList,
    how: Int8Product,
    a: Operand,
    b: Operand,
    target: ProductTarget,
    verdicts: Operand | None,
) -> None:
    """Emit a triangle of the product of operands extent by k, by rows of blocks; an upper one by columns."""
    is_upper, one = target.region.is_upper, is_one(a, b.T)
    long, across = (b, a) if is_upper else (a, b)

    def emit_part(of_long: Residues, of_across: Residues, at: int, at_across: int, region: Region) -> None:
        length, count = of_long.operand.rows, of_across.operand.rows
        if is_upper:
            part = target.part(at_across, at, count, length, region)
            emit_block(launches, how, of_across, of_long, part, verdicts)
        else:
            part = target.part(at, at_across, length, count, region)
            emit_block(launches, how, of_long, of_across, part, verdicts)

    def packed(source: Operand, first: int, count: int) -> Residues:
        made = new_residues(launches, how, source.block(first, 0, count, source.cols))
        emit_residues(launches, how, verdicts, made)
        return made

    for row in range(0, long.rows, how.rows):
        end, before = min(row + how.rows, long.rows), min(row, across.rows)
        with launches.temporary():
            of_long = packed(long, row, end - row)
            for col in range(0, before, how.cols):
                with launches.temporary():
                    of_across = packed(across, col, min(how.cols, before - col))
                    emit_part(of_long, of_across, row, col, Region.ALL)
            for col in range(before, min(end, across.rows), how.cols):
                cols = min(how.cols, min(end, across.rows) - col)
                with launches.temporary():
                    below = of_long.rows_from(col - row, end - col)
                    of_across = below.rows_from(0, cols) if one else packed(across, col, cols)
                    emit_part(below, of_across, col, col, target.region)


def emit_real_diagonal(launches: LaunchList, c: Operand) -> None:
    """Emit zeros as imaginary parts of a diagonal, of which sums of residues know nothing."""
    count, step = min(c.rows, c.cols), c.row_stride + c.col_stride
    diagonal = c.block(0, 0, 1, 1)._replace(batch=count, batch_stride=step)
    emit_scale(launches, 1.0, diagonal, zero=False, region=Region.HERMITIAN_LOWER)


def new_residues(launches: LaunchList, how: Int8Product, operand: Operand) -> Residues:
    """The workspace of an operand, extent by k."""
    image = how.pack.image(operand.rows, operand.cols)
    facts = _words(launches, 2 * FACTS * image.rows)
    images = _words(launches, image.all_words(how.pack.images, how.pack.sample))
    return Residues(operand, image, images, facts)


def emit_residues(
    launches: LaunchList, how: Int8Product, verdicts: Operand | None, *sources: Residues
) -> None:
    """Emit what packs one operand, or two; images may have more k than these, behind those. An operand with
    fewer has whole stages of digits.
    """
    first, last, is_pair = sources[0], sources[-1], len(sources) > 1
    pair = first, last
    options = [options_of(by_rows=x.operand.by_rows, conj=x.operand.conj) for x in pair]
    steps = [step for x in pair for step in (x.operand.row_stride, x.operand.col_stride)]
    operands, facts = [x.operand for x in pair], [x.facts for x in pair]
    rows = [x.image.rows for x in sources]
    units = [how.pack.grid(how.pack.image(x.operand.rows, x.operand.cols)) for x in sources]
    extents = first.image.extent, last.image.extent, first.operand.cols, *options
    places = first.image.rows, last.image.rows, first.image.stages, 0, 0
    arrays, judges = (*operands, *facts), (0 if verdicts is None else BLOCKS,)
    for config, blocks, of_first, images, more in (
        (how.scales, how.scales.grid(sum(rows)), rows[0], (verdicts or first.images,), judges),
        (how.pack, sum(units), units[0], (first.images, last.images), places),
    ):
        of_a = of_first if is_pair else 0  # else the second alone is packed
        integers = *extents, of_a, *more, *steps
        kernel = family_of(config.STEM).source(config)
        launches.emit(kernel, blocks, (*arrays, *images), lambda *_, values=integers: values, ())


def emit_packed(launches: LaunchList, how: Int8Product, rows: Residues, first: int = 0) -> None:
    """Emit the residues of some rows of an image, whose facts are there, from the stage `first` on."""
    source, image, part = rows.operand, rows.image, how.pack.image(rows.operand.rows, rows.operand.cols)
    options = options_of(by_rows=source.by_rows, conj=source.conj)
    extents, steps = (
        (part.extent, part.extent, part.k, options, options, 0),
        (source.row_stride, source.col_stride),
    )
    integers = *extents, image.rows, image.rows, image.stages, rows.begin, first, *steps, *steps
    operands = source, source, rows.facts, rows.facts, rows.images, rows.images
    kernel = family_of(how.pack.STEM).source(how.pack)
    launches.emit(kernel, how.pack.grid(part), operands, lambda *_: integers, ())


def _words(launches: LaunchList, count: int) -> Operand:
    """Scratch for `count` words of 4 bytes."""
    return launches.scratch(-(-count * 4 // launches.dtype.itemsize), 1, 1)


def new_memory(launches: LaunchList, how: Int8Product, slots: int) -> ProductMemory:
    """The workspace of a product that keeps `slots` tiles."""
    config = how.choice.config
    flags = _words(launches, slots * config.flags_of_tile)
    return ProductMemory(flags, _words(launches, slots * config.words_of_tile * config.images))


def emit_block(
    launches: LaunchList,
    how: Int8Product,
    a: Residues,
    b: Residues,
    target: ProductTarget,
    verdicts: Operand | None,
    factors: tuple[Operand, Operand] | None = None,
) -> None:
    """Emit a block of C, of rows of A and of columns of B whose residues are there; FMAs read them in
    `factors`, extent by k, where their k is not in the order of the residues.
    """
    config, c, region = how.choice.config, target.c, target.region
    memory = new_memory(launches, how, config.tiles(c.rows, c.cols, region))
    emit_images(launches, how, a, b, memory, region, (config.images, 1), verdicts)
    emit_images(launches, how, a, b, memory, region, (0, config.images), verdicts)
    emit_combined(launches, how, a, b, memory, target)
    of_a, of_b = factors or (a.operand, b.operand)
    _emit_guarded(launches, how, of_a, of_b.T, memory.flags, target, verdicts)


def emit_combined(
    launches: LaunchList,
    how: Int8Product,
    a: Residues,
    b: Residues,
    memory: ProductMemory,
    target: ProductTarget,
) -> None:
    """Emit C of the residues of a product."""
    c, region = target.c, target.region
    kernel, blocks = family_of(how.combine.STEM).source(how.combine), how.combine.grid(c.rows, c.cols, region)
    integers = c.rows, c.cols, options_of(region), a.image.rows, b.image.rows, c.col_stride
    operands = memory.residues, a.facts, b.facts, memory.flags, c
    launches.emit(kernel, blocks, operands, lambda *_: integers, (target.alpha, target.beta))


def _emit_guarded(
    launches: LaunchList,
    how: Int8Product,
    a: Operand,
    b: Operand,
    flags: Operand,
    target: ProductTarget,
    verdicts: Operand | None,
) -> None:
    """Emit the product of the tiles that are left. Where samples leave all of them, some are shared."""
    config, c, region = how.guarded, target.c, target.region
    lda, ldb = a.leading_dimension(config.trans_a), b.leading_dimension(config.trans_b)
    conj, conj_sums = relative_conjugation(a.conj, b.conj)
    options = _options(launches, region, 0) | options_of(conj=conj_sums)
    tiles, shared, partials, ready = config.grid(c.rows, c.cols, region), NOTHING_SHARED, c, c
    judges = 0 if verdicts is None else BLOCKS
    if judges and region is Region.ALL:
        shared = _shared_tiles(launches, config, tiles, a.cols)
    if shared.blocks:
        partials, ready = launches.scratch(config.BLK_M, config.BLK_N, shared.blocks), launches.flags()
    integers = c.rows, c.cols, a.cols, options, int(conj), judges, *shared, lda, ldb, c.col_stride
    operands = flags, verdicts or flags, a, b, c, partials._replace(batch=1), ready._replace(batch=1)
    kernel, scalars = family_of(config.STEM).source(config), (target.alpha, target.beta)
    launches.emit(kernel, tiles + shared.blocks, operands, lambda *_: integers, scalars)


class SharedTiles(NamedTuple):
    """The first tiles of a product that blocks of a launch share: `TileSchedule` without full waves."""

    blocks: int
    tiles: int
    k_iters_per_block: int
    remainder: int


NOTHING_SHARED = SharedTiles(0, 0, 0, 0)


def _shared_tiles(launches: LaunchList, config: GemmInt8Guarded, tiles: int, k: int) -> SharedTiles:
    """The tiles of the last one to two waves, where not all multiprocessors have one in the last."""
    device = current(launches.device)
    schedule = tile_schedule_of(config.sharing, tiles, k, device, True, launches.tiles_per_block)
    if schedule is None or not schedule.k_iters_per_block:
        return NOTHING_SHARED
    left = tiles - schedule.full_waves * schedule.blocks
    return SharedTiles(schedule.blocks, left, schedule.k_iters_per_block, schedule.remainder)


def emit_images(
    launches: LaunchList,
    how: Int8Product,
    a: Residues,
    b: Residues,
    memory: ProductMemory,
    region: Region,
    images: tuple[int, int],
    verdicts: Operand | None = None,
) -> None:
    """Emit the product of some images, of which `images` are the first and the number: that of digits, which
    flags tiles, or of moduli. Images may have more k than the operands, behind those.
    """
    config, extents, k = how.choice.config, (a.operand.rows, b.operand.rows), a.operand.cols
    kernel, options = family_of(config.STEM).source(config), _options(launches, region, RASTER)
    tiles = config.grid(*extents, region)
    operands = a.images, b.images, a.facts, b.facts, memory.flags, memory.residues, verdicts or memory.flags
    places = a.begin, b.begin, a.image.rows, b.image.rows, a.image.stages
    slots, judges = config.tiles(*extents, region), 0 if verdicts is None else BLOCKS
    integers = *extents, k, options, tiles, *images, slots, *places, judges
    blocks = launches.persistent_blocks(config, tiles * images[1], SHARE)
    launches.emit(kernel, blocks, operands, lambda *_: integers, ())


def _options(launches: LaunchList, region: Region, raster: int) -> int:
    """The order of tiles and the triangle, as options of a launch."""
    requested = raster_of(launches.dtype, current(launches.device))
    return options_of(region, raster=requested or raster)
