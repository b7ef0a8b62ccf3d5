"""C := alpha A B' + alpha B A' + beta C (SYR2K), or alpha A B^H + conj(alpha) B A^H + beta C (HER2K).

One triangle of C is computed. Either two products of a triangle, one after the other; or the second is the
mirror image of the first, so one product of all of a scratch W and then C := W + W' + beta C (`symmetrize`).
That reads C once, and no block computes what is beyond the diagonal in vain, but W is written and read.
"""

from __future__ import annotations

from ..dispatch.algorithms import SYMMETRIZE, syr2k_algorithm
from ..dispatch.choose import select
from ..dispatch.decisions import Algorithm
from ..dispatch.leaf import runs
from ..dispatch.split_k import partial_bytes
from ..gpu.device import current
from ..kernels.copy import symmetrize
from ..operands import Operand
from ..types import Uplo
from .gemm import record_gemm
from .launch_list import ALPHA, BETA, CONJ_ALPHA, Tape
from .triangle_update import Product, TriangleUpdate, record_beyond, record_triangle, tape_of_triangle
from .trmm_by_levels import MOST_COPIED, most_workspace

__all__ = ["record", "syr2k", "tape"]


def syr2k(
    alpha, a: Operand, b: Operand, beta, c: Operand, stream: int, *, uplo: Uplo, hermitian: bool = False
) -> None:
    """Enqueue the routine on `stream`, a handle; else as `tape` says."""
    found = tape(alpha, a, b, beta, c, uplo=uplo, hermitian=hermitian)
    if found is not None:
        found.run((a.pointer, b.pointer, c.pointer), alpha, beta, stream=stream)


def tape(
    alpha, a: Operand, b: Operand, beta, c: Operand, *,
    uplo: Uplo, hermitian: bool = False, is_new_output: bool = False,
) -> Tape | None:  # fmt: skip
    """What the routine runs, for operands that lie like these and scalars that are zero, one like these.

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

    Returns
    -------
    Tape or None
        None where there is nothing to do.
    """
    return tape_of_triangle(record, alpha, (a, b, c), a.cols, beta, uplo, hermitian, is_new_output)


def record(tape: Tape, a: Operand, b: Operand, c: Operand, triangle: TriangleUpdate) -> None:
    """Record the whole call."""
    if triangle.hermitian:
        products = Product(ALPHA, a, b.T.conjugate()), Product(CONJ_ALPHA, b, a.T.conjugate())
    else:
        products = Product(ALPHA, a, b.T), Product(ALPHA, b, a.T)
    algorithm = _algorithm(c)
    tape.choices.append(algorithm)
    if algorithm.name == SYMMETRIZE:
        _record_symmetrized(tape, products[0], c, triangle)
    else:
        record_triangle(tape, products, c, triangle)


def _algorithm(c: Operand) -> Algorithm:
    """One product where W is not too large, and the device can symmetrize it, else two of a triangle.

    One spares the work beyond the diagonal and a reading of C, and costs the bytes of W, n n elements twice.
    """
    of_w = c.batch * partial_bytes(c.rows, c.cols, c.dtype)
    return syr2k_algorithm(of_w <= MOST_COPIED and runs(symmetrize.STEM, current(c.device)))


def _record_symmetrized(tape: Tape, product: Product, c: Operand, triangle: TriangleUpdate) -> None:
    """Record W := `product`, C := W + W' + beta C."""
    tape.limit = most_workspace(c)
    record_beyond(tape, c, triangle)
    alpha, left, right = product
    region = triangle.region
    if not c.by_rows:  # a row-major C is a column-major one of the transposed product
        left, right, c, region = right.T, left.T, c.T, region.transposed
    with tape.temporary():
        w = tape.scratch(c.rows, c.cols, c.batch)
        record_gemm(tape, alpha, left, right, 0.0, w)
        config = select(symmetrize.STEM, tape.dtype, "", (c.rows, c.cols), current(tape.device)).config
        beta = 0.0 if triangle.overwrite else BETA
        blocks = config.grid(c.rows, region)
        tape.launch(symmetrize.source(config, region), blocks, (w, c), _integers, (beta,))


def _integers(w: Operand, c: Operand) -> tuple:
    return c.rows, w.col_stride, c.row_stride, c.col_stride, w.batch_stride, c.batch_stride
