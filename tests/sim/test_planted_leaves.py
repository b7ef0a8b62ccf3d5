"""Defects planted in the leaves of TRSM and TRMM, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import pytest

from .kernel_checks import (
    FMA_OVERFLOW,
    HUGE_DIAGONAL,
    LARGE,
    MMA_OVERFLOW,
    NAN_IN_B,
    PRODUCER,
    TWO_WARPS,
    WIDE_SMALL,
    leaf,
    trsm_fma,
    trsm_mma,
)
from .planting import assert_caught, parameters

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers and waits
    ("trmm.leaf", "wait()\n                cuda.syncthreads()", "wait()", leaf("trmm")),
    ("trmm.leaf", "wait()\n                cuda.syncthreads()", "cuda.syncthreads()", leaf("trmm")),
    ("trmm.leaf", "wait_async(STAGES - 2)", "wait_async(STAGES - 1)", leaf("trmm")),
    ("trmm.leaf", "if unit:\n            cuda.syncthreads()", "if False: pass", leaf("trmm", unit=True)),
    # edges
    ("trmm.leaf", "k in range(0, min(row0 + BLK_M, n), BLK_K)", "k in range(0, row0, BLK_K)", leaf("trmm")),
    ("trmm.leaf", "depth = min(row0 + BLK_M, n) - k", "depth = n - k", leaf("trmm", depth=12)),
    # what must not be read
    ("trmm.leaf", "keep = row + shift >= kk", "keep = True", NAN_IN_B),
    ("trmm.leaf", "keep = row + shift >= kk", "keep = row + shift > kk", leaf("trmm")),
    # conjugation and complex arithmetic
    ("trmm.leaf", "step_multiplier(config, conj)", "step_multiplier(config, False)",
     leaf("trmm", "z", conj=True)),
    # products in place
    ("trmm.leaf", "X_TILE + slice * DEPTH * LD_X", "X_TILE", leaf("trmm", slices=2)),
    ("trmm.leaf", "- slice * DEPTH", "", leaf("trmm", unit=True, slices=2)),
    ("trmm.leaf", "if writing < STAGES - 1 else 0", "if writing < STAGES else 0", leaf("trmm")),
    ("trmm.leaf", "batch * stride_b + col0 * b_cs", "batch * stride_t + col0 * b_cs", leaf("trmm", batch=2)),
    # order and arithmetic
    ("trmm.leaf", "int64(blocks - 1 - step)", "int64(step)", leaf("trmm")),
    ("trmm.leaf", "== diagonal:", "== diagonal + 1:", leaf("trmm", unit=True)),
    ("trmm.leaf", "store(b, at, alpha * acc[x], ok)", "store(b, at, acc[x], ok)", leaf("trmm")),
    # the leaves whose warps own columns of B
    ("trsm.body", "g, q, unit)\n                sync_warp()", "g, q, unit)", trsm_mma()),
    ("trsm.body", "panels, int32(odd * PANEL)", "panels, 0", trsm_mma()),
    ("trsm.body", "if lane < WARP_N:", "if True:", trsm_mma()),
    ("trsm.body", "odd == part", "odd != part", trsm_mma(changes=TWO_WARPS)),
    ("trsm.body", "or mine else 1", "or mine else 0", trsm_mma(changes=TWO_WARPS)),
    ("trsm.body", "b, part * BLK * b_rs", "b, 0 * b_rs", trsm_mma(changes=TWO_WARPS)),
    ("trsm.body", "updater, 0, TILES - 1, 1)", "updater, 0, TILES - 1, 0)", trsm_mma(n=32, changes=TWO_WARPS)),
    ("trsm.body", "NEXT, TILES - LEFT, LEFT)", "TILES, TILES, LEFT)", trsm_mma(n=32, changes=TWO_WARPS)),
    ("trsm.body", "tiles - j + (WARPS_PER_COLUMN_GROUP - 1)", "tiles - j", trsm_mma(n=32, changes=TWO_WARPS)),
    ("trsm.mma", "(tile * BLK + g)", "(tile + g)", trsm_mma(changes=TWO_WARPS)),
    ("trsm.fma", "(tile * BLK + g)", "(tile + g)", trsm_fma(changes=TWO_WARPS)),
    ("trsm.mma", "config.WARPS_PER_COLUMN_GROUP * BLK * STEP_ROW", "BLK * STEP_ROW", trsm_mma(n=32, changes=TWO_WARPS)),
    ("trsm.fma", "config.WARPS_PER_COLUMN_GROUP * BLK * ROW", "BLK * ROW", trsm_fma(n=32, changes=TWO_WARPS)),
    ("trsm.body", "elif cuda.syncthreads_or(unsolved):", "elif unsolved:", trsm_fma()),
    ("trsm.body", "wait()\n                if exact_division", "if exact_division", trsm_mma()),
    ("trsm.body", "wait_diagonals()\n        cuda.syncthreads()", "cuda.syncthreads()", trsm_mma()),
    ("trsm.body", "wait_diagonals()\n        cuda.syncthreads()", "wait_diagonals()", trsm_mma()),
    ("trsm.body", "ptx.wait_async(STAGES - 1), ptx", "ptx.wait_async(STAGES), ptx", trsm_mma()),
    ("trsm.body", "ptx.wait_async(STAGES - 2)", "ptx.wait_async(STAGES - 1)", trsm_mma()),
    ("trsm.body", "int32(0), int32(STAGES - 1)", "int32(0), int32(0)", trsm_mma()),
    ("trsm.body", "strip = offset(stages, int32(free * STAGE))", "strip = stages", trsm_mma()),
    ("trsm.load_triangle", "int32(t - FIRST), step", "t, step", trsm_mma(changes=PRODUCER)),
    ("trsm.load_triangle", "inside >= first + many", "inside >= first", trsm_mma()),
    ("trsm.load_triangle", "size if tile < inside else 0", "size", trsm_mma()),
    ("trsm.load_triangle", "elif first < count", "elif first < count - 1", trsm_mma()),
    ("trsm.load_triangle", "first + AT_ONCE)", "tiles)", trsm_mma(n=61, changes={"ORDER": 64})),
    ("trsm.load_triangle", "config.loading_threads, STEP", "config.threads, STEP", trsm_mma(changes=PRODUCER)),
    ("trsm.body", "(i < rows) & (j < cols)", "(j < cols)", trsm_mma(b_by_rows=False)),
    ("trsm.body", "(i < rows) & (j < cols)", "(i < rows)", trsm_mma()),
    ("trsm.load_triangle", "if rows - i > last", "if rows - i >= last", trsm_mma()),
    ("trsm.load_triangle", "i - j >= first", "i - j > first", trsm_mma(unit=True, first_pass_only=True)),
    ("trsm.load_triangle", "if j != row:", "if True:", trsm_mma()),
    ("trsm.body", "-acc[x], line[d]", "acc[x], line[d]", trsm_mma()),
    ("trsm.body", "col // 2 * 8 + 2 * q + col % 2", "col // 2 * 8 + 2 * q + 1 - col % 2", trsm_mma()),
    ("trsm.body", "sign * (alpha * im + alpha_i * re)", "alpha * im + alpha_i * re", trsm_mma("z", conj=True)),
    ("trsm.body", "real(-1) if options & CONJUGATE else ", "", trsm_mma("z", conj=True)),
    ("trsm.body", "line[x] = line[x + REALS] = real(1)", "line[x] = real(1)", trsm_mma("z", unit=True)),
    ("trsm.body", "if not unit:\n            safe", "if True:\n            safe", trsm_mma(unit=True, first_pass_only=True)),
    ("trsm.mma", "acc[x] = acc[x + behind * TILE]", "pass", trsm_mma()),
    ("trsm.body", "if tiles_left > first:", "if tiles_left > first + 1:", trsm_mma()),
    ("trsm.body", "updater, 0, NEXT, LEFT)", "updater, 0, NEXT - 1, LEFT)", trsm_mma(n=61, changes=LARGE)),
    ("trsm.body", "batch * stride_b + col0 * b_cs", "batch * stride_t + col0 * b_cs", trsm_mma(batch=2)),
    ("trsm.body", "safe and size < real(INFINITY)", "safe", MMA_OVERFLOW),
    ("trsm.body", "safe and size < real(INFINITY)", "size < real(INFINITY)", HUGE_DIAGONAL),
    ("trsm.body", "int32(min(rows, BLK))\n", "int32(BLK)\n", HUGE_DIAGONAL),
    ("trsm.body", "exact_resolve(unsolved, j - 1", "exact_resolve(int32(0), j - 1", FMA_OVERFLOW),
    ("trsm.body", "exact_resolve(unsolved, last", "exact_resolve(int32(0), last", FMA_OVERFLOW),
    ("trsm.body", "        if j < tiles:", "        if j < 0:", FMA_OVERFLOW),
    ("trsm.body", "lane, unit)\n            sync_warp()", "lane, unit)", FMA_OVERFLOW),
    ("trsm.fma", "2 * q * REALS", "q * REALS", trsm_fma()),
    ("trsm.fma", "+ g) * ROW)", "+ q) * ROW)", trsm_fma()),
    ("trsm.fma", "8 * ROW)", "4 * ROW)", trsm_fma("s", n=61, changes=LARGE)),
    ("trsm.fma", "e % PAIRS * 8 * REALS", "0", trsm_fma(changes={"WARP_N": 16})),
    ("trsm.fma", "PAIR // WIDTH, WIDTH)", "1, WIDTH)", trsm_fma("z")),
    ("trsm.body", "real(-1) if options & CONJUGATE else ", "", trsm_fma("c", conj=True)),
    ("trsm.fma", "targets if k > 0 else others", "targets", trsm_fma()),
    ("trsm.fma", "targets if k > 0 else others", "others", trsm_fma()),
    ("trsm.fma", "slots(first + behind, stop + behind)", "slots(first, stop)", trsm_fma()),
    ("trsm.fma", "targets, first=k", "targets, first=0", trsm_fma("s")),
    ("trsm.fma", "(first + tile) * STEP_TILE", "tile * STEP_TILE", trsm_fma(n=61, changes=LARGE)),
    ("trsm.fma", "col * GROUPS + group", "group * COLUMNS + col", trsm_fma(n=61, changes=LARGE)),
    ("trsm.fma", "return self.BLK + self.vector", "return self.BLK + 1", trsm_fma("s")),
    ("trsm.fma", "return self.BLK + self.vector", "return self.BLK - self.vector", trsm_fma()),
    ("trsm.fma", "(self.ORDER - self.BLK) *", "(self.ORDER - 2 * self.BLK) *", trsm_fma(n=32)),
    ("trsm.fma", "return self.row_of_strip, 1", "return 1, self.row_of_strip", trsm_fma()),
    ("trsm.small", "wait_all()\n        cuda.syncthreads()", "wait_all()", leaf("small", config=WIDE_SMALL)),
    ("trsm.small", "wait_all()\n        cuda.syncthreads()", "cuda.syncthreads()", leaf("small")),
    ("trsm.small", "alpha_i)\n        cuda.syncthreads()", "alpha_i)", leaf("small", r=40)),
    ("trsm.small", "column[x] = alpha * re\n            if", "column[x] = re\n            if", leaf("small")),
    ("trsm.small", "1, config.ld, triangular", "1, ORDER, triangular", leaf("small")),
    ("trsm.small", "config.vector, LD)", "config.vector)", leaf("small")),
    ("trsm.small", "stride_b + col0 * b_cs", "stride_b", leaf("small", r=40)),
    ("trsm.small", "batch * stride_t", "batch * stride_b", leaf("small", batch=2)),
    ("trsm.small", "offset(panel, t * REALS)", "offset(panel, t)", leaf("small", "z")),
    ("trsm.small", "sign * (alpha * im + alpha_i * re)", "alpha * im + alpha_i * re", leaf("small", "c", conj=True)),
    ("trsm.small", "t, n, cols, 0, 0)\n        commit", "t, n, r, 0, 0)\n        commit", leaf("small", r=40)),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
