"""C := alpha A B + beta C. Transposition and conjugation are views of A and B.

A product with few tiles of C and a long k may be split along k: the products of all chunks of k are one
batch into scratch, and `sum_partials` adds them up in their order. Or the blocks of a persistent kernel part
the last tiles between them, and `sum_pieces` adds up the pieces. A and B may be packed first, so that how
they lie no longer matters. `tuning.select` decides when.
"""

from __future__ import annotations

from ..gpu.device import current
from ..kernels import gemm_mma, gemm_tile, sum_partials, sum_pieces
from ..kernels.gemm_config import GemmConfig
from ..kernels.sum_pieces import SumPieces
from ..kernels.walk import Walk
from ..operands import Operand
from ..tuning.select import Choice, select
from ..tuning.splits import STREAMED, walk_of
from .copy import record_copy, record_pack, record_scale
from .pack import record_packed
from .tape import ALPHA, BETA, Tape, recorded

__all__ = ["fitted", "gemm", "record", "record_beta", "record_gemm", "tape"]

_SOURCES = {family.STEM: family.source for family in (gemm_mma, gemm_tile)}


def gemm(alpha, a: Operand, b: Operand, beta, c: Operand, stream: int) -> None:
    """Enqueue C := alpha A B + beta C on `stream`.

    Parameters
    ----------
    alpha, beta : number
        alpha = 0 reads neither A nor B, beta = 0 does not read C.
    a, b, c : Operand
        m x k, k x n and m x n, of one dtype, with one batch (A or B may repeat one matrix by a batch
        stride of 0), on one device. C overlaps neither A nor B.
    stream : int
        Handle of the stream.
    """
    found = tape(alpha, a, b, beta, c)
    if found is not None:
        found.run((a.pointer, b.pointer, c.pointer), alpha, beta, stream=stream)


def tape(alpha, a: Operand, b: Operand, beta, c: Operand) -> Tape | None:
    """What `gemm` runs, for operands that lie like these and scalars that are zero, one like these.

    None where there is nothing to do.
    """
    if c.is_empty:
        return None
    if alpha == 0 or a.cols == 0:
        return None if beta == 1 else recorded(record_beta, (a, b, c), (beta == 0,))
    return recorded(record, (a, b, c), (beta == 0,))


def record_beta(tape: Tape, a: Operand, b: Operand, c: Operand, overwrite: bool) -> None:
    """Record C := beta C, where A B is nothing; `overwrite` says that beta is zero."""
    record_scale(tape, BETA, c, zero=overwrite)


def record(tape: Tape, a: Operand, b: Operand, c: Operand, overwrite: bool) -> None:
    """Record the whole call; `overwrite` says that beta is zero."""
    record_gemm(tape, ALPHA, a, b, 0.0 if overwrite else BETA, c)


def record_gemm(tape: Tape, alpha, a: Operand, b: Operand, beta, c: Operand) -> None:
    """Record C := alpha A B + beta C; `alpha` and `beta` are ALPHA, BETA or numbers."""
    a, b, c = _upright(a, b, c)
    if not _contiguous(c) and _contiguous(c.T):
        # C' = B' A': a row-major C is a column-major one of the transposed product
        a, b, c = b.T, a.T, c.T
    with tape.temporary():
        if _contiguous(c):
            _record_dense(tape, alpha, a, b, beta, c)
            return
        packed = tape.scratch(c.rows, c.cols, c.batch)
        if beta != 0:
            record_copy(tape, 1.0, c, packed)
        _record_dense(tape, alpha, a, b, beta, packed)
        record_copy(tape, 1.0, packed, c)


def _upright(a: Operand, b: Operand, c: Operand) -> tuple[Operand, Operand, Operand]:
    """The same product with dimensions that run backwards in C, or in both A and B, turned round."""
    if c.row_stride < 0:
        a, c = a.flip(rows=True), c.flip(rows=True)
    if c.col_stride < 0:
        b, c = b.flip(cols=True), c.flip(cols=True)
    if a.col_stride < 0 and b.row_stride < 0:
        a, b = a.flip(cols=True), b.flip(rows=True)
    return a, b, c


def _contiguous(operand: Operand) -> bool:
    """Whether rows are adjacent in memory, at addresses that elements can have."""
    return (operand.row_stride == 1 or operand.rows == 1) and operand.pointer % operand.dtype.itemsize == 0


def _record_dense(tape: Tape, alpha, a: Operand, b: Operand, beta, c: Operand) -> None:
    """The product with C column-major: A and B copied or packed if need be, packed or k split if faster."""
    copied_a, copied_b = (not (_contiguous(x) or _contiguous(x.T)) for x in (a, b))
    layout = "nt"[not (copied_a or _contiguous(a))] + "nt"[not (copied_b or _contiguous(b))]
    extents = c.rows, c.cols, a.cols, c.batch
    choice = select("gemm", tape.dtype, layout, extents, current(tape.device), (copied_a, copied_b))
    tape.choices.append(choice)
    if choice.config.packed:
        _record_of_packed(tape, choice, alpha, a, b, beta, c)
        return
    a = record_pack(tape, a) if copied_a else a
    b = record_pack(tape, b) if copied_b else b
    if choice.splits in (1, STREAMED):
        _record_product(tape, choice.config, alpha, a, b, beta, c, choice.splits == STREAMED)
    else:
        _record_split(tape, choice, alpha, a, b, beta, c)


def _record_of_packed(tape: Tape, choice: Choice, alpha, a: Operand, b: Operand, beta, c: Operand) -> None:
    """A and B packed, with what of op() is left to do, and their product."""
    config = choice.config
    packed = [record_packed(tape, x, how) for x, how in zip((a, b.T), config.packings, strict=True)]
    leads = tuple(x.packing.steps(x.extent, x.k).tile for x in packed)
    left, right = (x.memory for x in packed)
    _record_kernel(tape, config, leads, a.cols, alpha, left, right, beta, c, choice.splits == STREAMED)


def _record_split(tape: Tape, choice: Choice, alpha, a: Operand, b: Operand, beta, c: Operand) -> None:
    """Chunks of k as one batch, what they leave over as a product of its own, and their sum."""
    config, splits = choice.config, choice.splits
    depth, rest = sum_partials.cut(a.cols, splits, tape.dtype)
    partials = tape.scratch(c.rows, c.cols, splits + (rest > 0))
    chunks_a = a._replace(cols=depth, batch=splits, batch_stride=depth * a.col_stride)
    chunks_b = b._replace(rows=depth, batch=splits, batch_stride=depth * b.row_stride)
    _record_product(tape, config, 1.0, chunks_a, chunks_b, 0.0, partials.matrices(0, splits))
    if rest:
        done = splits * depth
        rest_a, rest_b = a.block(0, done, a.rows, rest), b.block(done, 0, rest, b.cols)
        _record_product(tape, config, 1.0, rest_a, rest_b, 0.0, partials.matrices(splits, 1))
    _record_sum(tape, alpha, partials, beta, c)


def _record_sum(tape: Tape, alpha, partials: Operand, beta, c: Operand) -> None:
    """C := alpha * (the sum of the batch) + beta C."""
    found = select(sum_partials.STEM, tape.dtype, "", (c.rows, c.cols), current(tape.device)).config
    config, count = found.serving(partials.batch), partials.batch

    def integers(first: Operand, c: Operand) -> tuple:
        return c.rows, c.cols, count, first.col_stride, c.col_stride, first.batch_stride

    blocks = config.grid(partials.col_stride, c.cols)
    tape.launch(sum_partials.source(config), blocks, (partials.matrices(0, 1), c), integers, (alpha, beta))


def _record_product(
    tape: Tape, config: GemmConfig, alpha, a: Operand, b: Operand, beta, c: Operand, streamed: bool = False
) -> None:
    """The product with A and B that lie as `config` has it; `streamed`: tiles may be parted."""
    config = fitted(config, a, b)
    lead_a = a.row_stride if config.trans_a else a.col_stride
    lead_b = b.row_stride if config.trans_b else b.col_stride
    _record_kernel(tape, config, (lead_a, lead_b), a.cols, alpha, a, b, beta, c, streamed)


def _record_kernel(
    tape: Tape,
    config: GemmConfig,
    leads: tuple[int, ...],
    k: int,
    alpha,
    a: Operand,
    b: Operand,
    beta,
    c: Operand,
    streamed: bool,
) -> None:
    """The launch, and that of the sum of the pieces; `leads` are the strides of A, B that are not 1."""
    kernel = _SOURCES[config.STEM](config, a.conj, b.conj)

    def integers(a: Operand, b: Operand, c: Operand, *_) -> tuple:
        walked = walk[1:] if walk else ()
        strides = (*leads, c.col_stride, a.batch_stride, b.batch_stride, c.batch_stride)
        return c.rows, c.cols, k, *walked, *strides

    walk = walk_of(config, (c.rows, c.cols, k, c.batch), current(tape.device), streamed)
    if walk is None:
        tape.launch(kernel, config.grid(c.rows, c.cols), (a, b, c), integers, (alpha, beta))
        return
    # the blocks walk over the whole batch, so the launch is that of one matrix
    one_a, one_b, one_c = (x._replace(batch=1) for x in (a, b, c))
    pieces = tape.scratch(config.BLK_M, config.BLK_N, walk.blocks)._replace(batch=1) if walk.run else one_c
    tape.launch(kernel, walk.blocks, (one_a, one_b, one_c, pieces), integers, (alpha, beta))
    if walk.run:
        _record_pieces(tape, config, walk, -(-k // config.BLK_K), alpha, pieces, one_c)


def _record_pieces(
    tape: Tape, config: GemmConfig, walk: Walk, stripes: int, alpha, pieces: Operand, c: Operand
) -> None:
    """C += alpha * (the sum of a tile's pieces), where a tile was parted."""
    adding = SumPieces(dtype=config.dtype, BLK_M=config.BLK_M, BLK_N=config.BLK_N)

    def integers(pieces: Operand, c: Operand) -> tuple:
        blocks, _, *runs = walk
        return c.rows, c.cols, stripes, blocks, *runs, c.col_stride, c.batch_stride

    tape.launch(sum_pieces.source(adding), adding.grid(walk), (pieces, c), integers, (alpha,))


def fitted(config: GemmConfig, a: Operand, b: Operand) -> GemmConfig:
    """`config` with scalar loads of what of `a` and `b`, which lie as it has it, is not aligned enough.

    One for packed operands stays as it is.
    """
    if config.packed:
        return config
    return config.unaligned(
        a=not _vectors(a.T if config.trans_a else a, config.VEC_A, config.stages),
        b=not _vectors(b.T if config.trans_b else b, config.VEC_B, config.stages),
    )


def _vectors(operand: Operand, width: int, stages: int) -> bool:
    """Whether a column-major `operand` can be read `width` elements at a time.

    Asynchronous copies stop short at the end of a column; loads into registers cannot.
    """
    size = width * operand.dtype.itemsize
    whole = stages > 1 or operand.rows % width == 0
    strides = (operand.col_stride, operand.batch_stride)
    return whole and operand.pointer % size == 0 and not any(stride % width for stride in strides)
