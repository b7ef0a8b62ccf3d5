"""Eigenvalues as launch lists, by kernels computed with NumPy: orders of all kernels, batches, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from eigen_cases import check_eigen, hermitian
from fake_kernels import install, operand

from pyblasgpu.gpu.device import known
from pyblasgpu.routines.lapack import eigh_batched
from pyblasgpu.types import DTYPES, Uplo


@pytest.fixture
def kernels(monkeypatch):
    return install(monkeypatch)


def eigh(a: np.ndarray, uplo=Uplo.LOWER, vectors=True, order="C", is_real=True):
    """Eigenvalues, vectors and info of a stack."""
    dtype, (batch, n, _) = next(x for x in DTYPES.values() if x.name == a.dtype.name), a.shape
    real = DTYPES["s" if dtype.real_size == 4 else "d"]
    kind = real if is_real else dtype
    w, info = np.zeros((batch, n, 1), kind.name), np.full((batch, 1, 1), 7, dtype.name)
    v = np.full((batch, n, n), 7, dtype.name)
    v = v if order == "C" else v.swapaxes(1, 2)
    operands = [operand(w, kind), *(operand(array, dtype) for array in (info, v, a))]
    launches = eigh_batched.launch_list(*operands, uplo=uplo, vectors=vectors)
    launches.run([each.pointer for each in operands], 1.0, stream=0)
    return w[..., 0], v, info.view(np.int32)[:, 0, 0]


@pytest.mark.parametrize("n", [1, 31, 33, 65, 129, 160])
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("uplo", Uplo)
def test_eigenvalues_and_vectors(kernels, letter, uplo, n):
    a = hermitian("random", letter, 3, n)
    half = np.tril(a) if uplo is Uplo.LOWER else np.triu(a)
    for order in "CF":
        w, v, info = eigh(half, uplo, order=order)
        check_eigen(a, w, v)
        assert not info.any()
    values, v, _ = eigh(half, uplo, vectors=False, is_real=False)
    check_eigen(a, values.real)
    assert (v == 7).all()
    assert {name for name, *_ in kernels.launches} == {"jacobi_eigh"}


def test_large_batches_are_one_launch(kernels):
    w, v, _ = eigh(hermitian("random", "d", 1, 3).repeat(70_000, axis=0))
    assert len(kernels.launches) == 1
    check_eigen(hermitian("random", "d", 1, 3), w[-1:], v[-1:])


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize("letter", DTYPES)
def test_the_largest_order(letter, name):
    device, dtype = known(name), DTYPES[letter]
    largest = eigh_batched.max_order(dtype, device)
    assert largest >= 64 and largest % 2 == 0
    assert largest == 256 or letter != "s"
