"""Blocks of Householder reflectors: H1 H2 ... = I - V T V^H, and its product with a matrix in place.

V is copied from where a factorization left it, T is made from V^H V, and the rest are products (Schreiber and
Van Loan, 1989).
"""

from __future__ import annotations

from typing import NamedTuple

from ...dispatch.operand_copies import ALIGNED
from ...kernels.factor.qr import larft_leaf, reflector_copy
from ...kernels.registry import FIXED
from ...operands import Operand
from ..copies import emit_copy_to_workspace, emit_resolved
from ..launch_list import LaunchList
from ..level3.gemm import emit_gemm
from .factor_steps import leaf_config

__all__ = [
    "BlockReflector",
    "blocks_of",
    "emit_block_reflector",
    "emit_conjugate",
    "emit_identity",
    "emit_joined_triangle",
    "emit_product",
    "emit_triangle",
    "emit_update",
    "emit_vectors",
    "emit_zeros",
    "new_block_reflector",
]


class BlockReflector(NamedTuple):
    """I - V T V^H.

    Attributes
    ----------
    v : Operand
        m by k, zeros above its diagonal of ones.
    t : Operand
        k by k, zeros below its diagonal.
    vt : Operand or None
        V T, or V T^H where products with the adjoint are all that is made; None: it is not there.
    """

    v: Operand
    t: Operand
    vt: Operand | None = None

    def part(self, rows: int, count: int) -> BlockReflector:
        """Memory for `count` reflectors of `rows` rows."""
        vt = None if self.vt is None else self.vt.block(0, 0, rows, count)
        return BlockReflector(self.v.block(0, 0, rows, count), self.t.block(0, 0, count, count), vt)

    def leading(self, count: int) -> BlockReflector:
        """The first `count` reflectors."""
        return self.part(self.v.rows, count)


def blocks_of(launches: LaunchList, count: int) -> list[tuple[int, int]]:
    """Return the first reflector of each block and the one after its last, of `count` in all."""
    width = leaf_config(launches, larft_leaf.STEM, count).ORDER
    return [(first, min(first + width, count)) for first in range(0, count, width)]


def new_block_reflector(launches: LaunchList, rows: int, count: int, batch: int) -> BlockReflector:
    """Return scratch for the V and T of `count` reflectors of `rows` rows."""
    return BlockReflector(*(launches.scratch(each, count, batch, ALIGNED) for each in (rows, count)))


def emit_block_reflector(
    launches: LaunchList, tau: Operand, a: Operand, out: BlockReflector | None = None
) -> BlockReflector:
    """Emit V and T of the reflectors in the columns of A below its diagonal.

    Parameters
    ----------
    launches : LaunchList
    tau : Operand
        k by 1, of a block of `blocks_of` or fewer.
    a : Operand
        m by k, m >= k.
    out : BlockReflector, optional
        Memory for them; new scratch by default.
    """
    v, t, _ = new_block_reflector(launches, a.rows, a.cols, a.batch) if out is None else out
    v = emit_vectors(launches, a, v)
    emit_triangle(launches, emit_resolved(launches, tau), v, t)
    return BlockReflector(v, t)


def emit_vectors(launches: LaunchList, a: Operand, v: Operand) -> Operand:
    """Emit V of the reflectors in the columns of A below its diagonal, and return it."""
    _emit_copy(launches, a, v, 0, copies=True)
    return v._replace(conj=a.conj)  # the copy is of what is in memory


def emit_triangle(launches: LaunchList, tau: Operand, v: Operand, t: Operand) -> None:
    """Emit T of the reflectors in the columns of V; where they are more than those of a block of `blocks_of`,
    triangles on the diagonal are joined, two at a time.
    """
    k = v.cols
    emit_gemm(launches, 1.0, v.T.conjugate(), v, 0.0, t)
    config = leaf_config(launches, larft_leaf.STEM, k)
    width, leaf = config.ORDER, config.specialize(min(k, config.ORDER))

    def numbers_of_t(tau: Operand, t: Operand) -> tuple[int, ...]:
        return t.cols, tau.row_stride, t.col_stride, tau.batch_stride, t.batch_stride

    for part in _diagonal_blocks(tau, t, width):
        launches.emit(larft_leaf.source(leaf), 1, part, numbers_of_t, ())
    while width < k:
        for first in range(0, k - width, 2 * width):
            middle, last = first + width, min(first + 2 * width, k)
            whole = t.block(first, first, last - first, last - first)
            _emit_between(launches, whole, whole.block(0, width, width, last - middle), width)
            emit_zeros(launches, whole.block(width, 0, last - middle, width))
        width *= 2


def _diagonal_blocks(tau: Operand, t: Operand, width: int) -> list[tuple[Operand, Operand]]:
    """The factors of each block of `width` reflectors, and the square of it in T; those of one matrix are a
    stack, but for a last block of fewer.
    """
    count, left = divmod(t.cols, width)

    def part(first: int, cols: int) -> tuple[Operand, Operand]:
        return tau.block(first, 0, cols, 1), t.block(first, first, cols, cols)

    parts = [part(j * width, width) for j in range(count)]
    if t.batch == 1 and count > 1:
        steps = width * tau.row_stride, width * (t.row_stride + t.col_stride)
        factors, squares = (
            each._replace(batch=count, batch_stride=step) for each, step in zip(parts[0], steps, strict=True)
        )
        parts = [(factors, squares)]
    return [*parts, part(count * width, left)] if left else parts


def emit_joined_triangle(launches: LaunchList, block: BlockReflector, first: int) -> None:
    """Emit what T of all reflectors has between T1 of the first ones and T2 of the others, which are there:
    -T1 V1^H V2 T2.
    """
    v, rows, others = block.v, block.v.rows - first, block.v.cols - first
    left, right = v.block(first, 0, rows, first), v.block(first, first, rows, others)
    with launches.temporary():
        products = launches.scratch(first, others, v.batch, ALIGNED)
        emit_gemm(launches, 1.0, left.T.conjugate(), right, 0.0, products)
        _emit_between(launches, block.t, products, first)


def _emit_between(launches: LaunchList, t: Operand, products: Operand, first: int) -> None:
    """Emit -T1 `products` T2, which may be where the products are, with T1 of the `first` reflectors."""
    others = t.cols - first
    with launches.temporary():
        x = launches.scratch(first, others, t.batch, ALIGNED)
        emit_gemm(launches, 1.0, products, t.block(first, first, others, others), 0.0, x)
        emit_gemm(launches, -1.0, t.block(0, 0, first, first), x, 0.0, t.block(0, first, first, others))


def emit_conjugate(launches: LaunchList, tau: Operand) -> Operand:
    """Emit and return the conjugated factors of reflectors."""
    if tau.dtype.is_complex and not tau.is_empty:
        return emit_copy_to_workspace(launches, tau.conjugate())
    return tau


def emit_identity(launches: LaunchList, a: Operand, first: int) -> None:
    """Emit columns of the identity; the one of the first column is in row `first`."""
    _emit_copy(launches, a, a, first, copies=False)


def emit_zeros(launches: LaunchList, a: Operand) -> None:
    """Emit a matrix of zeros."""
    emit_identity(launches, a, a.rows)


def _emit_copy(launches: LaunchList, a: Operand, v: Operand, first: int, copies: bool) -> None:
    config, (m, n) = FIXED[reflector_copy.STEM].fixed_config(launches.dtype.letter), (v.rows, v.cols)

    def integers(a: Operand, v: Operand) -> tuple[int, ...]:
        strides = a.row_stride, a.col_stride, v.row_stride, v.col_stride
        return m, n, first, int(copies), *strides, a.batch_stride, v.batch_stride

    launches.emit(reflector_copy.source(config), config.grid(m, n), (a, v), integers, ())


def emit_product(
    launches: LaunchList, block: BlockReflector, c: Operand, adjoint: bool, conj: bool = False, zeros: int = 0
) -> None:
    """Emit C := H C for the H of a block, its adjoint, its conjugate (`conj`), or with both its transpose.

    The latter two serve products from the right: C H is (H^T C^T)^T. The first rows of C, `zeros` of them,
    are zero.
    """
    if c.is_empty:
        return
    v, rows = block.v, c.rows - zeros
    with launches.temporary():
        w = launches.scratch(v.cols, c.cols, c.batch, ALIGNED)
        below = v.block(zeros, 0, rows, v.cols).T
        left = below if conj else below.conjugate()
        emit_gemm(launches, 1.0, left, c.block(zeros, 0, rows, c.cols), 0.0, w)
        emit_update(launches, block, w, c, adjoint, conj)


def emit_update(
    launches: LaunchList, block: BlockReflector, w: Operand, c: Operand, adjoint: bool, conj: bool = False
) -> None:
    """Emit the rest of a product, C -= V T W with W = V^H C; see `emit_product`."""
    v, t, vt = block
    with launches.temporary():
        if vt is not None:
            left = vt.conjugate() if conj else vt
            emit_gemm(launches, -1.0, left, w, 1.0, c)
            return
        x = launches.scratch(v.cols, c.cols, c.batch, ALIGNED)
        if adjoint:
            t = t.T.conjugate()
        if conj:
            v, t = v.conjugate(), t.conjugate()
        emit_gemm(launches, 1.0, t, w, 0.0, x)
        emit_gemm(launches, -1.0, v, x, 1.0, c)
