"""The kernels of eigenvalues and singular values computed with NumPy, for the stand-ins of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from fake_lu import words
from fake_routines import elements

from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.factor.eigen.band_chase import FILLS
from pyblasgpu.kernels.factor.eigen.band_chase import WANTS_VECTORS as WANTS_REFLECTORS
from pyblasgpu.kernels.factor.eigen.jacobi_columns import SYMMETRIC
from pyblasgpu.kernels.factor.eigen.jacobi_svd import CONJ_A, CONJ_U, CONJ_V, WANTS_U, WANTS_V
from pyblasgpu.kernels.factor.eigen.svd_correction import CLOSE, LARGE, LEAST
from pyblasgpu.kernels.factor.eigen.svd_results import CONJ_U as KEPT_U
from pyblasgpu.kernels.factor.eigen.svd_results import CONJ_V as KEPT_V
from pyblasgpu.kernels.factor.eigen.svd_results import LIMIT
from pyblasgpu.kernels.factor.eigen.sytrd_steps import BEYOND
from pyblasgpu.kernels.factor.eigen.tridiagonal_merge import IS_LAST, WANTS_ENDS, WANTS_VECTORS
from pyblasgpu.operands import Operand
from pyblasgpu.types import DTYPES


def jacobi_eigh(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Whole matrices, several a block."""
    n, *_, lanes, batch = numbers[:5]
    config = fake.source.config
    assert grid == (config.grid(n, batch), 1, 1) and lanes == config.lanes(n) and n <= config.ORDER
    _decompose(fake, pointers, (*numbers[:3], *numbers[4:]))


def jacobi_thread(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Whole matrices, one a thread."""
    config = fake.source.config
    assert grid == (config.grid(numbers[3]), 1, 1) and numbers[0] <= config.ORDER
    _decompose(fake, pointers, numbers)


def _decompose(fake: Any, pointers: tuple, numbers: tuple) -> None:
    n, vectors, conj, batch, a_rs, a_cs, w_step, v_rs, v_cs, *steps, info_step = numbers
    a_step, w_batch, v_step = steps
    a = fake.view(pointers[0], n, n, a_rs, a_cs, batch, a_step, bool(conj))
    w = _reals(fake.dtype, pointers[1], n, w_step, batch, w_batch)
    v = fake.view(pointers[2], n, n, v_rs, v_cs, batch, v_step) if vectors else [None] * batch
    info = words(pointers[3], 1, 1, batch, info_step)
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


def sytrd(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Whole matrices, a block or a cluster each; T is not scaled."""
    config, (blocks, _, _), steps = fake.source.config, grid, numbers[7:]
    ld, work_step, sums_step = numbers[1], steps[1], steps[3]
    assert ld == config.leading_dimension(numbers[0]) and work_step >= ld * config.columns(numbers[0])
    assert blocks & (blocks - 1) == 0 and (blocks == 1 or config.HAS_CLUSTERS) and sums_step >= 2 * ld
    others = (*pointers[:3], *pointers[4:]), (*numbers[:10], *numbers[11:])
    _reduce(fake, grid, *others)


def sytrd_resident(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Whole matrices in registers, a block or a cluster each."""
    assert grid[0] == fake.source.config.BLOCKS
    _reduce(fake, grid, pointers, numbers)


def _reduce(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    n, ld, leaf, padded, conj, a_rs, a_cs, *steps, info_step = numbers
    a_step, work_step, tau_step, d_step, leaves_step = steps
    batch = grid[2]
    assert n <= fake.source.config.ORDER and padded % leaf == 0 and padded >= n and ld >= n
    a = fake.view(pointers[0], n, n, a_rs, a_cs, batch, a_step, bool(conj))
    work, tau = (
        fake.view(pointers[1], n, n, 1, ld, batch, work_step),
        fake.view(pointers[2], n, 1, 1, n, batch, tau_step),
    )
    d, e = (_reals(fake.dtype, pointer, padded, 1, batch, d_step) for pointer in pointers[3:5])
    leaves = _reals(fake.dtype, pointers[5], padded * leaf, 1, batch, leaves_step)
    scale, info = _reals(fake.dtype, pointers[6], 1, 1, batch, 1), words(pointers[7], 1, 1, batch, info_step)
    for z in range(batch):
        lower = np.tril(a[z])
        is_finite = np.isfinite(lower).all()
        scale[z], info[z, 0] = (1, 0) if is_finite else (np.nan, n)
        lower = lower if is_finite else np.zeros_like(lower)
        routine = scipy.linalg.get_lapack_funcs("hetrd" if fake.dtype.is_complex else "sytrd", (lower,))
        work[z], d[z, :n], off, factors, _ = routine(lower, lower=1)
        e[z], tau[z, : n - 1, 0] = 0, factors
        e[z, : n - 1] = off
        leaves[z] = _leaves(d[z], e[z], n, leaf)


def ormtr(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Products of Q with vectors, some columns a block."""
    n, cols, ld, v_rs, v_cs, work_step, tau_step, v_step = numbers
    config, batch = fake.source.config, grid[2]
    assert grid[0] == -(-cols // config.block_cols) and n <= config.ORDER
    work = fake.view(pointers[0], n, n, 1, ld, batch, work_step)
    tau = fake.view(pointers[1], n, 1, 1, n, batch, tau_step)
    v = fake.view(pointers[2], n, cols, v_rs, v_cs, batch, v_step)
    for z in range(batch):
        for k in reversed(range(n - 1)):
            u = np.append(1, work[z, k + 2 :, k])
            v[z, k + 1 :] -= tau[z, k, 0] * np.outer(u, u.conj() @ v[z, k + 1 :])


def _leaves(d: np.ndarray, e: np.ndarray, n: int, leaf: int) -> np.ndarray:
    """Blocks of T, torn apart; `d` is continued by what is beyond all eigenvalues."""
    bound = np.abs(d[:n]) + np.abs(e[:n]) + np.abs(np.roll(e[:n], 1))
    d[n:] = BEYOND * bound.max() or 1
    whole = np.diag(d) + np.diag(e[:-1], 1) + np.diag(e[:-1], -1)
    for end in np.arange(1, len(d) // leaf) * leaf:
        whole[end - 1, end - 1] -= abs(e[end - 1])
        whole[end, end] -= abs(e[end - 1])
    return np.concatenate([whole[i : i + leaf, i : i + leaf].ravel() for i in range(0, len(d), leaf)])


def band_chase(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """One matrix, by resident blocks: completed, or from its band to T."""
    n, ld, leaf, padded, conj, options, group, steps, a_rs, a_cs = numbers
    config, width, multiprocessors = fake.source.config, fake.source.config.WIDTH, current(0).sm_count
    assert grid[0] <= multiprocessors and grid[1:] == (1, 1) and steps == config.steps(n)
    assert ld == config.leading_dimension(n)
    work = fake.view(pointers[1], n, n, 1, ld, 1, 0)[0]
    scale, info = _reals(fake.dtype, pointers[8], 1, 1, 1, 1), words(pointers[9], 1, 1, 1, 0)
    if options & FILLS:
        lower = np.tril(fake.view(pointers[0], n, n, a_rs, a_cs, 1, 0, bool(conj))[0])
        is_finite = np.isfinite(lower).all()
        scale[0], info[0, 0] = (1, 0) if is_finite else (np.nan, n)
        lower = lower if is_finite else np.zeros_like(lower)
        work[...] = lower + np.tril(lower, -1).conj().T
        work[np.diag_indices(n)] = work.diagonal().real
        return
    d, e = (_reals(fake.dtype, pointer, padded, 1, 1, padded)[0] for pointer in pointers[5:7])
    groups = -(-(n - 1) // group) * steps if options & WANTS_REFLECTORS else 0
    vectors = fake.view(pointers[3], width + group, group, 1, width + group, groups, (width + group) * group)
    tau = fake.view(pointers[4], group, 1, 1, group, groups, group)
    whole = np.tril(np.triu(work, -width))
    whole = whole + np.tril(whole, -1).conj().T
    for i in range(n - 1):
        for k, row in enumerate(range(i + 1, n, width)):
            rows, col = slice(row, min(row + width, n)), row - width if k else i
            v, factor = _reflector(whole[rows, col])
            whole[rows] -= factor.conj() * np.outer(v, v.conj() @ whole[rows])
            whole[:, rows] -= factor * np.outer(whole[:, rows] @ v, v.conj())
            if groups:
                at, j = i // group * steps + k, i % group
                vectors[at, j : j + len(v), j], tau[at, j, 0] = v, factor
    e[:] = 0
    d[:n], e[: n - 1] = whole.diagonal().real, whole.diagonal(-1).real
    _reals(fake.dtype, pointers[7], padded * leaf, 1, 1, 1)[0] = _leaves(d, e, n, leaf)


def _reflector(x: np.ndarray) -> tuple[np.ndarray, Any]:
    """v and tau of the reflector of which the adjoint clears x below its first element."""
    v, norm = x.copy(), np.linalg.norm(x)
    if norm == 0 or (norm == abs(x[0]) and x[0].imag == 0):
        v[0], v[1:] = 1, 0
        return v, x.dtype.type(0)
    beta = -np.copysign(norm, x[0].real)
    v /= x[0] - beta
    v[0] = 1
    return v, (beta - x[0]) / beta


def tridiagonal_merge(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Pairs of blocks, each by a block of threads or a cluster."""
    n, size, options, q_ends, q_cs, w_step, q_step, s_step, w_batch, state = numbers
    config, (blocks, _, batch), half = fake.source.config, grid, size // 2
    assert size <= config.ORDER and blocks <= config.blocks(size, batch, current(0))
    assert state == config.state(size, blocks)
    first, last = (
        _reals(fake.dtype, pointers[0] + at * fake.dtype.real_size, half, q_cs, 2 * batch, q_step)
        for at in (0, q_ends)
    )
    d, e = (_reals(fake.dtype, pointer, size, 1, batch, size) for pointer in pointers[1:3])
    values = _reals(fake.dtype, pointers[4], size, 1, batch, size)
    _reals(fake.dtype, pointers[7], state, 1, batch, state)[...] = np.nan
    for z in range(batch):
        coupling, zeros = e[z, half - 1], np.zeros(half)
        vector = np.concatenate([last[2 * z], np.sign(coupling) * first[2 * z + 1]])
        whole = np.diag(d[z]) + abs(coupling) * np.outer(vector, vector)
        values[z], vectors = np.nan, np.full_like(whole, np.nan)
        if np.isfinite(whole).all():
            values[z], vectors = np.linalg.eigh(whole)
        unit = 1.0
        if options & IS_LAST:
            unit = _reals(fake.dtype, pointers[6], 1, 1, batch, 1)[z, 0]
            _reals(fake.dtype, pointers[5], n, w_step, batch, w_batch)[z] = values[z, :n] * unit
        if options & WANTS_VECTORS:
            s = fake.view(pointers[3], size, size, size, 1, batch, s_step)
            s[z] = vectors * unit
        elif options & WANTS_ENDS:
            ends = [np.concatenate([first[2 * z], zeros]), np.concatenate([zeros, last[2 * z + 1]])]
            fake.view(pointers[3], 2, size, size, 1, batch, s_step)[z] = ends @ vectors


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


def jacobi_columns(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Whole real matrices with no fewer rows than columns, several a block."""
    m, n, options, batch, a_rs, a_cs, step, *steps = numbers
    u_rs, u_cs, v_rs, v_cs, a_step, s_batch, u_step, v_step, info_step = steps
    config = fake.source.config
    assert n <= m <= config.COLS and grid == (config.grid(batch), 1, 1)
    a = fake.view(pointers[0], m, n, a_rs, a_cs, batch, a_step, bool(options & CONJ_A))
    sigma = _reals(fake.dtype, pointers[1], n, step, batch, s_batch)
    u = fake.view(pointers[2], m, n, u_rs, u_cs, batch, u_step) if options & WANTS_U else None
    v = fake.view(pointers[3], n, n, v_rs, v_cs, batch, v_step) if config.VECTORS else None
    info = words(pointers[4], 1, 1, batch, info_step)
    for z in range(batch):
        is_finite = np.isfinite(np.tril(a[z]) if options & SYMMETRIC else a[z]).all()
        given = a[z] if is_finite else np.eye(m, n)
        if options & SYMMETRIC:
            values, left = np.linalg.eigh(given, "L")
        else:
            left, values, right = np.linalg.svd(given, full_matrices=False)
        sigma[z], info[z, 0] = values if is_finite else np.nan, 0 if is_finite else n
        if u is not None:
            u[z] = (left.conj() if options & CONJ_U else left) if is_finite else np.nan
        if v is not None:
            v[z] = (right.T if options & CONJ_V else right.conj().T) if is_finite else np.nan


def svd_correction(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """I + E of products, of which the lower triangles are read."""
    n, ld, copies, *steps, info_step = numbers
    assert grid[:2] == (fake.source.config.grid(n), 1) and copies in (1, 2)
    views = [fake.view(pointer, n, n, 1, ld, grid[2], step) for pointer, step in zip(pointers, steps)]
    s, gram = (np.tril(each) + np.tril(each, -1).conj().swapaxes(1, 2) for each in views[:2])
    words(pointers[4], 1, 1, grid[2], info_step)[...] = 0
    squares, left = np.einsum("zii->zi", s).real, np.eye(n) - gram
    high, low = squares[:, None, :], squares[:, :, None]
    unit = np.finfo(s.dtype).eps / 2
    apart, parts = high - low, [s.real, s.imag]
    stay = np.maximum(*map(abs, parts)) <= LEAST * unit * np.sqrt(high * low)
    stay &= abs(apart) <= CLOSE * np.maximum(high, low)
    e = (s + high * left) / np.where(apart == 0, np.nan, apart)
    large = ~(np.maximum(abs(e.real), abs(e.imag)) <= LARGE)
    views[2][...] = np.eye(n) + np.where(stay | large | large.swapaxes(1, 2), left / 2, e)
    if copies > 1:
        views[3][...] = views[2]


def svd_results(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Norms and unit vectors in their order, where columns are orthogonal."""
    m, n, options, ld, ld_b, step, u_rs, u_cs, v_rs, v_cs, *steps = numbers
    assert grid[:2] == (fake.source.config.grid(n), 1) and n <= min(m, fake.source.config.ORDER)
    batch, unit = grid[2], np.finfo(fake.dtype.name).eps / 2
    shapes = (n, n, 1, ld), (n, n, 1, ld), (m, n, 1, ld_b), (n, n, 1, ld)
    s, gram, b, v = (
        fake.view(pointer, *shape, batch, each)
        for pointer, shape, each in zip(pointers[:4], shapes, steps, strict=False)
    )
    sigma = _reals(fake.dtype, pointers[4], n, step, batch, steps[4])
    u = fake.view(pointers[5], m, n, u_rs, u_cs, batch, steps[5])
    right = fake.view(pointers[6], n, n, v_rs, v_cs, batch, steps[6])
    info = words(pointers[7], 1, 1, batch, steps[7])
    norms = np.sqrt(np.einsum("zii->zi", s).real)
    for z in range(batch):
        order = np.argsort(-norms[z], kind="stable")
        others = np.tril(s[z] / np.multiply.outer(norms[z], norms[z]), -1), np.tril(gram[z]) - np.eye(n)
        if not max(np.linalg.norm(each, axis=0).max() for each in others) <= LIMIT * n**0.5 * unit:
            info[z, 0] = n
        left, columns = (b[z] / norms[z])[:, order], v[z][:, order]
        sigma[z] = norms[z][order]
        u[z] = left.conj() if options & KEPT_U else left
        right[z] = columns.conj() if options & KEPT_V else columns
