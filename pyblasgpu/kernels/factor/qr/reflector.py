"""Parts of the QR kernels: one Householder reflector, scales of columns.

H = I - tau v v^H has v = 1 on top, and H^H x = beta on top of zeros, beta real (LAPACK's larfg). Columns are
scaled by powers of two before, so that sums of squares neither overflow nor lose what matters.
"""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import device_function, ptx
from ....types import Dtype
from ...common.substitution import divider

__all__ = [
    "BETA",
    "FACTOR",
    "TAU",
    "multiplier",
    "product_adder",
    "projector",
    "reflector",
    "scaler",
    "size_of",
]

#: Places of beta, tau and the factor of v in what `reflector` gives; imaginary parts follow real ones.
BETA, TAU, FACTOR = 0, 1, 3

#: A vector with no larger sum of squares counts as zero: its column was scaled to about one.
NEGLIGIBLE = {4: 2.0**-100, 8: 2.0**-960}
#: The largest exponent of a scale, whose reciprocal is normal too; by bytes of a real.
MOST = {4: 126, 8: 1022}


def product_adder(facts: Dtype) -> Callable:
    """``add(sums, c, v, k, re, im)``: to ``sums[c]`` the conjugate of ``v[k]`` times (re, im)."""
    COMPLEX = facts.is_complex

    @device_function
    def add(sums, c, v, k, re, im):
        if COMPLEX:
            sums[c * 2] += v[k * 2] * re + v[k * 2 + 1] * im
            sums[c * 2 + 1] += v[k * 2] * im - v[k * 2 + 1] * re
        else:
            sums[c] += v[k] * re

    return add


def reflector(facts: Dtype) -> Callable:
    """``make(out, re, im, below)``: the reflector of a vector with first element (re, im), and `below` the
    sum of squares of the others.

    ``out[FACTOR]`` makes them the elements of v. H = I where these are zero and `re` is all, or where the
    whole vector is negligible.
    """
    real, COMPLEX, TINY = ptx.REALS[facts.real], facts.is_complex, NEGLIGIBLE[facts.real_size]
    divide, divide_element, root = ptx.divide, divider(facts), ptx.square_root

    @device_function
    def make(out, re, im, below):
        for k in range(5):
            out[k] = real(0)
        out[0], rest = re, below
        if COMPLEX:
            rest += im * im
        square = re * re + rest
        if rest != real(0) and not square <= real(TINY):
            norm = root(square)
            beta = norm if re < real(0) else -norm
            out[0], out[1], out[3] = beta, divide(beta - re, beta), real(1)
            if COMPLEX:
                out[2] = divide(-im, beta)
            divide_element(out, 3, re - beta, im)

    return make


def projector(facts: Dtype) -> Callable:
    """``project(y, head, i, sums, k, h)``: ``y[:2]``, the product v^H x of reflector `h`, of the element of x
    at ``head[i]`` and the product of what is below with v before its factor, ``sums[k]``.
    """
    COMPLEX = facts.is_complex

    @device_function
    def project(y, head, i, sums, k, h):
        if COMPLEX:
            y[0] = head[i] + h[FACTOR] * sums[k] + h[FACTOR + 1] * sums[k + 1]
            y[1] = head[i + 1] + h[FACTOR] * sums[k + 1] - h[FACTOR + 1] * sums[k]
        else:
            y[0] = head[i] + h[FACTOR] * sums[k]

    return project


def multiplier(facts: Dtype) -> Callable:
    """``multiply(w, k, y, h)``: ``w[k]``, the multiple of v that H^H x takes off x, from v^H x in ``y``;
    nothing where H = I, though x be no number.
    """
    COMPLEX, real = facts.is_complex, ptx.REALS[facts.real]

    @device_function
    def multiply(w, k, y, h):
        is_identity = (h[TAU] == real(0)) & (h[TAU + 1] == real(0))
        if COMPLEX:
            w[k] = real(0) if is_identity else h[TAU] * y[0] + h[TAU + 1] * y[1]
            w[k + 1] = real(0) if is_identity else h[TAU] * y[1] - h[TAU + 1] * y[0]
        else:
            w[k] = real(0) if is_identity else h[TAU] * y[0]

    return multiply


def size_of(facts: Dtype) -> Callable:
    """``size(a, at)``: the largest part of an element; infinity where a part is no number."""
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]

    @device_function
    def size(a, at):
        most = real(0)
        for part in range(REALS):
            x = abs(a[at + part])
            most = max(most, x if x == x else real(float("inf")))
        return most

    return size


def scaler(facts: Dtype) -> Callable:
    """``scales(out, size)``: ``out[0]``, the power of two that brings `size` to about one, and ``out[1]``,
    its reciprocal.
    """
    MOST_OF, is_single = MOST[facts.real_size], facts.real_size == 4
    exponent = ptx.exponent if is_single else ptx.double_exponent
    power = ptx.power_of_two if is_single else ptx.double_power_of_two
    int32 = ptx.types.int32

    @device_function
    def scales(out, size):
        e = int32(min(max(-exponent(size), -MOST_OF), MOST_OF))
        out[0], out[1] = power(e), power(int32(-e))

    return scales
