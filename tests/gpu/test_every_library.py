"""Calls on arrays of each library, by rows, by columns and strided: what they leave is what NumPy's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from library_cases import CASES, NumPy, evaluated, fetched

from .running import CuPy, Numba, Torch


def outcome(library: Any, letter: str, layout: str, case: str) -> list[np.ndarray]:
    """What a call gives, and the operands after it, in host memory."""
    results, operands = evaluated(library, letter, layout, case)
    return [fetched(library, each) for each in (*results, *operands.values())]


@pytest.mark.parametrize("case", CASES.strip().split("\n"))
@pytest.mark.parametrize("library", [CuPy, Torch, Numba], ids=lambda library: library.__name__)
def test_results_are_those_of_numpys_arrays(library, case):
    for letter in "dz":
        for layout in ("C", "F", "strided"):
            left, expected = (outcome(each, letter, layout, case) for each in (library, NumPy))
            for one, other in zip(left, expected, strict=True):
                assert (one.shape, one.dtype.kind) == (other.shape, other.dtype.kind)
                np.testing.assert_allclose(one, other, 1e-10, 1e-10, err_msg=f"{letter} {layout}")
