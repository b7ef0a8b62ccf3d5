"""Checks of products on tensor cores that hold in any dtype."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.gpu.device import current
from pyblasgpu.testing.cases import GemmCase
from pyblasgpu.testing.reference import exact_gemm, integers
from pyblasgpu.types import Dtype, Trans

from .running import NAN, Placed, same

TRANS = (Trans.NO, Trans.TRANS)


def is_hopper() -> bool:
    return current().cc == (9, 0)


def skip_without_hopper() -> None:
    if not is_hopper():
        pytest.skip("wgmma needs compute capability 9.0")


def multiply(a, b, **options):
    return pyblasgpu.gemm(a, b, method="tensor", **options)


def check_exact(dtype: Dtype, shape: tuple[int, int, int], aligned: bool, order: str) -> None:
    """All layouts, odd extents and strides."""
    for number, (trans_a, trans_b) in enumerate(product(TRANS, TRANS)):
        case = GemmCase(dtype, *shape, trans_a, trans_b, 2, (-1, 0)[number % 2])
        check_case(case, number, aligned, order)


def check_case(case: GemmCase, seed: int, aligned: bool, order: str) -> None:
    """Exact on integers; what must not be read is NaN, all around C is fenced."""
    rng = np.random.default_rng(seed)
    a, b, start = (integers(rng, each, case.dtype) for each in case.shapes)
    expected = exact_gemm(case, a, b, start)
    if case.beta == 0:
        start[...] = NAN
    out = Placed(start, order, aligned)
    left, right = (Placed(x, "F", aligned).array for x in (a, b))
    options = {"trans_a": case.trans_a, "trans_b": case.trans_b, "alpha": case.alpha, "beta": case.beta}
    assert multiply(left, right, out=out.array, **options) is out.array
    same(out.fetch(), expected, f"{case} {order}")
    assert out.unharmed(), f"{case}: memory outside the result was written"
