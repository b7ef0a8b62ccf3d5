"""C := alpha A B' + alpha B A' + beta C (SYR2K), or alpha A B^H + conj(alpha) B A^H + beta C (HER2K).

One triangle of C is computed. Either two products of a triangle, one after the other; or the second is the
mirror image of the first, so one product of all of a scratch W and then C := W + W' + beta C (`symmetrize`).
That reads C once, and no block computes what is beyond the diagonal in vain, but W is written and read.
"""

from __future__ import annotations

from functools import partial

from ...dispatch.algorithms import SYMMETRIZE, syr2k_algorithm
from ...dispatch.choose import select
from ...dispatch.leaf import runs
from ...dispatch.overrides import Algorithm
from ...dispatch.split_k import partial_bytes
from ...gpu.device import current
from ...kernels.common.options import options_of
from ...kernels.copy import symmetrize
from ...operands import Operand
from ...types import Uplo
from ..copies import MOST_COPIED, is_beyond, most_workspace
from ..launch_list import ALPHA, BETA, CONJ_ALPHA, LaunchList
from .gemm import emit_gemm
from .triangle_update import ProductTerm, TriangleUpdate, emit_triangle, launch_list_of_triangle

__all__ = ["emit", "launch_list"]


def launch_list(
    alpha,
    a: Operand,
    b: Operand,
    beta,
    c: Operand,
    *,
    uplo: Uplo,
    hermitian: bool = False,
    is_new_output: bool = False,
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, and for scalars that are 0 or 1 where these are.

    None where there is nothing to do.

    Parameters
    ----------
    alpha, beta : number
        alpha = 0 reads neither A nor B, beta = 0 does not read C; with `hermitian` beta is real.
    a, b : Operand
        n by k, op() applied as a view.
    c : Operand
        n by n, of the same dtype, batch and device, apart from A and B.
    uplo, hermitian, is_new_output
        See `TriangleUpdate`.
    """
    return launch_list_of_triangle(emit, alpha, (a, b, c), a.cols, beta, uplo, hermitian, is_new_output)


def emit(launches: LaunchList, a: Operand, b: Operand, c: Operand, triangle: TriangleUpdate) -> None:
    """Emit the whole call."""
    if triangle.hermitian:
        products = ProductTerm(ALPHA, a, b.T.conjugate()), ProductTerm(CONJ_ALPHA, b, a.T.conjugate())
    else:
        products = ProductTerm(ALPHA, a, b.T), ProductTerm(ALPHA, b, a.T)
    algorithm = _algorithm(c)
    launches.choices.append(algorithm)
    if algorithm.name == SYMMETRIZE:
        _emit_symmetrized(launches, products[0], c, triangle)
    else:
        emit_triangle(launches, products, c, triangle)


def _algorithm(c: Operand) -> Algorithm:
    """One product where W is not too large, and the device can symmetrize it, else two of a triangle.

    One spares the work beyond the diagonal and a reading of C, and costs the bytes of W, n n elements twice.
    """
    of_w = c.batch * partial_bytes(c.rows, c.cols, c.dtype)
    is_small = of_w <= MOST_COPIED and not is_beyond(of_w)
    return syr2k_algorithm(is_small and runs(symmetrize.STEM, current(c.device)))


def _emit_symmetrized(
    launches: LaunchList, product: ProductTerm, c: Operand, triangle: TriangleUpdate
) -> None:
    """Emit W := `product`, C := W + W' + beta C."""
    launches.workspace_limit = most_workspace(c)
    triangle.clear_beyond(launches, c)
    alpha, left, right = product
    region = triangle.region
    if not c.by_rows:  # a row-major C is a column-major one of the transposed product
        left, right, c, region = right.T, left.T, c.T, region.transposed
    with launches.temporary():
        w = launches.scratch(c.rows, c.cols, c.batch)
        emit_gemm(launches, alpha, left, right, 0.0, w)
        config = select(
            symmetrize.STEM, launches.dtype, "", (c.rows, c.cols), current(launches.device)
        ).config
        beta = 0.0 if triangle.overwrite else BETA
        blocks, integers = config.grid(c.rows, region), partial(_integers, options_of(region))
        launches.emit(symmetrize.source(config), blocks, (w, c), integers, (beta,))


def _integers(options: int, w: Operand, c: Operand) -> tuple:
    return c.rows, options, w.col_stride, c.row_stride, c.col_stride, w.batch_stride, c.batch_stride
