"""`jacobi_columns`: LAPACK's singular values and eigenvalues, vectors, batches, special matrices."""

from __future__ import annotations

import numpy as np
import pytest
from covering import pairs
from eigen_cases import (
    KINDS,
    check_eigen,
    check_reference,
    check_singular,
    check_singular_in_one,
    hermitian,
    reference,
)
from qr_cases import SETS, matrix_of

from pyblasgpu.kernels.factor.eigen import jacobi_columns, jacobi_svd
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides

EACH = pytest.mark.parametrize("cols", jacobi_columns.SHAPES)


def decompose(
    a, sigma, u, v, info, kernels=jacobi_columns, cols: int = 16, options: int | None = None
) -> None:
    """Run the kernel on a batch; without V where that is None."""
    batch, m, n = a.shape
    best = kernels.JacobiColumns({"f": "s", "d": "d", "F": "c", "D": "z"}[a.dtype.char])
    config = best.specialize(cols, v is not None)
    options = jacobi_svd.WANTS_U if options is None else options
    v = u if v is None else v
    (a_z, *a_steps), (s_z, s_step), (u_z, *u_steps), (v_z, *v_steps) = map(strides, (a, sigma, u, v))
    steps = *a_steps, s_step, *u_steps, *v_steps, a_z, s_z, u_z, v_z, strides(info)[0]
    numbers = m, n, options, batch, *steps
    run(kernels.source(config), config.grid(batch), (a, sigma, u, v, info), numbers, ())


def check(letter="d", m=7, n=5, order="F", batch=1, kernels=jacobi_columns, cols=16, kind="random") -> None:
    """Singular values and vectors of a batch, between fences."""
    dtype, exact = DTYPES[letter], matrix_of(kind, letter, batch, m, n)
    a, a_unharmed = fenced(exact, order)
    u, u_unharmed = fenced(np.full((batch, m, n), np.nan, dtype.name), order)
    v, v_unharmed = fenced(np.full((batch, n, n), np.nan, dtype.name), order)
    sigma, sigma_unharmed = fenced(np.full((batch, n), np.nan, dtype.real), "C")
    info = np.full((batch, 2), 7, np.int32)
    decompose(a, sigma, u, v, info[:, :1], kernels, cols)
    assert (info == [0, 7]).all()
    assert all(unharmed() for unharmed in (a_unharmed, u_unharmed, v_unharmed, sigma_unharmed))
    check_singular_in_one(exact, sigma, u, v.conj().swapaxes(1, 2))


def check_symmetric(
    letter="d", n=5, order="F", batch=1, kernels=jacobi_columns, cols=16, kind="random", conj=False
) -> None:
    """Eigenvalues and vectors of a batch, between fences; the upper triangle is not read."""
    dtype, exact = DTYPES[letter], hermitian(kind, letter, batch, n)
    given = np.where(np.tri(n, dtype=bool), exact.conj() if conj else exact, np.nan).astype(dtype.name)
    if dtype.is_complex:
        given.imag[:, np.arange(n), np.arange(n)] = np.nan
    a, _ = fenced(given, order)
    v, v_unharmed = fenced(np.full((batch, n, n), np.nan, dtype.name), order)
    w, w_unharmed = fenced(np.full((batch, n), np.nan, dtype.real), "C")
    info = np.full((batch, 2), 7, np.int32)
    options = jacobi_svd.WANTS_U | kernels.SYMMETRIC | jacobi_svd.CONJ_A * conj
    decompose(a, w, v, None, info[:, :1], kernels, cols, options)
    assert (info == [0, 7]).all() and v_unharmed() and w_unharmed()
    check_eigen(exact, w, v)


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("cols, m, n", [(16, 1, 1), (16, 16, 3), (16, 11, 11), (32, 19, 18), (64, 21, 19)])
def test_values_and_vectors(letter, cols, m, n):
    check(letter, m, n, cols=cols)


@pytest.mark.parametrize("letter, cols, n", [("c", 16, 9), ("z", 16, 16), ("c", 32, 17), ("z", 32, 18)])
def test_complex_matrices(letter, cols, n):
    check_symmetric(letter, n, "CF"[n % 2], cols=cols, conj=n == 16)
    if jacobi_columns.JacobiColumns(letter).specialize(cols, True):
        check(letter, n, n - 3, cols=cols)


@pytest.mark.parametrize("order", "CF")
def test_batches(order):
    """Several matrices a warp, the last one not full."""
    check("d", 7, 4, order, batch=5)
    check_symmetric("s", 6, order, batch=5)
    check_symmetric("c", 5, order, batch=9)


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("kind", SETS)
def test_special_matrices(letter, kind):
    check(letter, 8, 6, batch=3, kind=kind)


@pytest.mark.parametrize("letter, kind", pairs(DTYPES, KINDS), ids=str)
def test_symmetric_matrices(letter, kind):
    check_symmetric(letter, 7, batch=3, kind=kind)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_eigenvalues_of_hard_matrices(n):
    a, values = reference(n)
    w, v, info = np.empty_like(values), np.empty_like(a), np.ones((len(a), 1), np.int32)
    decompose(a, w, v, None, info, options=jacobi_svd.WANTS_U | jacobi_columns.SYMMETRIC)
    assert not info.any()
    check_reference(values, w)


def mixed(letter="d", n=5, cols=16, kernels=jacobi_columns, value=np.nan, options: int | None = None) -> None:
    """What is not finite stays in its matrix: NaN there, and the others as they are alone."""
    a = matrix_of("random", letter, 4, n, n)
    a[1, 3, 2], a[1, 0], has_v = value, 0, options is None
    v_of = (lambda batch: np.empty((batch, n, n), a.dtype)) if has_v else lambda batch: None

    def solved(x):
        results = np.empty(x.shape[:2], a.dtype), np.empty_like(x), v_of(len(x)), np.ones((len(x), 1), "i")
        decompose(x, *results, kernels, cols, options)
        return results

    sigma, u, v, info = solved(a)
    assert info[:, 0].tolist() == [0, n, 0, 0]
    for results in (sigma, u, v)[: 2 + has_v]:
        assert np.isnan(results[1]).all()
    for z in (0, 2, 3):
        for one, other in zip((sigma, u, v)[: 2 + has_v], solved(a[z : z + 1]), strict=False):
            np.testing.assert_array_equal(one[z], other[0])


@pytest.mark.parametrize("letter, value", [("s", np.nan), ("d", np.inf), ("s", -np.inf)], ids=str)
def test_what_is_not_finite(letter, value):
    mixed(letter, value=value)
    mixed(letter, value=value, options=jacobi_svd.WANTS_U | jacobi_columns.SYMMETRIC)


def test_what_is_not_finite_in_a_block():
    mixed(cols=64)


def values_alone(letter="d", cols=16, kernels=jacobi_columns) -> None:
    """Nothing else is written."""
    a = matrix_of("random", letter, 2, 7, 6)
    sigma, u, info = np.empty((2, 6), a.dtype), np.full_like(a, 7), np.ones((2, 1), "i")
    decompose(a, sigma, u, None, info, kernels, cols, 0)
    check_singular(a, sigma)
    assert (u == 7).all() and not info.any()


@EACH
def test_values_alone(cols):
    values_alone(cols=cols)


@EACH
def test_too_few_sweeps(monkeypatch, cols):
    monkeypatch.setattr(jacobi_columns, "SWEEPS", 1)
    a = matrix_of("random", "d", 2, 8, 8)
    a[1] = np.diag(np.arange(8.0))
    sigma, u, v, info = np.empty((2, 8)), np.empty_like(a), np.empty_like(a), np.ones((2, 1), "i")
    decompose(a, sigma, u, v, info, cols=cols)
    assert info[:, 0].tolist() == [8, 0] and np.isfinite(sigma).all()
