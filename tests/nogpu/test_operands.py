from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from fake_routines import elements
from hypothesis import given
from hypothesis import strategies as st
from walk import profile

from pyblasgpu.operands import Operand, span
from pyblasgpu.types import DTYPES

MEMORY = np.arange(400.0)


@st.composite
def operands(draw, batches=(1, 1)):
    """Operands within MEMORY, with strides of any sign."""
    extents = [draw(st.integers(0, 4)) for _ in range(2)] + [draw(st.integers(*batches))]
    strides = [draw(st.integers(-9, 9)) for _ in extents]
    offset = draw(st.integers(100, 200))
    rows, cols, batch = extents
    pointer = MEMORY.ctypes.data + 8 * offset
    return Operand(pointer, rows, cols, strides[0], strides[1], DTYPES["d"], False, batch, strides[2])


def same(operand, expected):
    np.testing.assert_array_equal(elements(operand), expected)


@given(operands(batches=(1, 3)))
def test_views_are_numpys(x):
    values = elements(x)
    same(x.T, values.swapaxes(-1, -2))
    same(x.flip(rows=True), values[:, ::-1])
    same(x.flip(cols=True), values[:, :, ::-1])
    same(x.flip(True, True).flip(True, True), values)
    if x.is_empty:
        assert x.flip(rows=x.rows == 0, cols=x.cols == 0).pointer == x.pointer
    same(x.matrices(1, x.batch - 1), values[1:])


@given(operands(), st.data())
def test_block(x, data):
    row, col = data.draw(st.integers(0, x.rows)), data.draw(st.integers(0, x.cols))
    rows, cols = data.draw(st.integers(0, x.rows - row)), data.draw(st.integers(0, x.cols - col))
    same(x.block(row, col, rows, cols), elements(x)[:, row : row + rows, col : col + cols])


def addresses(x) -> set[int]:
    return {
        x.pointer + 8 * (z * x.batch_stride + i * x.row_stride + j * x.col_stride)
        for z in range(x.batch)
        for i in range(x.rows)
        for j in range(x.cols)
    }


@given(operands(batches=(0, 3)))
def test_span_is_tight(x):
    touched = addresses(x)
    assert x.span() == ((min(touched), max(touched) + 8) if touched else (x.pointer, x.pointer))
    assert x.is_empty == (not touched)


def test_span_is_one_call():
    """Every call asks for those of all its arrays, in the microseconds before its launches."""
    called = []
    profile(
        partial(span, 0, (4, 5, 6), (1, -4, 20), 8, 8),
        lambda frame, event, argument: event == "call" and called.append(frame.f_code.co_name),
    )
    assert called == ["span"]


@pytest.mark.parametrize("letter", "sdcz")
def test_conjugate(letter):
    x = Operand(0, 1, 1, 1, 1, DTYPES[letter])
    assert x.conjugate().conj == DTYPES[letter].is_complex
    assert x.conjugate().conjugate() == x
