"""`jacobi_eigh` and `jacobi_thread`: LAPACK's eigenvalues, orthonormal vectors, batches, special matrices."""

from __future__ import annotations

import numpy as np
import pytest
from covering import pairs
from eigen_cases import KINDS, check_eigen, check_reference, hermitian, reference

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.factor.eigen import jacobi_eigh, jacobi_thread
from pyblasgpu.routines.lapack import eigh_batched
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES, Uplo

from .launching import run, strides
from .test_qr import operand

#: Threads of a block and of a matrix, and its largest order; THREAD: those of `jacobi_thread`.
WARPS, BLOCK, THREAD = (32, 32, 32), (64, 64, 12), (32, 4)


def decompose(a, w, v, info, kernels=jacobi_eigh, threads=WARPS, vectors=True, conj=False) -> None:
    """Run the kernel on a batch."""
    batch, n, _ = a.shape
    letter = {array: letter for letter, array in zip("sdcz", "fdFD", strict=True)}[a.dtype.char]
    if threads is THREAD:
        kernels = jacobi_thread if kernels is jacobi_eigh else kernels
        config = kernels.JacobiThread(letter, *threads)
        blocks, numbers = config.grid(batch), (n, int(vectors), int(conj), batch)
    else:
        config = kernels.JacobiEigh(letter, *threads)
        blocks, numbers = config.grid(n, batch), (n, int(vectors), int(conj), config.lanes(n), batch)
    (a_z, *a_steps), (w_z, w_step), (v_z, *v_steps) = strides(a), strides(w), strides(v)
    steps = *a_steps, w_step, *v_steps, a_z, w_z, v_z, strides(info)[0]
    run(kernels.source(config), blocks, (a, w, v, info), (*numbers, *steps), ())


def check(
    letter="d", n=5, order="F", batch=1, kernels=jacobi_eigh, threads=WARPS, conj=False, kind="random"
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
    decompose(a, w, v, info[:, :1], kernels, threads, conj=conj)
    assert (info == [0, 7]).all() and v_unharmed() and w_unharmed()
    check_eigen(exact, w, v)


EACH = pytest.mark.parametrize("threads", [WARPS, BLOCK], ids=["warps", "block"])
EVERY = pytest.mark.parametrize("threads", [WARPS, BLOCK, THREAD], ids=["warps", "block", "thread"])


@EACH
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_eigenvalues_of_hard_matrices(threads, n):
    a, values = reference(n)
    w, v, info = np.empty_like(values), np.empty_like(a), np.ones((len(a), 1), np.int32)
    decompose(a, w, v, info, threads=threads)
    assert not info.any()
    check_reference(values, w)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12])
@EACH
@pytest.mark.parametrize("letter", "cz")
def test_eigenvalues_and_vectors(letter, threads, n):
    check(letter, n, threads=threads)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("letter", DTYPES)
def test_matrices_of_a_thread(letter, n):
    check(letter, n, "CF"[n % 2], 2 if n < 4 else 33, threads=THREAD, conj=n == 3)


@pytest.mark.parametrize(
    "letter, batch, order", pairs("cz", [(3, 21), (7, 5), (9, 3), (17, 1)], "CF"), ids=str
)
def test_batches(letter, batch, order):
    """Several matrices a warp, the last one not full."""
    n, count = batch
    check(letter, n, order, count)


@EACH
def test_conjugated_matrices(threads):
    check("z", 6, batch=2, threads=threads, conj=True)


@pytest.mark.parametrize("letter, threads, kind", pairs("cz", [WARPS, BLOCK], KINDS), ids=str)
def test_special_matrices(letter, threads, kind):
    check(letter, 7, batch=2, threads=threads, kind=kind)


@pytest.mark.parametrize("letter, kind", pairs(DTYPES, KINDS), ids=str)
def test_special_matrices_of_a_thread(letter, kind):
    check(letter, 4, batch=2, threads=THREAD, kind=kind)


def mixed(letter="d", n=5, threads=WARPS, kernels=jacobi_eigh, value=np.nan) -> None:
    """What is not finite stays in its matrix: NaN there, and the others as they are alone."""
    a = hermitian("random", letter, 4, n)
    a[1, 3, 2] = a[1, 2, 2] = value
    alone = []
    for z in (0, 2, 3):
        v, w = np.empty_like(a[:1]), np.empty((1, n), a.real.dtype)
        decompose(a[z : z + 1], w, v, np.ones((1, 1), np.int32), kernels, threads)
        alone.append((w[0], v[0]))
    w, info = np.empty((4, n), a.real.dtype), np.ones((4, 1), np.int32)
    decompose(a, w, a, info, kernels, threads)  # V in place of A
    assert info[:, 0].tolist() == [0, n, 0, 0] and np.isnan(w[1]).all() and np.isnan(a[1]).all()
    for z, (values, vectors) in zip((0, 2, 3), alone, strict=True):
        np.testing.assert_array_equal(w[z], values)
        np.testing.assert_array_equal(a[z], vectors)


@pytest.mark.parametrize(
    "letter, threads, value", pairs("cz", [WARPS, BLOCK, THREAD], [np.nan, np.inf, -np.inf]), ids=str
)
def test_what_is_not_finite(letter, threads, value):
    mixed(letter, 4 if threads is THREAD else 5, threads, value=value)


def values_alone(letter="d", n=6, threads=WARPS, kernels=jacobi_eigh) -> None:
    """Eigenvalues are those that there are with vectors; V is not touched."""
    a = hermitian("random", letter, 2, n)
    v, info = np.full_like(a, 7), np.ones((2, 1), np.int32)
    w, expected = np.empty((2, 2 * n), a.real.dtype)[:, ::2], np.empty((2, n), a.real.dtype)
    decompose(a, expected, np.empty_like(a), info, kernels, threads)
    decompose(a, w, v, info, kernels, threads, vectors=False)
    np.testing.assert_array_equal(w, expected)
    assert (v == 7).all() and not info.any()


@pytest.mark.parametrize("letter", "cz")
@EVERY
def test_values_alone(letter, threads):
    values_alone(letter, 4 if threads is THREAD else 6, threads=threads)


@EVERY
def test_too_few_sweeps(monkeypatch, threads):
    n = 4 if threads is THREAD else 8
    for kernels in (jacobi_eigh, jacobi_thread):
        monkeypatch.setattr(kernels, "SWEEPS", 1)
    a = hermitian("random", "d", 2, n)
    a[1] = np.diag(np.arange(float(n)))
    w, info = np.empty((2, n)), np.ones((2, 1), np.int32)
    decompose(a, w, np.empty_like(a), info, threads=threads)
    assert info[:, 0].tolist() == [n, 0] and np.isfinite(w).all()


@pytest.mark.parametrize("threads", [WARPS, BLOCK], ids=["warps", "block"])
@pytest.mark.parametrize("uplo", Uplo)
@pytest.mark.parametrize("letter", "dc")
def test_launch_lists(letter, uplo, threads):
    """Either triangle; eigenvalues as reals, and as the real parts of elements."""
    a, n = hermitian("random", letter, 3, 6), 6
    half = np.tril(a) if uplo is Uplo.LOWER else np.triu(a)
    for w in (np.zeros((3, n, 1), a.real.dtype), np.zeros((3, n, 1), a.dtype)):
        v, info = np.zeros_like(a), np.full((3, 1, 1), 7, a.dtype)
        with override(jacobi_eigh.STEM, jacobi_eigh.JacobiEigh(letter, *threads)):
            operands = [operand(array) for array in (w, info, v, half)]
            launches = eigh_batched.launch_list(*operands, uplo=uplo, vectors=True)
        launches.run([each.pointer for each in operands], 1.0, stream=0)
        check_eigen(a, w.real[..., 0], v)
        assert not info.view(np.int32)[:, 0, 0].any() and not w.imag.any()
