"""Calls on arrays of each library, by rows, by columns and strided: what they leave is what NumPy's do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from library_cases import CASES, MORE_CASES, NumPy, Routines, evaluated, fetched, values

from pyblasgpu import lapack, linalg
from pyblasgpu.types import DTYPES

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
            check(library, letter, layout, case)


#: linalg overwrites arrays of every layout on a device, and as SciPy does on the host.
REPEATED = [case for case in MORE_CASES.strip().split("\n") if not re.match("linalg.*overwrite", case)]


@pytest.mark.parametrize("case", REPEATED)
@pytest.mark.parametrize("library", [CuPy, Torch], ids=lambda library: library.__name__)
def test_more_calls(library, case):
    for layout in ("C", "F", "strided"):
        check(library, "d", layout, case)


def check(library: Any, letter: str, layout: str, case: str) -> None:
    """A call, and the same on other arrays, which is repeated as it is kept, leave what NumPy's does."""
    libraries = (library, library, NumPy)
    first, repeated, expected = (outcome(each, letter, layout, case) for each in libraries)
    for one, again, other in zip(first, repeated, expected, strict=True):
        assert (one.shape, one.dtype.kind) == (other.shape, other.dtype.kind)
        np.testing.assert_allclose(one, other, 1e-10, 1e-10, err_msg=f"{letter} {layout}")
        np.testing.assert_array_equal(again, one, err_msg=f"repeated, {letter} {layout}")


@pytest.mark.parametrize("library", [CuPy, Torch, Numba], ids=lambda library: library.__name__)
@pytest.mark.parametrize("n", [5, 40, 200])
def test_info_of_a_stack_is_a_dense_array(library, n):
    """Stacks go by kernels for small matrices, leaves and panels; the second matrix fails at its last row."""
    for letter in "sdcz":
        a = np.broadcast_to(4 * np.eye(n, dtype=DTYPES[letter].name), (3, n, n)).copy()
        a[1, -1, -1] = -1
        singular = np.where(a == -1, 0, a)
        for name, array in (("potrf", a), ("potri", singular), ("trtri", singular), ("getrf", singular)):
            for _ in range(2):  # checked, then repeated
                info = getattr(lapack, name)(library.put(array))[-1]
                assert tuple(info.shape) == (3,) and library.get(info).dtype == np.int32
                np.testing.assert_array_equal(library.get(info), [0, n, 0], err_msg=f"{letter} {name}")
            one = getattr(lapack, name)(library.put(array[1]))[-1]
            assert tuple(one.shape) == () and int(library.get(one)) == n


@pytest.mark.parametrize("of", [CuPy, Torch, Numba, NumPy], ids=lambda library: library.__name__)
@pytest.mark.parametrize("library", [CuPy, Torch, Numba], ids=lambda library: library.__name__)
@pytest.mark.parametrize("letter", "dz")
def test_pivots_of_any_library(letter, library, of):
    """Pivots are right at each repeated call."""
    found = values(DTYPES[letter])
    g, p, c = found["g"], found["p"], found["c"]
    named = Routines(lapack, letter)
    lu, piv, _ = named.getrf(g)
    ldu, ipiv, _ = named.sytrf(p, 1)
    factors, others, right = (library.put(np.asfortranarray(each)) for each in (lu, ldu, c))
    for _ in range(3):
        for x in (
            named.getrs(factors, of.put(piv), right)[0],
            linalg.lu_solve((factors, of.put(piv)), right),
        ):
            np.testing.assert_allclose(g @ library.get(x), c, 1e-10, 1e-10)
        inverse = library.get(named.getri(factors, of.put(piv))[0])
        np.testing.assert_allclose(g @ inverse, np.eye(len(g)), 1e-10, 1e-10)
        x, _ = named.sytrs(others, of.put(ipiv), right, 1)
        expected, _ = named.sytrs(ldu, ipiv, c, 1)
        np.testing.assert_allclose(library.get(x), expected, 1e-9, 1e-9)
