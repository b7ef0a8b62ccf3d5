"""Eigenvalues by divide and conquer, by kernels alone: tridiagonal form, leaves, pairs, products."""

from __future__ import annotations

import numpy as np
import pytest
from eigen_cases import check_eigen, hermitian

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.factor.eigen import sytrd, tridiagonal_merge
from pyblasgpu.routines.lapack import eigh_divided
from pyblasgpu.routines.launch_list import cache, cached_launch_list

from .test_qr import operand


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Leaves of order three at most, and small blocks of threads."""
    monkeypatch.setattr(eigh_divided, "LEAF", 3)
    monkeypatch.setattr(tridiagonal_merge, "SHARE", 8)
    monkeypatch.setattr(sytrd, "GROUPS", 4)
    cache.clear()
    yield
    cache.clear()


def solve(a, vectors=True, blocks=1):
    """Eigenvalues, vectors and info of a stack, of which the upper triangle is not read."""
    letter = {array: letter for letter, array in zip("sdcz", "fdFD", strict=True)}[a.dtype.char]
    batch, n, _ = a.shape
    given = np.where(np.tri(n, dtype=bool), a, np.nan).astype(a.dtype)
    w = np.zeros((batch, n, 1), a.real.dtype)
    v, info = np.full_like(a, 7), np.full((batch, 1, 1), 7, a.dtype)
    config = sytrd.Sytrd(letter, 64, 64, blocks > 1)
    merge = tridiagonal_merge.TridiagonalMerge("s" if letter in "sc" else "d", 32, 64, blocks > 1)
    operands = [operand(array) for array in (w, info, v, given)]
    with override(sytrd.STEM, config), override(tridiagonal_merge.STEM, merge):
        launches = cached_launch_list(eigh_divided.emit, tuple(operands), (vectors,))
    launches.run([each.pointer for each in operands], 1.0, stream=0)
    return w.real[..., 0], v, info.view(np.int32)[:, 0, 0]


CASES = [("s", 4, 1), ("d", 12, 2), ("c", 7, 1), ("z", 6, 2), ("s", 24, 2)]


@pytest.mark.parametrize(("letter", "n", "blocks"), CASES)
def test_eigenvalues_and_vectors(letter, n, blocks):
    a = hermitian("random", letter, 2 if n < 20 else 1, n)
    w, v, info = solve(a, blocks=blocks)
    check_eigen(a, w, v)
    assert not info.any()
    values, untouched, _ = solve(a, vectors=False, blocks=blocks)
    check_eigen(a, values)
    assert (untouched == 7).all()


@pytest.mark.parametrize(
    ("letter", "kind"), [("s", "two clusters"), ("z", "signs"), ("d", "graded"), ("c", "ones"), ("s", "tiny")]
)
def test_special_matrices(letter, kind):
    a = hermitian(kind, letter, 1, 12)
    check_eigen(a, *solve(a)[:2])


def test_what_is_not_finite_stays_in_its_matrix():
    a = hermitian("random", "c", 2, 6)
    a[0, 4, 2] = np.inf
    w, v, info = solve(a)
    assert info.tolist() == [6, 0] and np.isnan(w[0]).all() and np.isnan(v[0]).all()
    check_eigen(a[1:], w[1:], v[1:])
