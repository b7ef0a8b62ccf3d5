"""Least squares of tall device matrices by normal equations, whose solution is refined.

AᴴA x = Aᴴb, and R is the Cholesky factor of AᴴA. With the columns of A scaled to norm one, errors of AᴴA
grow in x by no more than the norm of (AᴴA)⁻¹. As long as that leaves some digits, corrections for what is
left of b, R⁻¹ R⁻ᴴ Aᴴ (b - A x), make the solution as accurate as that of QR factors (Björck, *Stability
analysis of the method of seminormal equations*, 1987). Each gains as many digits as the first solution has,
which the size of the first correction shows. A is read twice for each of them, and Q is not made.
"""

from __future__ import annotations

from math import ceil, inf, log, prod
from typing import Any

from ..keyword.level3 import gemm
from ..lapack import names as lapack
from .arrays import Arrays
from .checks import host_values
from .cholesky_qr import SMALL, gram, is_tall, sensitivity

__all__ = ["are_tried", "needed_corrections", "refined_solution"]

#: Elements of the matrices, at least: of fewer the host takes longer than it takes to make QR factors.
LEAST_ELEMENTS = 1 << 26

#: Columns of b for each of A, at most: all of them are multiplied with A four times.
MOST_COLUMNS = 2

#: Sums of a row of |(AᴴA)⁻¹|, with columns of norm one, with which a solution has digits; by bytes of a real.
MOST_SENSITIVITY = {4: 1e3, 8: 1e9}

SURE = 100  # the same, with which one correction is enough
MOST_CORRECTIONS = 3


def are_tried(arrays: Arrays, a: Any, b: Any) -> bool:
    """Whether matrices are so tall, and so large, that a solution by products takes less time."""
    if not is_tall(arrays, a) or prod(a.shape) < LEAST_ELEMENTS:
        return False
    columns = b.shape[-1] if len(b.shape) > 1 else 1
    return bool(columns <= MOST_COLUMNS * a.shape[-1]) and arrays.may_wait


def refined_solution(arrays: Arrays, a: Any, b: Any) -> tuple[Any, Any] | None:
    """x with the least norms of the columns of b - A x, and their squares; None where A is too sensitive, or
    squares leave the range of the dtype. The host waits for that decision.
    """
    real_size = arrays.dtype.real_size
    r, info = lapack.potrf(gram(arrays, a), False, True)
    inverse, _ = lapack.trtri(r)
    sums, squares = sensitivity(arrays, r, inverse), host_values(_squares(arrays, b))
    most = host_values(sums).max()
    if host_values(info).any() or not most <= MOST_SENSITIVITY[real_size]:
        return None
    if not SMALL[real_size] <= squares.min() <= squares.max() < inf:
        return None
    x = _solution(a, inverse, b)
    rest, change = _correction(a, inverse, b, x)
    ratio = 0 if most <= SURE else host_values(_ratios(arrays, r, change, x)).max()
    count = needed_corrections(arrays, ratio)
    if count is None:
        return None
    x = x + change
    for _ in range(1, count):
        rest, change = _correction(a, inverse, b, x)
        x = x + change
    # what is left of b is orthogonal to the columns of A, and to what the last correction changed
    least = _squares(arrays, rest) - _squares(arrays, gemm(r, change))
    return x, arrays.xp.where(least > 0, least, 0 * least)


def _solution(a: Any, inverse: Any, b: Any) -> Any:
    """x of AᴴA x = Aᴴb, from the inverse of R."""
    return gemm(inverse, gemm(inverse, gemm(a, b, trans_a="C"), trans_a="C"))


def _correction(a: Any, inverse: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """The rest of b, and what is to be added to x for that."""
    rest = b - gemm(a, x)
    return rest, _solution(a, inverse, rest)


def _ratios(arrays: Arrays, r: Any, change: Any, x: Any) -> Any:
    """Largest elements of a correction over those of x, with the columns of A scaled to norm one."""
    xp = arrays.xp
    norms = xp.sqrt(_squares(arrays, r))[..., None]
    of_change, of_x = (xp.max(xp.abs(each) * norms, axis=-2) for each in (change, x))
    return of_change / of_x


def needed_corrections(arrays: Arrays, ratio: float) -> int | None:
    """Corrections after which errors are roundoffs, where one leaves `ratio` of them; None for too many."""
    u = arrays.precision / 2
    if not ratio <= u ** (1 / (MOST_CORRECTIONS + 1)):
        return None
    return max(1, ceil(log(u) / log(max(ratio, u))) - 1)


def _squares(arrays: Arrays, b: Any) -> Any:
    """The squares of the norms of columns."""
    sizes = arrays.xp.abs(b)
    return arrays.xp.sum(sizes * sizes, axis=-2)
