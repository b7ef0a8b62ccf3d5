"""`jacobi_svd`: LAPACK's singular values, orthonormal vectors, batches, any strides, special matrices."""

from __future__ import annotations

import numpy as np
import pytest
from covering import by_precision, pairs
from eigen_cases import check_singular, check_singular_in_one
from qr_cases import SETS, matrix_of

from pyblasgpu.kernels.factor.eigen import jacobi_svd
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides

#: Threads of a block and of a matrix, and kilobytes.
WARPS, BLOCK = (32, 32, 32), (64, 64, 32)


def decompose(
    a, sigma, u, v, info, kernels=jacobi_svd, threads=WARPS, options: int | None = None, conj: int = 0
) -> None:
    """Run the kernel on a batch; V, not its adjoint, is written."""
    batch, m, n = a.shape
    letter = {array: letter for letter, array in zip("sdcz", "fdFD", strict=True)}[a.dtype.char]
    config = kernels.JacobiSvd(letter, *threads)
    options = kernels.WANTS_U | kernels.WANTS_V if options is None else options
    rows = m + n if options & kernels.WANTS_V else m
    assert config.holds(rows, n)
    team = config.team(rows, n)
    numbers = m, n, options | conj, team.lanes, team.width, batch
    (a_z, *a_steps), (s_z, s_step), (u_z, *u_steps), (v_z, *v_steps) = map(strides, (a, sigma, u, v))
    steps = *a_steps, s_step, *u_steps, *v_steps, a_z, s_z, u_z, v_z, strides(info)[0]
    run(kernels.source(config), config.grid(team, batch), (a, sigma, u, v, info), (*numbers, *steps), ())


def check(
    letter="d", m=7, n=5, order="F", batch=1, kernels=jacobi_svd, threads=WARPS, kind="random", conj=0
) -> None:
    """Singular values and vectors of a batch, between fences."""
    dtype, exact = DTYPES[letter], matrix_of(kind, letter, batch, m, n)
    a, a_unharmed = fenced(exact.conj() if conj & jacobi_svd.CONJ_A else exact, order)
    u, u_unharmed = fenced(np.full((batch, m, n), np.nan, dtype.name), order)
    v, v_unharmed = fenced(np.full((batch, n, n), np.nan, dtype.name), order)
    sigma, sigma_unharmed = fenced(np.full((batch, n), np.nan, dtype.real), "C")
    info = np.full((batch, 2), 7, np.int32)
    decompose(a, sigma, u, v, info[:, :1], kernels, threads, conj=conj)
    assert (info == [0, 7]).all()
    assert all(unharmed() for unharmed in (a_unharmed, u_unharmed, v_unharmed, sigma_unharmed))
    u = u.conj() if conj & jacobi_svd.CONJ_U else u
    v = v.conj() if conj & jacobi_svd.CONJ_V else v
    check_singular_in_one(exact, sigma, u, v.conj().swapaxes(1, 2))


EACH = pytest.mark.parametrize("threads", [WARPS, BLOCK], ids=["warps", "block"])


SHAPES = [(1, 1), (5, 1), (2, 2), (3, 3), (9, 2), (6, 5), (8, 8), (40, 3), (13, 11)]
BATCHES = [(3, 3, 9), (7, 4, 5), (9, 7, 3), (17, 16, 1)]


@pytest.mark.parametrize("letter, shape, threads", by_precision(SHAPES, [WARPS, BLOCK]), ids=str)
def test_values_and_vectors(letter, shape, threads):
    check(letter, *shape, threads=threads)


@pytest.mark.parametrize("letter, batch, order", pairs("sz", BATCHES, "CF"), ids=str)
def test_batches(letter, batch, order):
    """Several matrices a warp, the last one not full."""
    m, n, count = batch
    check(letter, m, n, order, count)


@pytest.mark.parametrize("conj", [jacobi_svd.CONJ_A, jacobi_svd.CONJ_U, jacobi_svd.CONJ_V])
@EACH
def test_conjugated_matrices(threads, conj):
    check("z", 6, 4, threads=threads, conj=conj)


@pytest.mark.parametrize("letter, threads, kind", pairs(DTYPES, [WARPS, BLOCK], SETS), ids=str)
def test_special_matrices(letter, threads, kind):
    check(letter, 8, 6, batch=3, threads=threads, kind=kind)


def results(a):
    """Arrays for the results of a batch."""
    batch, _, n = a.shape
    return (
        np.empty((batch, n), a.real.dtype),
        np.empty_like(a),
        np.empty_like(a[:, :n]),
        np.ones((batch, 1), "i"),
    )


def mixed(letter="d", n=5, threads=WARPS, kernels=jacobi_svd, value=np.nan) -> None:
    """What is not finite stays in its matrix: NaN there, and the others as they are alone."""
    a = matrix_of("random", letter, 4, n + 2, n)
    a[1, 3, 2], a[1, :, 0] = value, 0
    alone = []
    for z in (0, 2, 3):
        sigma, u, v, info = results(a[z : z + 1])
        decompose(a[z : z + 1], sigma, u, v, info, kernels, threads)
        alone.append((sigma[0], u[0], v[0]))
    sigma, _, v, info = results(a)
    decompose(a, sigma, a, v, info, kernels, threads)  # U in place of A
    assert info[:, 0].tolist() == [0, n, 0, 0]
    assert all(np.isnan(each[1]).all() for each in (sigma, a, v))
    for z, expected in zip((0, 2, 3), alone, strict=True):
        for one, other in zip((sigma[z], a[z], v[z]), expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "letter, threads, value", pairs("sz", [WARPS, BLOCK], [np.nan, np.inf, -np.inf]), ids=str
)
def test_what_is_not_finite(letter, threads, value):
    mixed(letter, threads=threads, value=value)


def values_alone(letter="d", threads=WARPS, kernels=jacobi_svd) -> None:
    """Nothing else is written."""
    a = matrix_of("random", letter, 2, 7, 6)
    sigma, u, v, info = results(a)
    u[...], v[...], given = 7, 7, a.copy()
    decompose(a, sigma, u, v, info, kernels, threads, options=0)
    check_singular(a, sigma)
    assert (u == 7).all() and (v == 7).all() and not info.any()
    np.testing.assert_array_equal(a, given)


@pytest.mark.parametrize("letter", "sz")
@EACH
def test_values_alone(letter, threads):
    values_alone(letter, threads=threads)


@EACH
def test_too_few_sweeps(monkeypatch, threads):
    monkeypatch.setattr(jacobi_svd, "SWEEPS", 1)
    a = matrix_of("random", "d", 2, 8, 8)
    a[1] = np.diag(np.arange(8.0))
    sigma, u, v, info = results(a)
    decompose(a, sigma, u, v, info, threads=threads)
    assert info[:, 0].tolist() == [8, 0] and np.isfinite(sigma).all()
