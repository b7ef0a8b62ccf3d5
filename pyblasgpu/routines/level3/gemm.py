"""C := alpha A B + beta C. Transposition and conjugation are views of A and B.

A product with few tiles of C and a long k may be split along k. The products of all slices of k are one batch
into scratch, and `split_k_reduce` adds them in their order. With stream-K the blocks of a persistent kernel
share the last tiles. A and B may be packed first, so that their layout no longer matters. `dispatch.choose`
decides when.

Of a square C a triangle may be meant: then blocks compute the tiles that it meets.
"""

from __future__ import annotations

from math import gcd
from typing import Any, NamedTuple

from ...database import families_of
from ...dispatch import overrides
from ...dispatch.choose import select
from ...dispatch.gemm import prefetches_c, raster_of
from ...dispatch.operand_copies import ALIGNED, match_alignment
from ...dispatch.overrides import Algorithm, method_of
from ...dispatch.split_k import STREAM_K, tile_schedule_of
from ...gpu.device import current
from ...kernels.common.options import options_of
from ...kernels.copy.slices import slices_of
from ...kernels.gemm.config import GemmConfig
from ...kernels.gemm.form import Form, relative_conjugation
from ...kernels.registry import family_of
from ...operands import Operand
from ...types import TENSOR, THREE_M, Region
from ..copies import emit_copy, emit_copy_to_workspace, emit_packed, launch_list_of_product
from ..launch_list import ALPHA, BETA, LaunchList

__all__ = [
    "alignments",
    "contiguous",
    "emit",
    "emit_gemm",
    "launch_list",
]


REDUCE = "split_k_reduce"


class GemmArguments(NamedTuple):
    """alpha A B + beta C of `region` of C; `alpha` and `beta` are ALPHA, BETA or numbers."""

    alpha: Any
    a: Operand
    b: Operand
    beta: Any
    c: Operand
    region: Region = Region.ALL
    method: str | None = None

    @property
    def transposed(self) -> GemmArguments:
        """C' = B' A'."""
        return self._replace(a=self.b.T, b=self.a.T, c=self.c.T, region=self.region.transposed)

    @property
    def positive_strides(self) -> GemmArguments:
        """The product with dimensions that run backwards in C, or in both A and B, reversed.

        A triangle stays as it is.
        """
        a, b, c, region = self.a, self.b, self.c, self.region
        if c.row_stride < 0 and region is Region.ALL:
            a, c = a.flip(rows=True), c.flip(rows=True)
        if c.col_stride < 0 and region is Region.ALL:
            b, c = b.flip(cols=True), c.flip(cols=True)
        if a.col_stride < 0 and b.row_stride < 0:
            a, b = a.flip(cols=True), b.flip(rows=True)
        return self._replace(a=a, b=b, c=c)

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """m, n, k and batch."""
        return self.c.rows, self.c.cols, self.a.cols, self.c.batch


def launch_list(
    alpha, a: Operand, b: Operand, beta, c: Operand, method: str | None = None
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, and for scalars that are 0 or 1 where these are.

    None where there is nothing to do.

    Parameters
    ----------
    alpha, beta : number
        alpha = 0 reads neither A nor B, beta = 0 does not read C.
    a, b, c : Operand
        m x k, k x n and m x n, of one dtype, on one device. They have one batch, of which A or B may repeat
        one matrix by a batch stride of 0. C overlaps neither A nor B.
    method : str, optional
        `THREE_M`, of complex products, or `TENSOR`.
    """
    return launch_list_of_product(emit, alpha, (a, b, c), a.cols, beta, method)


def emit(
    launches: LaunchList, a: Operand, b: Operand, c: Operand, overwrite: bool, method: str | None = None
) -> None:
    """Emit the whole call; `overwrite` says that beta is zero. With one column or row it is a GEMV."""
    beta = 0.0 if overwrite else BETA
    if 1 not in (c.rows, c.cols) or method == THREE_M or _is_product_asked_for():
        emit_gemm(launches, ALPHA, a, b, beta, c, method=method)
        return
    if method_of(method) == TENSOR:
        launches.choices.append(Algorithm("gemv", "products with a vector are not made on tensor cores"))
    from ..level2.gemv import emit_gemv  # with its kernel, which products do without

    if c.cols == 1:
        emit_gemv(launches, ALPHA, a, b, beta, c)
    else:
        emit_gemv(launches, ALPHA, b.T, a.T, beta, c.T)


def _is_product_asked_for() -> bool:
    """Whether an override says how products are computed."""
    names = {"layout", "packed", "splits", *families_of("gemm")}
    return any(name in names for name, _ in overrides.active())


def emit_gemm(
    launches: LaunchList,
    alpha,
    a: Operand,
    b: Operand,
    beta,
    c: Operand,
    region: Region = Region.ALL,
    method: str | None = None,
) -> None:
    """Emit C := alpha A B + beta C, of all of C or a triangle as `kernels.common.region` names them;
    `alpha` and `beta` are ALPHA, BETA or numbers.
    """
    product = GemmArguments(alpha, a, b, beta, c, region, method).positive_strides
    if not contiguous(product.c) and contiguous(product.c.T):
        product = product.transposed  # a row-major C is a column-major one of the transposed product
    c = product.c
    with launches.temporary():
        if contiguous(c):
            _emit_dense(launches, product)
            return
        packed = launches.scratch(c.rows, c.cols, c.batch)
        if beta != 0:
            emit_copy(launches, 1.0, c, packed, product.region)
        _emit_dense(launches, product._replace(c=packed))
        emit_copy(launches, 1.0, packed, c, product.region)


def contiguous(operand: Operand) -> bool:
    """Whether rows are adjacent in memory, at addresses that elements can have."""
    return (operand.row_stride == 1 or operand.rows == 1) and operand.pointer % operand.dtype.itemsize == 0


def _emit_dense(launches: LaunchList, product: GemmArguments) -> None:
    """The product with C column-major: A and B copied or packed and k split, if need be or faster."""
    a, b = product.a, product.b
    copied_a, copied_b = (not (contiguous(x) or contiguous(x.T)) for x in (a, b))
    layout = "nt"[not (copied_a or contiguous(a))] + "nt"[not (copied_b or contiguous(b))]
    copied, aligned = (copied_a, copied_b), alignments(layout, a, b)
    is_tensor = method_of(product.method) == TENSOR
    if is_tensor and _emit_on_tensor_cores(launches, product, layout, copied_a or copied_b):
        return
    workspace_limit, conjs = launches.workspace_left, (a.conj, b.conj)
    options = (
        copied,
        product.region,
        aligned,
        product.method == THREE_M,
        workspace_limit,
        conjs,
        product.beta != 0,
    )
    choice = select("gemm", launches.dtype, layout, product.extents, current(launches.device), *options)
    launches.choices.append(choice)
    config, splits = choice.config, choice.splits
    if config.packed:
        _emit_of_packed(launches, config, product, splits == STREAM_K)
        return
    copied_a, copied_b = choice.copied
    a = _copy(launches, a, config.trans_a) if copied_a else a
    b = _copy(launches, b, config.trans_b) if copied_b else b
    product = product._replace(a=a, b=b)
    if splits in (1, STREAM_K):
        _emit_product(launches, config, product, splits == STREAM_K)
    else:
        _emit_split(launches, config, product, splits)


def _emit_on_tensor_cores(launches: LaunchList, product: GemmArguments, layout: str, copied: bool) -> bool:
    """Emit the product on tensor cores of another precision: of FP16 in float32 and complex64, of INT8 in the
    others; False, and nothing emitted, where it is not for them.
    """
    from ...dispatch.tensor import Int8Product, TensorProblem, int8_product, tensor_product
    from .gemm_int8 import emit_int8  # with kernels that other products do without
    from .gemm_tensor import emit_tensor
    from .halves import is_one

    region = product.region
    device, one = current(launches.device), is_one(product.a, product.b)
    problem = TensorProblem(launches.dtype, layout, product.extents, device, copied, region, one)
    how = (int8_product if launches.dtype.real_size == 8 else tensor_product)(problem)
    if isinstance(how, Algorithm):
        launches.choices.append(how)
        return False
    launches.choices.append(how.choice)
    scaled = product.alpha, product.a, product.b, product.beta, product.c
    if isinstance(how, Int8Product):
        emit_int8(launches, how, *scaled, region)
    else:
        emit_tensor(launches, how, *scaled, region)
    return True


def _copy(launches: LaunchList, operand: Operand, by_rows: bool) -> Operand:
    """A copy of an operand in the workspace, its columns or rows contiguous."""
    return (
        emit_copy_to_workspace(launches, operand.T).T
        if by_rows
        else emit_copy_to_workspace(launches, operand)
    )


def _emit_of_packed(launches: LaunchList, config: GemmConfig, product: GemmArguments, stream_k: bool) -> None:
    """A and B packed, with what of op() is left to do, and their product."""
    packed = [
        emit_packed(launches, x, how)
        for x, how in zip((product.a, product.b.T), config.packings, strict=True)
    ]
    leading_dimensions = tuple(x.packing.stride(x.extent, x.k) for x in packed)
    left, right = (x.memory for x in packed)
    _emit_kernel(
        launches, config, product._replace(a=left, b=right), leading_dimensions, product.a.cols, stream_k
    )


def _emit_split(launches: LaunchList, config: GemmConfig, product: GemmArguments, splits: int) -> None:
    """Slices of k as one batch, of which the last may have less k, and their sum."""
    a, b, c = product.a, product.b, product.c
    depth, count = slices_of(a.cols, splits, launches.dtype)
    partials = launches.scratch(c.rows, c.cols, count)
    slices_a = a._replace(cols=depth, batch=count, batch_stride=depth * a.col_stride)
    slices_b = b._replace(rows=depth, batch=count, batch_stride=depth * b.row_stride)
    slices = GemmArguments(1.0, slices_a, slices_b, 0.0, partials, product.region)
    _emit_product(launches, config, slices, k_all=a.cols)
    _emit_sum(launches, product, partials)


def _emit_sum(launches: LaunchList, product: GemmArguments, partials: Operand) -> None:
    """C := alpha * (the sum of the batch) + beta C."""
    c, count = product.c, partials.batch
    chosen = select(REDUCE, launches.dtype, "", (c.rows, c.cols), current(launches.device)).config
    config = chosen.specialize(count)
    options = config.options(product.region)

    def integers(first: Operand, c: Operand) -> tuple:
        return c.rows, c.cols, count, options, first.col_stride, c.col_stride, first.batch_stride

    blocks, operands = config.grid(partials.col_stride, c.cols), (partials.matrices(0, 1), c)
    launches.emit(
        family_of(REDUCE).source(config),
        blocks,
        operands,
        integers,
        (product.alpha, product.beta),
    )


def _emit_product(
    launches: LaunchList,
    config: GemmConfig,
    product: GemmArguments,
    stream_k: bool = False,
    k_all: int | None = None,
) -> None:
    """The product with A and B in the layout of `config`; `stream_k`: tiles may be split; `k_all`: of all
    slices together.
    """
    a, b = product.a, product.b
    if config.needs_alignment:
        config = match_alignment(config, alignments(config.layout, a, b))
    lda, ldb = a.leading_dimension(config.trans_a), b.leading_dimension(config.trans_b)
    _emit_kernel(launches, config, product, (lda, ldb), a.cols, stream_k, k_all)


def _emit_kernel(
    launches: LaunchList,
    config: GemmConfig,
    product: GemmArguments,
    leading_dimensions: tuple[int, ...],
    k: int,
    stream_k: bool,
    k_all: int | None = None,
) -> None:
    """The launch; `leading_dimensions` are the strides of A, B that are not 1."""
    alpha, a, b, beta, c, region, _ = product
    conj, conj_sums = relative_conjugation(a.conj, b.conj)
    kernel = family_of(config.STEM).source(config, Form.of(region), conj)
    device = current(launches.device)
    raster = raster_of(launches.dtype, device)
    options = options_of(region, conj_sums, prefetch_c=prefetches_c(k, beta != 0, device), raster=raster)

    batch = c.batch

    def integers(a: Operand, b: Operand, c: Operand, *_) -> tuple:
        rest = schedule[1:] if schedule else (k_all or batch * k,)
        steps = (x.batch_stride if batch > 1 else 0 for x in (a, b, c))  # of one matrix it means nothing
        strides = (*leading_dimensions, c.col_stride, *steps)
        return c.rows, c.cols, k, options, *rest, *strides

    tiles = config.grid(c.rows, c.cols, region)
    schedule = tile_schedule_of(config, tiles * c.batch, k, device, stream_k, launches.tiles_per_block)
    if schedule is None:
        launches.emit(kernel, tiles, (a, b, c), integers, (alpha, beta))
        return
    # the blocks walk over the whole batch, so the launch is that of one matrix
    one_a, one_b, one_c = (x._replace(batch=1) for x in (a, b, c))
    partial_tiles = flags = one_c  # no tile is split
    if schedule.k_iters_per_block:
        partial_tiles = launches.scratch(config.BLK_M, config.BLK_N, schedule.blocks)._replace(batch=1)
        flags = launches.flags()
    launches.emit(
        kernel, schedule.blocks, (one_a, one_b, one_c, partial_tiles, flags), integers, (alpha, beta)
    )


def alignments(layout: str, a: Operand, b: Operand) -> tuple[int, int]:
    """Bytes, up to `ALIGNED`, at multiples of which all columns of A, B begin (rows, if transposed).

    Those of an operand without contiguous columns or rows do as those of its copy do.
    """
    return _alignment(a.T if layout[0] == "t" else a), _alignment(b.T if layout[1] == "t" else b)


def _alignment(operand: Operand) -> int:
    if not contiguous(operand):
        return ALIGNED
    size = operand.dtype.itemsize
    return gcd(ALIGNED, operand.pointer, operand.col_stride * size, operand.batch_stride * size)
