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


def solve(a, vectors=True, blocks=1, **kernels):
    """Eigenvalues, vectors and info of a stack, of which the upper triangle is not read: by leaves of order
    three at most, and small blocks of threads. `kernels` stand in for those of their names.
    """
    letter = {array: letter for letter, array in zip("sdcz", "fdFD", strict=True)}[a.dtype.char]
    batch, n, _ = a.shape
    given = np.where(np.tri(n, dtype=bool), a, np.nan).astype(a.dtype)
    w = np.zeros((batch, n, 1), a.real.dtype)
    v, info = np.full_like(a, 7), np.full((batch, 1, 1), 7, a.dtype)
    operands = [operand(array) for array in (w, info, v, given)]
    config = sytrd.Sytrd(letter, 64, 64, blocks > 1)
    merge = tridiagonal_merge.TridiagonalMerge("s" if letter in "sc" else "d", 32, 64, blocks > 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eigh_divided, "LEAF", 3)
        patch.setattr(sytrd, "GROUPS", 4)
        patch.setattr(tridiagonal_merge, "SHARE", 8)
        for name, module in kernels.items():
            patch.setattr(eigh_divided, name, module)
        cache.clear()
        with override(sytrd.STEM, config), override(tridiagonal_merge.STEM, merge):
            launches = cached_launch_list(eigh_divided.emit, tuple(operands), (vectors,))
        launches.run([each.pointer for each in operands], 1.0, stream=0)
        cache.clear()
    return w[..., 0], v, info.view(np.int32)[:, 0, 0]


def check(letter="d", n=6, kind="random", batch=1, blocks=1, values=False, **kernels) -> None:
    """Eigenvalues and vectors; with `values` those alone, too."""
    a = hermitian(kind, letter, batch, n)
    w, v, info = solve(a, blocks=blocks, **kernels)
    check_eigen(a, w, v)
    assert not info.any()
    if values:
        w, untouched, _ = solve(a, vectors=False, blocks=blocks, **kernels)
        check_eigen(a, w)
        assert (untouched == 7).all()


def mixed(**kernels) -> None:
    """What is not finite stays in its matrix."""
    a = hermitian("random", "c", 2, 6)
    a[0, 4, 2] = np.inf
    w, v, info = solve(a, **kernels)
    assert info.tolist() == [6, 0] and np.isnan(w[0]).all() and np.isnan(v[0]).all()
    check_eigen(a[1:], w[1:], v[1:])


CASES = [("s", 4, 1, 2), ("d", 12, 2, 2), ("c", 7, 1, 2), ("z", 6, 2, 2), ("s", 24, 2, 1)]


@pytest.mark.parametrize(("letter", "n", "blocks", "batch"), CASES)
def test_eigenvalues_and_vectors(letter, n, blocks, batch):
    check(letter, n, batch=batch, blocks=blocks, values=n < 20)


SPECIAL = [("s", "two clusters"), ("z", "signs"), ("d", "graded"), ("c", "ones"), ("s", "tiny")]


@pytest.mark.parametrize(("letter", "kind"), SPECIAL)
def test_special_matrices(letter, kind):
    check(letter, 12, kind)


def test_what_is_not_finite():
    mixed()
