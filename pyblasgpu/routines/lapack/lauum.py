"""The product of a triangle and its conjugate transpose in place, the same triangle of it: L^H L, or U U^H.

An upper triangle is the lower one of its transpose: U U^H is conj(L^H L) of L = U', whose transpose it is.
The recursion, each step before what it reads is overwritten:

    [L11    ]    A11 := L11^H L11, A11 += L21^H L21 (a triangle by GEMM)
    [L21 L22]    A21 := L22^H L21 (TRMM), A22 := L22^H L22

It ends in products with a copy of L, or for small L, for batches and for any strides, in leaves.
"""

from __future__ import annotations

from ...kernels.factor.triangles import lauum_leaf
from ...operands import Operand
from ...types import Diag, Region, Side, Uplo
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import trmm
from ..level3.diagonal_copies import emit_diagonal_blocks
from ..level3.gemm import contiguous, emit_gemm
from ..level3.triangular import split
from .factor_steps import emit_readable, leaf_config, with_alpha

__all__ = ["emit", "emit_lower", "launch_list"]


def launch_list(a: Operand, *, uplo: Uplo) -> LaunchList | None:
    """Return the launch list for an operand of this layout, run with alpha 1; None for no work.

    Parameters
    ----------
    a : Operand
        n by n, of which the `uplo` triangle is read and becomes the product.
    uplo : Uplo
    """
    return None if a.is_empty else cached_launch_list(emit, (a,), (uplo,))


def emit(launches: LaunchList, a: Operand, uplo: Uplo) -> None:
    """Emit the whole call."""
    lower = a if uplo is Uplo.LOWER else a.T
    emit_readable(launches, lower, lambda readable: emit_lower(launches, readable))


def emit_lower(launches: LaunchList, a: Operand) -> None:
    """Emit L^H L of a lower triangle."""
    n = a.rows
    config = leaf_config(launches, lauum_leaf.STEM, n)
    if n <= config.ORDER:
        launches.emit(lauum_leaf.source(config.specialize(n)), 1, (a, a), _integers, ())
        return
    if n <= launches.policy.lauum_product_max_order and a.batch == 1 and (contiguous(a) or contiguous(a.T)):
        _emit_product(launches, a)
        return
    half = max(split(n), config.ORDER)
    rest = n - half
    a11, a21 = a.block(0, 0, half, half), a.block(half, 0, rest, half)
    a22 = a.block(half, half, rest, rest)
    region = Region.of(Uplo.LOWER, hermitian=a.dtype.is_complex)
    emit_lower(launches, a11)
    emit_gemm(launches, 1.0, a21.T.conjugate(), a21, 1.0, a11, region)
    upper = a22.T.conjugate()
    with_alpha(launches, 1.0, lambda: trmm.emit(launches, upper, a21, Side.LEFT, Uplo.UPPER, Diag.NON_UNIT))
    emit_lower(launches, a22)


def _emit_product(launches: LaunchList, a: Operand) -> None:
    """Emit L^H L with a copy of L, zeros beyond it: two launches, and three times the work."""
    with launches.temporary():
        lower = emit_diagonal_blocks(launches, a, a.rows, Diag.NON_UNIT)._replace(batch=1)
        region = Region.of(Uplo.LOWER, hermitian=a.dtype.is_complex)
        emit_gemm(launches, 1.0, lower.T.conjugate(), lower, 0.0, a, region)


def _integers(source: Operand, a: Operand) -> tuple[int, ...]:
    return a.rows, a.row_stride, a.col_stride, a.batch_stride
