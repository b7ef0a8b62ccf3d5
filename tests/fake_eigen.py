"""The kernels of eigenvalues and singular values computed with NumPy, for the stand-ins of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from fake_lu import words
from fake_routines import elements

from pyblasgpu.kernels.factor.eigen.jacobi_svd import CONJ_A, CONJ_U, CONJ_V, WANTS_V
from pyblasgpu.operands import Operand
from pyblasgpu.types import DTYPES


def jacobi_eigh(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Whole matrices, several a block."""
    n, vectors, conj, lanes, batch, a_rs, a_cs, w_step, v_rs, v_cs, *steps, info_step = numbers
    config, (a_step, w_batch, v_step, work_step) = fake.source.config, steps
    assert grid == (config.grid(n, batch), 1, 1) and lanes == config.lanes(n) and n <= config.ORDER
    assert config.RESIDENT_VECTORS or not vectors or work_step >= n * config.ldv
    a = fake.view(pointers[0], n, n, a_rs, a_cs, batch, a_step, bool(conj))
    w = _reals(fake.dtype, pointers[1], n, w_step, batch, w_batch)
    v = fake.view(pointers[2], n, n, v_rs, v_cs, batch, v_step) if vectors else [None] * batch
    info = words(pointers[4], 1, 1, batch, info_step)
    for z in range(batch):
        is_finite = np.isfinite(np.tril(a[z])).all()
        values, columns = np.linalg.eigh(a[z] if is_finite else np.eye(n), "L")
        w[z], info[z, 0] = values if is_finite else np.nan, 0 if is_finite else n
        if vectors:
            v[z] = columns if is_finite else np.nan


def _reals(dtype: Any, pointer: int, n: int, step: int, batch: int, stride: int) -> np.ndarray:
    """A real vector of each matrix."""
    real = DTYPES["s" if dtype.real_size == 4 else "d"]
    return elements(Operand(pointer, n, 1, step, 1, real, False, batch, stride))[..., 0]


def jacobi_svd(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Whole matrices with no fewer rows than columns, several a block."""
    m, n, options, lanes, width, batch, a_rs, a_cs, step, *steps = numbers
    u_rs, u_cs, v_rs, v_cs, a_step, s_batch, u_step, v_step, info_step = steps
    config, vectors = fake.source.config, bool(options & WANTS_V)
    rows = m + n * vectors
    team = config.team(rows, n)
    assert m >= n and config.holds(rows, n) and (lanes, width) == (team.lanes, team.width)
    assert grid == (config.grid(team, batch), 1, 1)
    a = fake.view(pointers[0], m, n, a_rs, a_cs, batch, a_step, bool(options & CONJ_A))
    sigma = _reals(fake.dtype, pointers[1], n, step, batch, s_batch)
    u = fake.view(pointers[2], m, n, u_rs, u_cs, batch, u_step) if vectors else None
    v = fake.view(pointers[3], n, n, v_rs, v_cs, batch, v_step) if vectors else None
    info = words(pointers[4], 1, 1, batch, info_step)
    for z in range(batch):
        is_finite = np.isfinite(a[z]).all()
        left, values, right = np.linalg.svd(a[z] if is_finite else np.eye(m, n), full_matrices=False)
        sigma[z], info[z, 0] = values if is_finite else np.nan, 0 if is_finite else n
        if u is not None and v is not None:
            u[z] = (left.conj() if options & CONJ_U else left) if is_finite else np.nan
            v[z] = (right.T if options & CONJ_V else right.conj().T) if is_finite else np.nan
