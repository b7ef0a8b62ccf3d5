"""Numbers of plane rotations for `blas`, as in the reference BLAS."""

from __future__ import annotations

from math import copysign, frexp, hypot, ldexp
from typing import Any

from ...cpu.scipy.level3 import scipys_blas
from ...frontend.arrays.any_array import number
from ...types import Dtype

__all__ = ["rotg", "rotmg"]


def rotg(name: str, dtype: Dtype, which: str, given: Any) -> tuple[Any, Any]:
    """ROTG: c and s so that ``-conj(s) a + c b`` is 0; c is real, and SciPy's complex number where `a` is.

    OpenBLAS's underflows and overflows where the numbers are of very different sizes, and SciPy sets no
    imaginary part of c.
    """
    a, b = _numbers(name, dtype, given)
    c, s = _complex_rotation(complex(a), complex(b)) if dtype.is_complex else _real_rotation(a, b)
    return number(c, dtype, name, "c"), number(s, dtype, name, "s")


def rotmg(name: str, dtype: Dtype, which: str, given: Any) -> Any:
    """ROTMG."""
    return scipys_blas(name)(*_numbers(name, dtype, given))


def _numbers(name: str, dtype: Dtype, given: Any) -> list[Any]:
    return [number(value, dtype, name, argument) for argument, value in vars(given).items()]


def _real_rotation(a: float, b: float) -> tuple[float, float]:
    """c and s of the sign that makes r of the sign of the larger number."""
    if b == 0:
        return 1.0, 0.0
    if a == 0:
        return 0.0, 1.0
    a, b = _scaled(a, b)
    r = copysign(hypot(a, b), a if abs(a) > abs(b) else b)
    return a / r, b / r


def _complex_rotation(a: complex, b: complex) -> tuple[complex, complex]:
    """c and s, of which c has no imaginary part and is not negative."""
    if b == 0:
        return 1 + 0j, 0j
    if a == 0:
        return 0j, _direction(b).conjugate()
    *parts_of_a, real, imaginary = _scaled(a.real, a.imag, b.real, b.imag)
    size = hypot(*parts_of_a)
    r = hypot(size, real, imaginary)
    return complex(size / r), _direction(a) * complex(real, -imaginary) / r


def _direction(z: complex) -> complex:
    """``z / |z|``, without overflow on the way."""
    real, imaginary = _scaled(z.real, z.imag)
    return complex(real, imaginary) / hypot(real, imaginary)


def _scaled(*numbers: float) -> list[float]:
    """The numbers by a power of two, so that the largest is within 1/2 and 1."""
    exponent = frexp(max(map(abs, numbers)))[1]
    return [ldexp(each, -exponent) for each in numbers]
