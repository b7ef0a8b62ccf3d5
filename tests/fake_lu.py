"""The kernels of LU factors computed with NumPy, for the stand-ins of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from fake_routines import determinants, elements, solve_at_once
from scipy.linalg.lapack import get_lapack_funcs

from pyblasgpu.kernels.common.options import CONJUGATE, MIRRORED, UNIT
from pyblasgpu.kernels.factor.lu.getrs_small import UNLESS_FAILED
from pyblasgpu.operands import Operand
from pyblasgpu.types import DTYPES, INT32


def getrf_panel(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """A panel, or whole matrices of a batch."""
    m, n, first, blocks, left, right, *steps, step, a_step, p_step, m_step, i_step = numbers
    config, batch = fake.source.config, grid[2]
    assert grid[:2] == (config.grid(m), 1) and blocks == grid[0] and n <= min(m, config.COLS)
    assert config.takes_batches(m) or batch == 1
    a = fake.view(pointers[0], m, n, *steps, batch, a_step)
    pivots = words(pointers[1], n, step, batch, p_step)
    moves = words(pointers[2], 2 * config.COLS, 1, batch, m_step).reshape(batch, 2, config.COLS)
    info = words(pointers[3], 1, 1, batch, i_step)
    for z in range(batch):
        a[z], piv, failed = _getrf(a[z])
        pivots[z, :n] = piv + first
        moves[z, :, :n] = _moves(piv, m)
        if left + right:
            assert config.takes_outside_columns(m)
            start = pointers[0] + z * a_step * fake.dtype.itemsize - left * steps[1] * fake.dtype.itemsize
            _update_beside(fake.view(start, m, left + n + right, *steps, 1, 0)[0], piv, left, n)
        if first == 0 or (failed and not info[z, 0]):
            info[z, 0] = failed + first if failed else 0


def _update_beside(a: np.ndarray, piv: np.ndarray, left: int, n: int) -> None:
    """Interchanges left and right of a panel, and rows of U right of it."""
    rows = np.arange(len(a))
    for step, pivot in enumerate(piv):
        rows[[step, pivot]] = rows[[pivot, step]]
    end = left + n
    for columns in (slice(0, left), slice(end, None)):
        a[:, columns] = a[rows, columns]
    lower = np.tril(a[:n, left:end], -1) + np.eye(n)
    a[:n, end:] = np.linalg.solve(lower, a[:n, end:])


def pivot_moves(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Pivots as permutations of groups."""
    count, base, step, p_step, m_step = numbers
    group, batch = fake.source.config.GROUP, grid[2]
    assert grid[:2] == (fake.source.config.grid(count), 1)
    pivots = words(pointers[0], count, step, batch, p_step)
    moves = words(pointers[1], 2 * group * grid[0], 1, batch, m_step).reshape(batch, grid[0], 2, group)
    for z, g in np.ndindex(batch, grid[0]):
        piv = pivots[z, g * group : (g + 1) * group] - base - g * group
        moves[z, g, :, : len(piv)] = _moves(piv, max(piv.max(), len(piv)) + 1)


def laswp(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Interchanges of rows."""
    group, groups, last, n, skip, skipped, _, backwards, *steps, a_step, m_step = numbers
    batch, count = grid[2], group * (groups - 1) + last
    assert grid[:2] == (fake.source.config.grid(n, group), 1)
    moves = words(pointers[1], 2 * group * groups, 1, batch, m_step).reshape(batch, groups, 2, group)
    columns = [column for column in range(n + skipped) if not skip <= column < skip + skipped]
    for z in range(batch):
        for g in reversed(range(groups)) if backwards else range(groups):
            used = min(group, count - g * group)
            to_top, from_top = moves[z, g, :: -1 if backwards else 1, :used]
            rows = int(max(to_top.max(), from_top.max(), used - 1)) + 1
            pointer = pointers[0] + g * group * steps[0] * fake.dtype.itemsize
            a = fake.view(pointer, rows, n + skipped, *steps, batch, a_step)[z][:, columns]
            top, leaving = a[to_top], from_top >= used
            a[from_top[leaving]] = a[:used][leaving]
            a[:used] = top
            fake.view(pointer, rows, n + skipped, *steps, batch, a_step)[z][:, columns] = a


def pivot_order(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Orders of rows by the last pivots."""
    count, base, rows, every, chunk, step = numbers
    config = fake.source.config
    assert grid == (config.grid(rows), 1, 1) and chunk == config.chunk(count, every)
    pivots = words(pointers[0], count, step, 1, 0)[0] - base
    orders = words(pointers[1], -(-count // every) * rows, 1, 1, 0).reshape(-1, rows)
    for j in range(len(orders)):
        order, first = np.arange(rows), j * every
        for i in range(first, count):
            order[[i, pivots[i]]] = order[[pivots[i], i]]
        orders[j, : rows - first] = order[first:] - first


def permute_rows(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Rows in another order, of blocks of columns in one of their own."""
    m, n, columns, block, shift, step = numbers
    config = fake.source.config
    size = config.dtype_facts.real_size << shift
    assert grid == (-(-n // columns), 1, 1) and columns * (m - block) * size <= config.shared_bytes
    a = fake.view(pointers[0], m << shift, n, 1, step, 1, 0)[0]
    orders = words(pointers[1], (n // block + 1 if block else 1) * m, 1, 1, 0).reshape(-1, m)
    for c in range(n):
        number = c // block + 1 if block else 0
        top = number * block
        below = a[top << shift :, c].reshape(-1, 1 << shift)
        a[top << shift :, c] = below.take(orders[number, : m - top], axis=0, mode="clip").ravel()


def getrf_small(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Whole matrices, several a block."""
    m, n, lanes, batch, *steps, step, a_step, p_step, i_step = numbers
    config = fake.source.config
    assert grid == (config.grid(m, batch), 1, 1) and lanes == config.lanes(m) and max(m, n) <= config.COLS
    a = fake.view(pointers[1], m, n, *steps, batch, a_step)
    a[:] = fake.view(pointers[0], m, n, *steps, batch, a_step)
    pivots = words(pointers[2], min(m, n), step, batch, p_step)
    info = words(pointers[3], 1, 1, batch, i_step)
    for z in range(batch):
        a[z], pivots[z], info[z, 0] = _getrf(a[z])


def getrs_small(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Solutions by the factors of small matrices."""
    n, r, options, lanes, batch, groups, *steps, p_step, i_step, lu_step, from_step, b_step = numbers
    lu_rs, lu_cs, step, from_rs, from_cs, b_rs, b_cs = steps
    config = fake.source.config
    assert grid == (config.grid(n, batch) * groups, 1, 1) and lanes == config.lanes(n)
    mirrored, failed = bool(options & MIRRORED), np.zeros((batch, 1), bool)
    if options & UNLESS_FAILED:
        failed = words(pointers[1], 1, 1, batch, i_step) != 0
    if config.INVERTS:
        assert mirrored
        _inverses(fake, pointers, n, (lu_rs, lu_cs, batch, lu_step), i_step)
        return
    pivots = np.zeros((batch, 0), int) if mirrored else words(pointers[0], n, step, batch, p_step)
    lu = fake.view(pointers[2], n, n, lu_rs, lu_cs, batch, lu_step, bool(options & CONJUGATE))
    b = fake.view(pointers[4], n, r, b_rs, b_cs, batch, b_step)
    b[:] = fake.view(pointers[3], n, r, from_rs, from_cs, batch, from_step)
    for z in np.flatnonzero(~failed[:, 0]):
        rows = np.arange(n)
        for i, pivot in enumerate(pivots[z]):
            rows[[i, pivot]] = rows[[pivot, i]]
        unit = np.tril(lu[z], -1) + np.eye(n), np.triu(lu[z])
        other = np.tril(lu[z]), np.triu(lu[z], 1) + np.eye(n)
        lower, upper = unit if options & UNIT else other
        if mirrored:
            lower, upper = np.tril(lu[z]), np.tril(lu[z]).conj().T
        if options & UNIT:
            b[z] = np.linalg.solve(upper, np.linalg.solve(lower, b[z][rows]))
        else:
            b[z][rows] = np.linalg.solve(upper, np.linalg.solve(lower, b[z]))


def _inverses(fake: Any, pointers: tuple, n: int, steps: tuple, i_step: int) -> None:
    """Lower triangles of inverses in place of Cholesky factors, of which singular ones stay."""
    info, lower = words(pointers[1], 1, 1, steps[2], i_step), np.tri(n, dtype=bool)
    for z, factor in enumerate(fake.view(pointers[2], n, n, *steps)):
        zeros = np.flatnonzero(factor.diagonal() == 0)
        info[z, 0] = zeros[0] + 1 if zeros.size else 0
        if not zeros.size:
            inverse = np.linalg.inv(np.tril(factor))
            factor[lower] = (inverse.conj().T @ inverse)[lower]


def gesv_small(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Solutions or inverses of a batch, and info."""
    n, r, inverts, lanes, count, *steps, i_step, a_step, b_step, x_step = numbers
    config = fake.source.config
    assert grid == (config.grid(n, count) * config.shares(r), 1, 1)
    assert lanes == config.lanes(n) and n <= config.COLS
    a = fake.view(pointers[1], n, n, *steps[:2], count, a_step)
    b = (
        np.broadcast_to(np.eye(n), a.shape)
        if inverts
        else fake.view(pointers[2], n, r, *steps[2:4], count, b_step)
    )
    solve_at_once(
        words(pointers[0], 1, 1, count, i_step)[:, 0],
        a,
        b,
        fake.view(pointers[3], n, r, *steps[4:], count, x_step),
    )


def getrf_column(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """A step of a panel; the last one does all."""
    m, n, j, first, a_rs, a_cs, step = numbers
    assert grid == (fake.source.config.grid(m), 1, 1) and -1 <= j < min(m, n)
    if j + 1 == min(m, n):
        a = fake.view(pointers[0], m, n, a_rs, a_cs, 1, 0)[0]
        info = words(pointers[2], 1, 1, 1, 0)[0]
        a[...], piv, failed = _getrf(a)
        words(pointers[1], len(piv), step, 1, 0)[0] = piv + first
        if first == 0 or (failed and not info[0]):
            info[0] = failed + first if failed else 0


def restore(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Matrices that become again what they were; a complex element is two reals."""
    m, n, parts, from_rs, from_cs, to_rs, to_cs, i_step, from_step, to_step = numbers
    batch, config = grid[2], fake.source.config
    assert grid[:2] == (config.grid(m, n), 1)
    bad = words(pointers[0], 1, 1, batch, i_step)[:, 0] != 0
    for part in range(parts):
        shift = part * fake.dtype.real_size
        steps = [[step * parts for step in each] for each in ((from_rs, from_cs), (to_rs, to_cs))]
        before = fake.view(pointers[1] + shift, m, n, *steps[0], batch, from_step * parts)
        a = fake.view(pointers[2] + shift, m, n, *steps[1], batch, to_step * parts)
        a[bad] = before[bad]


def determinant(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Signs and logarithms, or determinants, of a batch."""
    n, products, lanes, count, step, piv_step, a_step, p_step = numbers
    config, (piv, a, sign, logarithm) = fake.source.config, pointers
    assert grid == (config.grid(n, count), 1, 1) and lanes == config.lanes(n)
    diagonal = fake.view(a, n, 1, step, 1, count, a_step)[:, :, 0]
    moved = words(piv, n, piv_step, count, p_step) != np.arange(n)
    facts = fake.dtype
    real, double = (
        DTYPES[letter] for letter in ("s" if facts.real_size == 4 else "d", "z" if facts.is_complex else "d")
    )
    outputs = [(sign, double)] if products else [(sign, facts), (logarithm, real)]
    for (pointer, dtype), result in zip(outputs, determinants(diagonal, moved, products), strict=True):
        elements(Operand(pointer, count, 1, 1, count, dtype))[0, :, 0] = result


def words(pointer: int, count: int, step: int, batch: int, batch_step: int) -> np.ndarray:
    """int32 in memory, shape (batch, count)."""
    return elements(Operand(pointer, count, 1, step, 1, INT32, False, batch, batch_step))[:, :, 0]


def _moves(piv: np.ndarray, m: int) -> np.ndarray:
    """Rows that are on top after the interchanges, and the places of those that were there."""
    rows = np.arange(m)
    for step, pivot in enumerate(piv):
        rows[[step, pivot]] = rows[[pivot, step]]
    return np.stack([rows[: len(piv)], np.argsort(rows)[: len(piv)]])


def _getrf(a: np.ndarray) -> tuple:
    return get_lapack_funcs("getrf", (a,))(a)
