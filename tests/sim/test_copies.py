"""Copies of batches: small matrices that lie alike are copied as one matrix, others by small blocks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pyblasgpu import lapack
from pyblasgpu.frontend.calls.call import routine
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.operands import Operand
from pyblasgpu.routines.copies import launch_list
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .launching import strides

copy = routine("copies")
GAP = 5  # elements between two matrices of a batch


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


def batch(values: np.ndarray, order: str, gap: int = GAP) -> np.ndarray:
    """`values` with NaN between its matrices."""
    count, rows, cols = values.shape
    room = np.full((count, rows * cols + gap), np.nan, values.dtype)
    inner = room[:, : rows * cols].reshape(count, cols, rows) if order == "F" else None
    view = inner.swapaxes(1, 2) if inner is not None else room[:, : rows * cols].reshape(count, rows, cols)
    view[...] = values
    return view


def operand(array: np.ndarray, conj: bool = False) -> Operand:
    step, row, col = strides(array)
    dtype = DTYPES[{"f": "s", "d": "d", "F": "c", "D": "z"}[array.dtype.char]]
    return Operand(simulator.adopt(array), *array.shape[1:], row, col, dtype, conj, len(array), step)


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (4, 4), (3, 7), (17, 33)])
@pytest.mark.parametrize("letter", "sz")
def test_batches_in_every_order(letter, rows, cols):
    rng, dtype = np.random.default_rng(rows), DTYPES[letter]
    alpha = 2 - 1j if dtype.is_complex else 2
    for read, written in product("CF", repeat=2):
        conj = dtype.is_complex and written == "F"
        values = integers(rng, (3, rows, cols), dtype)
        source, target = batch(values, read), batch(np.zeros_like(values), written, 1)
        beside = target.base if target.base is not None else target
        gaps = np.isnan(beside).sum()
        copy(alpha, operand(source, conj), operand(target), 0)
        assert np.array_equal(target, (alpha * (values.conj() if conj else values)).astype(dtype.name))
        assert np.isnan(beside).sum() == gaps


def test_what_lies_alike_is_one_matrix():
    values = np.zeros((6, 4, 5), np.float32)
    alike = launch_list(1, operand(batch(values, "C")), operand(batch(values, "C", 0)))
    other = launch_list(1, operand(batch(values, "C")), operand(batch(values, "F")))
    assert [entry.grid[2] for entry in (*alike.entries, *other.entries)] == [1, 6]
    assert [entry.source.config.threads for entry in (*alike.entries, *other.entries)] == [256, 64]


@pytest.mark.parametrize("letter", "dc")
def test_right_hand_sides_of_a_singular_matrix_of_a_stack_stay(letter):
    """They are kept beside the solution as they lie."""
    rng, dtype = np.random.default_rng(3), DTYPES[letter].name
    a = (rng.uniform(-1, 1, (3, 5, 5)) + 3 * np.eye(5)).astype(dtype)
    a[1, :, 2] = 0
    b = rng.uniform(-1, 1, (3, 5, 2)).astype(dtype)
    _, _, x, info = lapack.gesv(a, b)
    assert np.array_equal(np.asarray(info), [0, 3, 0])
    assert np.array_equal(x[1], b[1])
    tolerance = 1e-4 if letter == "c" else 1e-12
    np.testing.assert_allclose(a[[0, 2]] @ x[[0, 2]], b[[0, 2]], atol=tolerance)
