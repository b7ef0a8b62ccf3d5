"""Matrices in either order, and what compares them to the last bit."""

from __future__ import annotations

import numpy as np

from pyblasgpu.types import DTYPES


def same(actual, expected, what):
    np.testing.assert_array_equal(actual, expected, err_msg=str(what))


def in_order(values, order):
    """Matrices of which the last two dimensions lie in `order`."""
    return np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2) if order == "F" else values.copy()


def times_power_of_two(a, exponent):
    """`a` times 2 to an integer, or one for each matrix; the power alone may overflow."""
    half = np.asarray(exponent) // 2
    return a * np.ldexp(a.real.dtype.type(1), half) * np.ldexp(a.real.dtype.type(1), exponent - half)


def uniform(letter: str, *shape: int, seed: int | None = None) -> np.ndarray:
    """Numbers between -1 and 1, complex ones of both parts; without a `seed` those of the shape."""
    rng = np.random.default_rng(sum(shape) if seed is None else seed)
    a = rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if DTYPES[letter].is_complex else 0)
    return a.astype(DTYPES[letter].name)
