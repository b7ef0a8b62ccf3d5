"""The kernels of L D L^H factors computed with NumPy, for the stand-ins of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from fake_lu import words
from fake_routines import elements
from scipy.linalg.lapack import get_lapack_funcs

from pyblasgpu.cpu.scipy import rook
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.factor.ldl.ldl_rows import BLOCKS, DIVIDE, GATHER
from pyblasgpu.kernels.factor.ldl.ldl_triangle import FINDS_ZERO, FIRST_OF_TWO, SECOND_OF_TWO
from pyblasgpu.kernels.factor.ldl.ldl_triangle import WHOLE as WHOLE_L
from pyblasgpu.kernels.factor.ldl.sytrf_panel import ALPHA, SPREAD, WHOLE
from pyblasgpu.operands import Operand
from pyblasgpu.types import DTYPES


def sytrf_panel(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Whole matrices, or panels with V and W."""
    n, before, cols, upper, hermitian, step, *steps, v_cs, p_step, i_step, a_step, v_step, _, s_step = numbers
    config, (blocks, one, batch) = fake.source.config, grid
    assert one == 1 and cols <= config.ORDER and (config.KIND == SPREAD) == (blocks > 1)
    assert blocks * batch <= known("h200").sm_count or blocks == 1
    piv, info = words(pointers[0], n, step, batch, p_step), words(pointers[1], 1, 1, batch, i_step)
    a = fake.view(pointers[2], n, n, *steps, batch, a_step)
    if config.KIND == WHOLE and config.ROOK:
        for z in range(batch):
            a[z], piv[z], info[z, 0] = rook.factor(a[z], not upper, bool(hermitian))
        return
    if config.KIND == WHOLE:
        stem = "hetrf" if hermitian else "sytrf"
        for z in range(batch):
            (run,) = get_lapack_funcs((stem,), (a,))
            a[z], piv[z], info[z, 0] = run(a[z], lower=not upper)
        return
    width, state = config.width, words(pointers[5], 2, 1, batch, s_step)
    memory = fake.view(pointers[3], n - before, 2 * width, 1, v_cs, batch, v_step)
    for z in range(batch):
        rest, v = a[z], memory[z]
        if upper:
            rest, v = rest[::-1, ::-1], v[::-1]
        number = before // config.ORDER
        start = state[z, number & 1] if before else 0
        panel = _Panel(rest[before:, before:], width, hermitian, bool(upper), config.ROOK)
        end, bad = panel.factor(start, cols, v)
        state[z, (number + 1) & 1] = end - cols
        found = [np.sign(p) * ((n - before - abs(p)) + 1 if upper else before + abs(p)) for p in panel.piv]
        order = piv[z, ::-1] if upper else piv[z]
        order[before + start : before + end] = found[start:end]
        if before == 0 or (bad and not info[z, 0]):
            info[z, 0] = (n - before - bad + 1 if upper else before + bad) if bad else 0


class _Panel:
    """Bunch and Kaufman's steps, or those of rook pivots, on a matrix of which the lower triangle counts."""

    def __init__(self, a: np.ndarray, width: int, hermitian: bool, backwards: bool, is_rook: bool):
        self.a, self.width, self.m, self.backwards, self.is_rook = a, width, len(a), backwards, is_rook
        self.conj = np.conj if hermitian else np.positive
        self.start = self._whole(a)
        self.rest, self.piv = self.start.copy(), np.zeros(self.m, int)

    def _whole(self, a: np.ndarray) -> np.ndarray:
        below, diagonal = np.tril(a, -1), a.diagonal()
        return below + self.conj(below).T + np.diag(diagonal.real if self.conj is np.conj else diagonal)

    def factor(self, first: int, cols: int, memory: np.ndarray) -> tuple[int, int]:
        """Factor the columns from `first` on; return the end, and the number of the first zero block."""
        v, w, k, bad = memory[:, : self.width], memory[:, self.width :], first, 0
        v[...], w[...] = 0, 0
        while k < cols:
            first, kp, size, is_zero = self._pivot(k)
            kk = k + size - 1
            for one, other in ((k, first), (kk, kp)):
                for each in (self.rest, self.start):
                    each[[one, other]] = each[[other, one]]
                    each[:, [one, other]] = each[:, [other, one]]
                for each in (v, w):
                    each[[one, other], :k] = each[[other, one], :k]
            step, after = slice(k, k + size), slice(k + size, None)
            columns, block = self.rest[after, step].copy(), self.rest[step, step].copy()
            self.a[step, step] = np.tril(block) + np.triu(self.a[step, step], 1)
            self.a[after, step] = columns
            self.piv[step] = kp + 1 if size == 1 else -(kp + 1)
            if size == 2 and self.is_rook:
                self.piv[k] = -(first + 1)
            bad = bad or (k + 1 if is_zero else 0)
            if not is_zero:
                low = np.linalg.solve(block.T, columns.T).T
                self.a[after, step], v[after, step], w[after, step] = low, low, columns
                self.rest[after, after] -= low @ self.conj(columns).T
                self.rest[after, after] = self._whole(self.rest[after, after])
            k += size
        kept = np.tri(self.m - k, dtype=bool)
        np.copyto(self.a[k:, k:], self.start[k:, k:], where=kept)
        if k > cols:
            v[cols], w[cols] = 0, 0
        return k, bad

    def _pivot(self, k: int) -> tuple[int, int, int, bool]:
        if self.is_rook:
            first, last, is_zero = rook.pivot(self.rest, k, self.backwards)
            return max(first, k), last, 1 + (first >= 0), is_zero
        return k, *self._by_bunch_and_kaufman(k)

    def _by_bunch_and_kaufman(self, k: int) -> tuple[int, int, bool]:
        def size(x):
            return abs(x.real) + abs(x.imag)

        column, diagonal = size(self.rest[k:, k]), size(self.rest[k, k])
        column[0] = 0
        column[np.isnan(column)] = 0
        places = np.flatnonzero(column == column.max())  # of equal ones the caller's first
        most, largest = column.max(), k + int(places[-1 if self.backwards else 0])
        if not max(most, diagonal) or np.isnan(diagonal):
            return k, 1, True
        row = size(self.rest[k:, largest])
        row[largest - k] = 0
        if diagonal >= ALPHA * most or diagonal >= ALPHA * most * (most / row.max()):
            return k, 1, False
        return largest, 1 if size(self.rest[largest, largest]) >= ALPHA * row.max() else 2, False


def ldl_triangle(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """L as one triangle, D, and the rows of A that its rows are."""
    n, upper, parts, task, step, *steps, l_cs, p_step, w_step, i_step, a_step, l_step, d_step = numbers
    batch, config = grid[2], fake.source.config
    dtype = fake.dtype if parts == 1 else DTYPES["c" if fake.dtype.real_size == 4 else "z"]
    assert n <= config.ORDER and grid[1] == 1
    piv, rows = words(pointers[0], n, step, batch, p_step), words(pointers[1], 2 * n, 1, batch, w_step)
    a = elements(Operand(pointers[3], n, n, *steps, dtype, False, batch, a_step))
    low = elements(Operand(pointers[4], n, n, 1, l_cs, dtype, False, batch, l_step))
    d = elements(Operand(pointers[5], 2 * n, 1, 1, 1, dtype, False, batch, d_step))[..., 0]
    for z in range(batch):
        source, pivots = (a[z, ::-1, ::-1], piv[z, ::-1]) if upper else (a[z], piv[z])
        order, numbers_of = np.arange(n), rows[z].reshape(n, 2)
        k = 0
        low[z] = np.tril(source)
        while k < n:
            two = pivots[k] < 0
            for one in (k, k + 1) if two and config.ROOK else (k + two,):
                other = n - abs(pivots[one]) if upper else abs(pivots[one]) - 1
                low[z, [one, other], :k] = low[z, [other, one], :k]
                order[[one, other]] = order[[other, one]]
            numbers_of[k, 1] = FIRST_OF_TWO if two else 0
            d[z, 2 * k : 2 * k + 2] = source[k, k], 0
            if two:
                low[z, k + 1, k], numbers_of[k + 1, 1] = 0, SECOND_OF_TWO
                d[z, 2 * k + 1 : 2 * k + 4] = source[k + 1, k], source[k + 1, k + 1], 0
            k += 1 + two
        if task & FINDS_ZERO:
            zeros = np.flatnonzero((source.diagonal() == 0) & (pivots > 0))
            first = zeros[0] if len(zeros) else -1
            words(pointers[2], 1, 1, batch, i_step)[z] = 0 if first < 0 else n - first if upper else first + 1
        if task & WHOLE_L:
            low[z] = np.tril(low[z], -1) + np.eye(n)
        numbers_of[:, 0] = n - 1 - order if upper else order


def ldl_rows(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Rows of right-hand sides, interchanged, or solved with D."""
    n, r, task, hermitian, *steps, x_cs, w_step, d_step, b_step, x_step = numbers
    batch = grid[2]
    assert grid[:2] == (fake.source.config.grid(n, r), 1)
    rows = words(pointers[0], 2 * n, 1, batch, w_step).reshape(batch, n, 2)
    d = fake.view(pointers[1], 2 * n, 1, 1, 1, batch, d_step)[..., 0].reshape(batch, n, 2)
    b = fake.view(pointers[2], n, r, *steps, batch, b_step)
    x = fake.view(pointers[3], n, r, 1, x_cs, batch, x_step)
    for z in range(batch):
        below = d[z, :-1, 1]
        above = below.conj() if hermitian else below
        blocks = np.diag(d[z, :, 0]) + np.diag(below, -1) + np.diag(above, 1)
        if task == BLOCKS:
            b[z] = blocks
        elif task == DIVIDE:
            k = 0
            while k < n:
                step = slice(k, k + 1 + (rows[z, k, 1] == FIRST_OF_TWO))
                one = blocks[step, step]
                x[z, step] = np.linalg.solve(one, x[z, step]) if len(one) > 1 else x[z, step] / one
                k = step.stop
        elif task == GATHER:
            x[z] = b[z, rows[z, :, 0]]
        else:
            b[z, rows[z, :, 0]] = x[z]
