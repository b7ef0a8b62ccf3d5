"""The kernels of triangles computed with NumPy, for the stand-ins of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from fake_lu import words

from pyblasgpu.testing.reference import read_part
from pyblasgpu.types import Diag, Uplo


def trtri_leaf(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Inverses of lower triangles; of one with a zero on its diagonal its info alone."""
    n, unit, writes_info, clean, *steps, i_step, s_step, a_step = numbers
    batch, diag = grid[2], Diag.UNIT if unit else Diag.NON_UNIT
    order = fake.source.config.ORDER
    assert grid[:2] == (-(-n // order), 1) and (n <= order or not writes_info)
    source = fake.view(pointers[1], n, n, *steps[:2], batch, s_step)
    a = fake.view(pointers[2], n, n, *steps[2:], batch, a_step)
    info = words(pointers[0], 1, 1, batch, i_step)
    for matrix, given, number in zip(a, source, info, strict=True):
        if writes_info:
            number[0] = 0 if unit else _first_zero(np.diagonal(given))
        for first in range(0, 0 if number[0] else n, order):
            rows = slice(first, first + order)
            part = np.linalg.inv(read_part(given[rows, rows][None], Uplo.LOWER, diag)[0])
            kept = np.tri(len(part), k=-1 if unit else 0, dtype=bool) | bool(clean)
            np.copyto(matrix[rows, rows], part, where=kept)


def lauum_leaf(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """L^H L of lower triangles; their lower triangles."""
    n, *steps, step = numbers
    assert grid[:2] == (1, 1) and n <= fake.source.config.ORDER
    source, target = (fake.view(pointer, n, n, *steps, grid[2], step) for pointer in pointers)
    lower = np.tril(source)
    np.copyto(target, lower.conj().swapaxes(1, 2) @ lower, where=np.tri(n, dtype=bool))


def zero_diagonal(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """The first zero on the diagonal of each matrix; an element is one real or two."""
    n, parts, step, i_step, a_step = numbers
    assert grid[:2] == (1, 1)
    info = words(pointers[0], 1, 1, grid[2], i_step)
    a = fake.view(pointers[1], n, parts, step * parts, 1, grid[2], a_step * parts)
    for diagonal, number in zip(a, info, strict=True):
        number[0] = _first_zero(diagonal.any(axis=1))


def _first_zero(diagonal: np.ndarray) -> int:
    """Its number, from 1; 0 where there is none."""
    zeros = np.flatnonzero(diagonal == 0)
    return int(zeros[0]) + 1 if zeros.size else 0
