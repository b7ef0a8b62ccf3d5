"""Hermitian matrices for `jacobi_columns`: one triangle read, a multiple of the identity added."""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import device_function, ptx
from ....types import Dtype
from ...common.kernel_config import WARP
from .rotation import barrier, team_max, team_sum

__all__ = ["definite_loader", "definite_maker"]

BEYOND = 1.125  # norms that are added to the diagonal, so that no column is negligible


def definite_loader(facts: Dtype, threads: int, ld: int, plane: int) -> Callable:
    """``load(s, a, a_rs, a_cs, n, sign, thread)``: a matrix, whose lower triangle is read, to shared
    memory, with imaginary parts times `sign`, `plane` reals behind the real ones; the largest size of a part
    of the thread's elements, infinity where one is no number.
    """
    real, int32, int64, quotient = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64, ptx.quotient
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex

    @device_function
    def load(s, a, a_rs, a_cs, n, sign, thread):
        by_columns, most, number = abs(a_rs) <= abs(a_cs), real(0), int32(thread)
        while number < n * n:
            slow = int32(quotient(number, n))
            fast = int32(number - slow * n)
            i, j = (fast, slow) if by_columns else (slow, fast)
            if i >= j:
                at = int64(i) * a_rs + int64(j) * a_cs
                element = a[at * REALS]
                s[j * ld + i], s[i * ld + j] = element, element
                most = max(most, abs(element) if element == element else real(float("inf")))
                if COMPLEX:
                    element = real(0) if i == j else sign * a[at * REALS + 1]
                    s[j * ld + i + plane], s[i * ld + j + plane] = element, -element
                    most = max(most, abs(element) if element == element else real(float("inf")))
            number = int32(number + threads)
        return most

    return load


def definite_maker(facts: Dtype, threads: int, ld: int, plane: int) -> Callable:
    """``make(s, n, partials, t, thread)``: a matrix whose largest element is about one, plus a multiple of
    the identity a little beyond its norm: Frobenius', or the largest sum of a row if that is less. Errors
    grow with the multiple, which is the result.
    """
    real, int32, team = ptx.REALS[facts.real], ptx.types.int32, max(threads, WARP)
    largest, total, sync, root = team_max(team), team_sum(team), barrier(team), ptx.square_root
    COMPLEX = facts.is_complex

    @device_function
    def make(s, n, partials, t, thread):
        most, squares, i = real(0), real(0), int32(thread)
        while i < n:
            sizes = real(0)
            for j in range(n):
                x = s[j * ld + i]
                if COMPLEX:
                    y = s[j * ld + i + plane]
                    square = x * x + y * y
                    sizes += root(square)
                    squares += square
                else:
                    sizes += abs(x)
                    squares += x * x
            most, i = max(most, sizes), int32(i + threads)
        most = largest(most, partials, t, int32(threads))
        norm = min(most, root(total(squares, partials, t, int32(threads))))
        shift, i = real(BEYOND) * max(norm, real(1)), int32(thread)
        while i < n:
            s[i * ld + i] += shift
            i = int32(i + threads)
        sync()
        return shift

    return make
