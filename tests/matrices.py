"""Matrices in either order, and what compares them to the last bit."""

from __future__ import annotations

import numpy as np


def same(actual, expected, what):
    np.testing.assert_array_equal(actual, expected, err_msg=str(what))


def in_order(values, order):
    """Matrices of which the last two dimensions lie in `order`."""
    return np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2) if order == "F" else values.copy()
