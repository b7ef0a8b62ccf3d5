"""Problems without a solution, in the simulator: LAPACK's info and results, and nothing is overwritten."""

from __future__ import annotations

import numpy as np
import pytest
from lapack_calls import NAMES, check_without_columns
from scipy.linalg import lapack as scipys

from pyblasgpu import lapack
from pyblasgpu.types import DTYPES

from .test_getrf_panel import random


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


def singular(letter: str, n: int) -> np.ndarray:
    """A matrix of which row 3 has a zero on the diagonal."""
    a = np.asfortranarray(random(letter, n, n) + 3 * np.eye(n, dtype=DTYPES[letter].name))
    a[3, 3] = 0
    return a


def check(routine: str, letter: str, *arguments, **flags) -> None:
    """SciPy's result, which is what was passed, and its info; a stack has an info a matrix."""
    name = letter + routine
    expected, info = getattr(scipys, name)(*arguments, **flags)
    actual, actual_info = getattr(lapack, name)(*arguments, **flags)
    assert actual_info == info == 4
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(actual, arguments[-1])


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("letter, n", [("d", 6), ("z", 40)])
def test_triangles(letter, n, lower):
    """Triangles are one leaf, and several."""
    a = singular(letter, n)
    check("trtri", letter, a, lower=lower)
    check("trtrs", letter, a, random(letter, n, 3), lower=lower)


@pytest.mark.parametrize("letter", DTYPES)
def test_inverses_from_factors(letter):
    factor = singular(letter, 7)
    check("potri", letter, factor, lower=1)
    lu, piv, _ = getattr(scipys, f"{letter}getrf")(random(letter, 7, 7))
    lu[3, 3] = 0
    inverse, info = getattr(lapack, f"{letter}getri")(lu, piv)
    assert info == 4
    np.testing.assert_array_equal(inverse, lu)


def test_a_stack_with_one_singular_matrix():
    stack = np.stack([singular("d", 5) for _ in range(3)])
    stack[[0, 2], 3, 3] = 2
    inverse, info = lapack.dtrtri(stack, lower=1)
    np.testing.assert_array_equal(info, [0, 4, 0])
    np.testing.assert_array_equal(inverse[1], stack[1])
    for z in (0, 2):
        np.testing.assert_allclose(np.tril(inverse[z]), np.linalg.inv(np.tril(stack[z])))
    inverse, info = lapack.dpotri(stack, lower=1)
    np.testing.assert_array_equal(info, [0, 4, 0])
    np.testing.assert_array_equal(inverse[1], stack[1])
    for z in (0, 2):
        np.testing.assert_allclose(np.tril(inverse[z]), np.tril(scipys.dpotri(stack[z], 1)[0]))


@pytest.mark.parametrize("name", NAMES)
def test_systems_without_right_hand_sides(name, on_device):
    check_without_columns(name, np.copy)
    check_without_columns(name, on_device)
