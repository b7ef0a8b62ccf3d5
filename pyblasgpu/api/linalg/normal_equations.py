"""Least squares of tall device matrices by normal equations, whose solution is refined once.

AᴴA x = Aᴴb, and R is the Cholesky factor of AᴴA. With the columns of A scaled to norm one, errors of AᴴA
grow in x by no more than the norm of (AᴴA)⁻¹. Where that is small, the solution has most of its digits. A
correction for what is left of b, R⁻¹ R⁻ᴴ Aᴴ (b - A x), makes it as accurate as that of QR factors (Björck,
*Stability analysis of the method of seminormal equations*, 1987). A is read four times, and Q is not made.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any

from ..keyword.level3 import gemm
from ..lapack import names as lapack
from .arrays import Arrays
from .checks import host_values
from .cholesky_qr import SMALL, gram, is_tall, sensitivity

__all__ = ["are_tried", "refined_solution"]

#: Elements of the matrices, at least: of fewer the host takes longer than it takes to make QR factors.
LEAST_ELEMENTS = 1 << 26

#: Sums of a row of |(AᴴA)⁻¹|, with columns of norm one, with which a correction is enough.
MOST_SENSITIVITY = 100


def are_tried(arrays: Arrays, a: Any) -> bool:
    """Whether matrices are so tall, and so large, that a solution by products takes less time."""
    return is_tall(arrays, a) and prod(a.shape) >= LEAST_ELEMENTS and arrays.may_wait


def refined_solution(arrays: Arrays, a: Any, b: Any) -> tuple[Any, Any] | None:
    """x with the least norms of the columns of b - A x, and their squares; None where A is too sensitive, or
    squares leave the range of the dtype. The host waits for that decision.
    """
    r, info = lapack.potrf(gram(arrays, a), False, True)
    inverse, _ = lapack.trtri(r)
    sums, squares = sensitivity(arrays, r, inverse), host_values(_squares(arrays, b))
    if host_values(info).any() or not host_values(sums).max() <= MOST_SENSITIVITY:
        return None
    if not SMALL[arrays.dtype.real_size] <= squares.min() <= squares.max() < inf:
        return None
    x = _solution(a, inverse, b)
    rest = b - gemm(a, x)
    return x + _solution(a, inverse, rest), _squares(arrays, rest)


def _solution(a: Any, inverse: Any, b: Any) -> Any:
    """x of AᴴA x = Aᴴb, from the inverse of R."""
    return gemm(inverse, gemm(inverse, gemm(a, b, trans_a="C"), trans_a="C"))


def _squares(arrays: Arrays, b: Any) -> Any:
    """The squares of the norms of columns."""
    sizes = arrays.xp.abs(b)
    return arrays.xp.sum(sizes * sizes, axis=-2)
