"""Singular values and vectors from right vectors of few digits: correction, products, results."""

from __future__ import annotations

import numpy as np
import pytest
from eigen_cases import check_singular
from qr_cases import matrix_of

from pyblasgpu.kernels.factor.eigen import svd_correction, svd_results
from pyblasgpu.routines.lapack import svd_refined
from pyblasgpu.routines.launch_list import cache, cached_launch_list
from pyblasgpu.types import DTYPES

from .test_qr import operand
from .test_routines import small_kernels

#: Errors of right vectors at first, and steps.
ERROR, STEPS = 1e-3, 4


def refine(a, v, steps=STEPS, **kernels):
    """U, singular values, the adjoint of V, and info of a stack; `kernels` stand in for those of their names."""
    letter = {array: letter for letter, array in zip("sdcz", "fdFD", strict=True)}[a.dtype.char]
    batch, m, n = a.shape
    info = np.full((batch, 1, 1), 7, a.dtype)
    sigma, vh = np.full((batch, n, 1), np.nan, a.real.dtype), np.full((batch, n * n, 1), np.nan, a.dtype)
    u = np.full_like(a, np.nan)
    operands = [operand(array) for array in (info, sigma, vh, v, a, u)]
    with pytest.MonkeyPatch.context() as patch, small_kernels(letter):
        for name, module in kernels.items():
            patch.setattr(svd_refined, name, module)
        cache.clear()
        launches = cached_launch_list(svd_refined.emit, tuple(operands), (steps,))
        launches.run([each.pointer for each in operands], 1.0, stream=0)
        cache.clear()
    return u, sigma[..., 0], vh.reshape(batch, n, n), info.view(np.int32)[:, 0, 0]


def near(a, error=ERROR):
    """Right vectors with as large an error, and as far from orthogonal."""
    noise = matrix_of("random", "z", *a.shape[:-2], a.shape[-1], a.shape[-1], seed=9)
    v = np.linalg.svd(a)[2].conj().swapaxes(1, 2) + error * (noise if a.dtype.kind == "c" else noise.real)
    return v.astype(a.dtype)


def apart(letter, m, n, batch=1):
    """Matrices whose singular values are apart."""
    u, _, vh = np.linalg.svd(matrix_of("random", letter, batch, m, n), full_matrices=False)
    return ((u * np.linspace(1, 0.2, n)) @ vh).astype(DTYPES[letter].name)


def check(letter="d", m=5, n=5, batch=2, **kernels):
    a = apart(letter, m, n, batch)
    u, sigma, vh, info = refine(a, near(a), **kernels)
    assert not info.any()
    check_singular(a, sigma, u, vh)


@pytest.mark.parametrize(("letter", "m", "n", "batch"), [("s", 5, 5, 2), ("d", 7, 4, 2), ("c", 4, 4, 3), ("z", 6, 5, 1), ("d", 1, 1, 2), ("s", 35, 34, 1)])
def test_values_and_vectors(letter, m, n, batch):
    check(letter, m, n, batch)
