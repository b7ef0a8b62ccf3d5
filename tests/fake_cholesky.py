"""The kernels of Cholesky factors computed with NumPy, for the stand-ins of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from fake_lu import words


def potrf_leaf(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """The factors of lower triangles of a batch, and zeros above them if they are asked for."""
    n, before, how, *steps, i_step, s_step, a_step = numbers
    batch, clean = grid[2], how & 1
    assert grid[:2] == (1, 1) and how < 4 and n <= fake.source.config.ORDER
    info = words(pointers[0], 1, 1, batch, i_step)
    a = fake.view(pointers[2], n, n, *steps[2:], batch, a_step)
    a[:] = fake.view(pointers[1], n, n, *steps[:2], batch, s_step)
    for z in range(batch):
        _factor(a[z], n, info[z], before)
        if clean:
            a[z][~np.tri(n, dtype=bool)] = 0


def potrf_small(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """`potrf_leaf` for several matrices a warp."""
    n, clean, lanes, count, *steps, i_step, a_step = numbers
    config = fake.source.config
    assert grid == (config.grid(n, count), 1, 1) and lanes == config.lanes(n) and n < config.LD
    info = words(pointers[0], 1, 1, count, i_step)
    a = fake.view(pointers[2], n, n, *steps, count, a_step)
    a[:] = fake.view(pointers[1], n, n, *steps, count, a_step)
    for z in range(count):
        _factor(a[z], n, info[z], 0)
        if clean:
            a[z][~np.tri(n, dtype=bool)] = 0


def potrf_panel(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """The factor of each triangle, and the rows below it."""
    n, below, before, *steps, i_step, a_step = numbers
    config, count = fake.source.config, grid[2]
    assert grid[:2] == (config.grid(below), 1) and n <= config.ORDER and below
    info = words(pointers[0], 1, 1, count, i_step)
    a = fake.view(pointers[1], n + below, n, *steps, count, a_step)
    for z in range(count):
        _factor(a[z], n, info[z], before)


def _factor(a: np.ndarray, n: int, info: np.ndarray, before: int) -> None:
    if before and info[0]:
        return
    lower = np.tril(a[:n])
    factor, number = scipy.linalg.get_lapack_funcs("potrf", (lower,))(lower, lower=1)
    bad = np.flatnonzero(np.isnan(factor.diagonal()))
    if number or bad.size:
        info[0] = before + min([number or n, *(bad + 1)])
        return
    info[0] = 0
    a[:n][np.tri(n, dtype=bool)] = factor[np.tri(n, dtype=bool)]
    a[n:] = np.linalg.solve(factor, a[n:].conj().T).conj().T
