"""The kernels of ragged batches computed with NumPy, for the stand-ins of kernels."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from pyblasgpu.kernels.common.options import CONJUGATE, TRIANGLE, UNIT
from pyblasgpu.kernels.common.problem_table import ROW_WORDS


def send(table: np.ndarray, address: int, stream: int) -> None:
    """Copy a table at once."""
    ctypes.memmove(address, table.ctypes.data, table.nbytes)


def numbers_at(address: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """The numbers that a kernel reads at an address, aligned for its loads."""
    assert address % 16 == 0
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * count).from_address(address), dtype).reshape(shape)


def problems_of(grid: tuple, problems: int, owners: int) -> np.ndarray:
    """The rows of a table, as words; blocks of a problem follow one another."""
    assert grid[1:] == (1, 1)
    owned = numbers_at(owners, grid[:1], "int32")
    assert owned[0] == 0 and np.isin(np.diff(owned), (0, 1)).all()
    words = numbers_at(problems, (owned[-1] + 1, ROW_WORDS), "int32")
    np.testing.assert_array_equal(words[:, 16], np.flatnonzero(np.diff(owned, prepend=-1)))
    return words


def gemm_grouped(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Products of unequal sizes."""
    origin, scalars, problems, owners = pointers
    config, size = fake.source.config, fake.dtype.real_size
    words = problems_of(grid, problems, owners)
    blocks = np.diff([*words[:, 16], grid[0]])
    factors = numbers_at(scalars, (len(words), 4), fake.dtype.real)
    for row, (alpha, alpha_i, beta, beta_i), count in zip(words, factors, blocks):
        m, n, k, options = row[12:16].tolist()
        assert count == config.blocks(m, n)
        a, b, c, lda, ldb, ldc = (int(number) for number in row[:12].view(np.int64))
        a, b, c = (origin + distance * size for distance in (a, b, c))
        assert not any(address % fake.dtype.itemsize for address in (a, b, c))
        a = fake.view(a, m, k, *((lda, 1) if config.trans_a else (1, lda)), 1, 0)
        b = fake.view(b, k, n, *((ldb, 1) if config.trans_b else (1, ldb)), 1, 0, fake.flags["conj"])
        c = fake.view(c, m, n, 1, ldc, 1, 0)
        product = (a @ b).conj() if options & CONJUGATE else a @ b
        scale, keep = (fake.number(complex(*parts)) for parts in ((alpha, alpha_i), (beta, beta_i)))
        c[...] = scale * product + keep * c if keep != 0 else scale * product


def ragged_copy(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Copies of unequal sizes."""
    from fake_kernels import times  # which imports this module

    sources, targets, scalars, problems, owners = pointers
    size = fake.dtype.real_size
    words = problems_of(grid, problems, owners)
    blocks = np.diff([*words[:, 16], grid[0]])
    factors = numbers_at(scalars, (len(words), 2), fake.dtype.real)
    for row, parts, count in zip(words, factors, blocks):
        m, n, rows, cols, _, options = row[12:18].tolist()
        assert count == fake.source.config.blocks(rows, cols)
        source, target, *steps = (int(number) for number in row[:12].view(np.int64))
        whole = np.zeros((rows, cols), fake.dtype.name)
        if min(m, n) > 0:
            read = fake.view(sources + source * size, m, n, *steps[:2], 1, 0, bool(options & CONJUGATE))[0]
            whole[:m, :n] = times(fake.number(complex(*parts)), read)
        if options & TRIANGLE:
            whole[np.triu_indices(rows, 1, cols)] = 0
            beyond = range(min(m, n), min(rows, cols))
            whole[beyond, beyond] = 1
        if options & UNIT:
            np.fill_diagonal(whole, 1)
        fake.view(targets + target * size, rows, cols, *steps[2:], 1, 0)[0] = whole
