"""The kernels of QR factors computed with NumPy, for the stand-ins of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from fake_lu import words
from scipy.linalg.lapack import get_lapack_funcs

from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.factor.clusters import largest_cluster
from pyblasgpu.kernels.factor.qr import orhr_leaf as kernel_of_vectors
from pyblasgpu.kernels.factor.qr.geqrf_panel import SPREAD


def geqrf_panel(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Panels of a batch, with V and T."""
    m, n, above, tau_step, *steps, v_cs, t_cs, tau_batch, a_batch, v_batch, t_batch, _ = numbers
    config, batch, size = fake.source.config, grid[2], fake.source.config.dtype_facts.itemsize
    blocks = config.grid(m) if config.KIND == SPREAD else 1
    assert grid[:2] == (blocks, 1) and m >= n and n <= config.COLS and m <= blocks * config.block_rows
    assert config.KIND != SPREAD or config.HAS_CLUSTERS or blocks * batch <= known("h200").sm_count
    assert not config.HAS_CLUSTERS or blocks <= largest_cluster(known("h200"))
    a = fake.view(pointers[1], m, n, *steps, batch, a_batch)
    tau = fake.view(pointers[0], n, 1, tau_step, 1, batch, tau_batch)
    for z in range(batch):
        _factor(tau[z], a[z])
    v = fake.view(pointers[2] - above * size, above + m, n, 1, v_cs, batch, v_batch)
    v[:, :above], v[:, above:] = 0, np.tril(a, -1) + np.eye(m, n)
    t = fake.view(pointers[3], n, n, 1, t_cs, batch, t_batch)
    t[...] = v.swapaxes(-1, -2).conj() @ v
    _triangles(tau[..., 0], t)


def geqrf_small(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Small matrices of a batch; panels with V, and where there is a stride of T with that."""
    m, n, above, tau_step, *steps, v_cs, t_cs, tau_batch, a_batch, v_batch, t_batch = numbers
    config, batch, size = fake.source.config, grid[2], fake.source.config.dtype_facts.itemsize
    assert grid[:2] == (1, 1) and n <= m <= config.ROWS and n <= config.COLS
    a = fake.view(pointers[1], m, n, *steps, batch, a_batch)
    tau = fake.view(pointers[0], n, 1, tau_step, 1, batch, tau_batch)
    if not config.IS_PANEL:
        a[...] = fake.view(pointers[2], m, n, *steps, batch, v_batch)
    for z in range(batch):
        _factor(tau[z], a[z])
    if config.IS_PANEL:
        v = fake.view(pointers[2] - above * size, above + m, n, 1, v_cs, batch, v_batch)
        v[:, :above], v[:, above:] = 0, np.tril(a, -1) + np.eye(m, n)
        if t_cs:
            t = fake.view(pointers[3], n, n, 1, t_cs, batch, t_batch)
            t[...] = v.swapaxes(-1, -2).conj() @ v
            _triangles(tau[..., 0], t)


def geqrf_tall(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """A panel of many rows."""
    m, n, always, tau_step, *steps = numbers
    assert grid[1:] == (1, 1) and m >= n and n <= fake.source.config.MOST
    tau, _, a, info, _ = pointers
    if always or words(info, 1, 1, 1, 0)[0]:
        _factor(fake.view(tau, n, 1, tau_step, 1, 1, 0)[0], fake.view(a, m, n, *steps, 1, 0)[0])


def geqp3(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Factors of a batch with pivots, or of those with an info without, from a copy, which is spoilt."""
    m, n, pivots, tau_step, jpvt_step, *steps, w_cs, tau_batch, jpvt_batch, a_batch, w_batch, _, _, i_step = (
        numbers
    )
    (blocks, _, batch), config, k = grid, fake.source.config, min(m, n)
    best = type(config)(config.dtype)
    assert best.specialize(m, n, batch, known("h200").sm_count) == (config, blocks)
    assert blocks * batch <= known("h200").sm_count or blocks == 1
    w = fake.view(pointers[2], m, n, 1, w_cs, batch, w_batch)
    a = fake.view(pointers[1], m, n, *steps, batch, a_batch)
    tau = fake.view(pointers[0], k, 1, tau_step, 1, batch, tau_batch)
    jpvt = words(pointers[4], n, jpvt_step, batch, jpvt_batch) if pivots else None
    info = words(pointers[6], 1, 1, batch, i_step)
    for z in range(batch):
        if not pivots:
            if info[z, 0]:
                a[z] = w[z]
                _factor(tau[z], a[z])
            continue
        a[z], jpvt[z], tau[z, :, 0], _, _ = get_lapack_funcs("geqp3", (a,))(w[z])
    w[...] = np.nan


def geqp3_panel(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Some steps with pivots: multipliers of vectors, and R, of columns that stay as they were."""
    m, n, first, count, tau_step, jpvt_step, lda, tau_batch, jpvt_batch, a_batch, g_batch, _ = numbers
    (blocks, _, batch), steps = grid, fake.source.config.STEPS
    assert blocks * batch <= known("h200").sm_count and first + count <= min(m, n) and count <= steps
    a = fake.view(pointers[1], m, n, 1, lda, batch, a_batch)
    g = fake.view(pointers[2], 2 * steps, n, 1, 2 * steps, batch, g_batch)
    tau = fake.view(pointers[0], min(m, n), 1, tau_step, 1, batch, tau_batch)
    jpvt = words(pointers[4], n, jpvt_step, batch, jpvt_batch)
    if count == 0:
        jpvt[...] = np.arange(1, n + 1) if first == 0 else jpvt
    for z in range(batch if count else 0):
        w = a[z].copy()
        for j in range(first, first + count):
            p = j + int(np.argmax(np.linalg.norm(w[j:, j:], axis=0)))
            for array in (w, a[z], g[z], jpvt[z][None]):
                array[:, [j, p]] = array[:, [p, j]]
            _factor(tau[z, j : j + 1], w[j:, j : j + 1])
            v = np.concatenate([[1], w[j + 1 :, j]])
            factors = np.conj(tau[z, j]) * (v.conj() @ w[j:, j + 1 :])
            w[j:, j + 1 :] -= np.outer(v, factors)
            g[z, j - first, j + 1 :], g[z, steps + j - first, j + 1 :] = factors, w[j, j + 1 :]
        a[z, :, first : first + count] = w[:, first : first + count]


def _factor(tau: np.ndarray, a: np.ndarray) -> None:
    a[...], tau[:, 0], _, _ = get_lapack_funcs("geqrf", (a,))(a)


def larft_leaf(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """The triangle of a block of reflectors, from the products of their vectors."""
    n, tau_step, ldt, tau_batch, t_batch = numbers
    batch = grid[2]
    assert grid[:2] == (1, 1) and n <= fake.source.config.ORDER
    tau = fake.view(pointers[0], n, 1, tau_step, 1, batch, tau_batch)
    t = fake.view(pointers[1], n, n, 1, ldt, batch, t_batch)
    _triangles(tau[..., 0], t)


def _triangles(tau: np.ndarray, t: np.ndarray) -> None:
    """T in place of V^H V."""
    for factors, triangle in zip(tau, t, strict=True):
        products = triangle.copy()
        triangle[...] = 0
        for i, factor in enumerate(factors):
            triangle[:i, i] = -factor * (triangle[:i, :i] @ products[:i, i])
            triangle[i, i] = factor


def reflector_copy(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """The vectors of reflectors with their ones and zeros, or columns of the identity."""
    m, n, first, copies, a_rs, a_cs, v_rs, v_cs, a_batch, v_batch = numbers
    batch = grid[2]
    assert grid[:2] == (fake.source.config.grid(m, n), 1)
    v = fake.view(pointers[1], m, n, v_rs, v_cs, batch, v_batch)
    below = np.tri(m, n, -first - 1) > 0
    if copies:
        a = fake.view(pointers[0], m, n, a_rs, a_cs, batch, a_batch)
        v[...] = np.where(below, a, np.eye(m, n, -first))
    else:
        v[...] = np.eye(m, n, -first)


def orhr_leaf(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """The square on top of the vectors of orthonormal columns, R and tau, where the columns allow it."""
    n, tau_step, a_rs, a_cs, ld, tau_batch, a_batch, r_batch, i_step = numbers
    batch = grid[2]
    assert grid[:2] == (1, 1) and n <= fake.source.config.ORDER
    tau = fake.view(pointers[0], n, 1, tau_step, 1, batch, tau_batch)
    a = fake.view(pointers[1], n, n, a_rs, a_cs, batch, a_batch)
    first, second, r = (fake.view(each, n, n, 1, ld, batch, r_batch) for each in pointers[2:5])
    info, size = words(pointers[5], 1, 1, batch, i_step), a.real.itemsize
    for z in range(batch):
        near, departure = second[z].conj().T, np.abs(second[z] - np.eye(n))
        small = ~(np.diagonal(first[z]).real >= kernel_of_vectors.SMALL[size])
        if info[z, 0] or not np.square(departure).sum() < kernel_of_vectors.DEPARTURE or small.any():
            info[z, 0] = info[z, 0] or 1
            continue
        w, signs, factors = a[z].copy(), np.ones(n), np.empty(n, a.dtype)
        for i in range(n):
            signs[i] = -1 if w[i, i].real >= 0 else 1
            w[i, i:] -= signs[i] * near[i, i:]
            w[i + 1 :, i] /= w[i, i]
            w[i + 1 :, i + 1 :] -= np.outer(w[i + 1 :, i], w[i, i + 1 :])
            factors[i] = -signs[i] * w[i, i] / near[i, i].real
        if not (factors.real <= kernel_of_vectors.MOST_TAU[size]).all():
            info[z, 0] = 1
            continue
        upper = signs[:, None] * np.triu(r[z])
        upper[np.diag_indices(n)] = upper.diagonal().real
        a[z], tau[z, :, 0], r[z] = np.tril(w, -1) + upper, factors, np.triu(w)
