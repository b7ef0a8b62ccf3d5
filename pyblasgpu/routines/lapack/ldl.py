"""L, D and P as matrices, from factors of `sytrf`: SciPy's `ldl`, whose L has its rows where A has them."""

from __future__ import annotations

from ...kernels.factor.ldl import ldl_rows
from ...operands import Operand
from ...types import Uplo
from ..launch_list import LaunchList, cached_launch_list
from . import sytrs

__all__ = ["launch_list"]


def launch_list(
    rows: Operand, d: Operand, piv: Operand, a: Operand, uplo: Uplo, hermitian: bool
) -> LaunchList:
    """Return the launch list for operands of these layouts, run with alpha 1.

    Parameters
    ----------
    rows : Operand
        2 n by 1 int32 side by side: for each row of L that of A, and the kind of its block; an upper triangle
        has its rows in reverse.
    d : Operand
        n^2 by 1; becomes D, by rows.
    piv : Operand
        n by 1, pivots of `sytrf` in the first bytes of each element.
    a : Operand
        n by n, factors of `sytrf` in one triangle; L or U replaces them.
    uplo : Uplo
        The triangle.
    hermitian : bool
        Whether the factors are those of a Hermitian matrix.
    """
    sytrs.check_order(a)
    return cached_launch_list(_emit, (rows, d, piv, a), (uplo, hermitian))


def _emit(
    launches: LaunchList, rows: Operand, d: Operand, piv: Operand, a: Operand, uplo: Uplo, hermitian: bool
) -> None:
    n, is_upper = a.rows, uplo is Uplo.UPPER
    blocks = d._replace(rows=n, cols=n, row_stride=n, col_stride=1)
    with launches.temporary():
        factors = sytrs.emit_factors(launches, piv, a, uplo, rows=rows)
        if is_upper:
            a, blocks = a.flip(cols=True), blocks.flip(rows=True, cols=True)
        sytrs.emit_rows(launches, factors, blocks, factors.l, ldl_rows.BLOCKS, hermitian)
        sytrs.emit_rows(launches, factors, a, factors.l, ldl_rows.SCATTER, hermitian)
