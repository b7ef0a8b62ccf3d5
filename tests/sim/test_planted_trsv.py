"""Defects planted in the TRSM of few right-hand sides, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import pytest

from .kernel_checks import EXACT_DIVISION, trsv
from .planting import assert_caught, parameters

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # few right-hand sides in one launch
    ("trsv.kernel", "while solved <= j:", "while solved < j:", trsv()),
    ("trsv.kernel", "if t == 0:\n                while", "if False:\n                while", trsv()),
    ("trsv.kernel", "            cuda.syncthreads()\n            load_panel", "            load_panel", trsv()),
    ("trsv.kernel", "sign)\n            cuda.syncthreads()\n            multiply", "sign)\n            multiply", trsv()),
    ("trsv.kernel", "acc, m, k)\n        cuda.syncthreads()", "acc, m, k)", trsv()),
    ("trsv.kernel", "wait()\n        cuda.syncthreads()", "cuda.syncthreads()", trsv()),
    ("trsv.kernel", "wait()\n        cuda.syncthreads()", "wait()", trsv()),
    ("trsv.kernel", "rows - m if block > 0 else 0", "ROWS if block > 0 else 0", trsv(t_by_rows=False)),
    ("trsv.kernel", "if is_last:", "if False:", trsv()),
    ("trsv.kernel", "0 if is_last else block + 1", "block + 1", trsv()),
    ("trsv.kernel", "0 if is_last else block + 1", "0 if is_last else block", trsv()),
    ("trsv.kernel", "offset(here, ROWS * t_cs * REALS)", "offset(here, ROWS * t_rs * REALS)", trsv(n=85)),
    ("trsv.kernel", "offset(b, row0 * b_rs * REALS), b_rs", "mine, b_rs", trsv(apart=True)),
    ("trsv.kernel", "int64(j) * ROWS * x_rs", "int64(j) * x_rs", trsv()),
    ("trsv.kernel", "offset(coming, k * SIZE)", "offset(coming, k * REALS)", trsv(r=2)),
    ("trsv.kernel", "is_safe and finite else 0", "is_safe else 0", EXACT_DIVISION),
    ("trsv.kernel", "take(0, y, coming, t)", "pass", EXACT_DIVISION),
    ("trsv.kernel", "wait()\n            cuda.syncthreads()", "cuda.syncthreads()", EXACT_DIVISION),
    ("trsv.sums", "row < left", "True", trsv(t_by_rows=False)),
    ("trsv.sums", "ok & (c < cols))\n        if", "ok)\n        if", trsv(r=3)),
    ("trsv.sums", "c < cols)\n                panel", "True)\n                panel", trsv(r=3)),
    ("trsv.sums", "REALS, ok & (c < cols)", "REALS, ok", trsv(r=3)),
    ("trsv.sums", "sign * got[1]", "got[1]", trsv("c", conj=True)),
    ("trsv.sums", "at_a=(k * THR_M, 1)", "at_a=(0, 1)", trsv()),
    ("trsv.sums", "k * DIM_K * COLS * REALS", "k * COLS * REALS", trsv()),
    ("trsv.sums", "e // THR_M * DIM_K", "e // THR_M", trsv()),
    ("trsv.sums", "e % THR_M * DIM_M) * COLS", "e % THR_M) * COLS", trsv()),
    ("trsv.sums", "range(1, DIM_K.bit_length())", "range(2, DIM_K.bit_length())", trsv()),
    ("trsv.sums", "y[x] = alpha * y[x]", "pass", trsv()),
    ("trsv.sums", "sign * (alpha", "(alpha", trsv("z", conj=True)),
    ("trsv.sums", "sign * x[c", "x[c", trsv("z", conj=True)),
    ("trsv.diagonal", "if i > j and", "if i >= j and", trsv()),
    ("trsv.diagonal", "is_safe = cuda.syncthreads_and(invert(diagonal, inverse, t, rows, unit)) != 0",
     "invert(diagonal, inverse, t, rows, unit)\n        is_safe = True", EXACT_DIVISION),
    ("trsv.diagonal", "divided(diagonal[at], diagonal[d], inverse[r])", "diagonal[at]", trsv()),
    ("trsv.diagonal", "divided(solution[s], diagonal[d], inverse[r])", "solution[s]", trsv()),
    ("trsv.diagonal", "while first < ROWS:\n            cuda.syncthreads()", "while first < ROWS:", trsv()),
    ("trsv.diagonal", "first = after\n        cuda.syncthreads()", "first = after", trsv()),
    ("trsv.diagonal", "+ WARP > first", "> first", trsv()),
    ("trsv.diagonal", "after <= t and t < after + GROUP", "first <= t and t < after", trsv()),
    ("trsv.diagonal", "t == ROWS - 1", "t == 0", trsv(ROWS=64, DIM_M=16, DIM_K=4, n=75)),
    ("trsv.diagonal", "prefetch(corner, line, diagonal, after, t)", "pass", trsv()),
    ("trsv.diagonal", "(j + 1) * REALS // WIDTH * WIDTH", "(j + 1) * REALS", trsv()),
    ("trsv.diagonal", "abs(x[part]) < real(INFINITY)", "True", EXACT_DIVISION),
    ("trsv.diagonal", "if t > j and t < ROWS:", "if t >= j and t < ROWS:", EXACT_DIVISION),
    ("trsv.diagonal", "solve_row(0, y, diagonal, solution, j, unit)\n            cuda.syncthreads()",
     "solve_row(0, y, diagonal, solution, j, unit)", EXACT_DIVISION),
    ("trsv.diagonal", "y[x] - t_re * solution[s]\n", "y[x]\n", EXACT_DIVISION),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
