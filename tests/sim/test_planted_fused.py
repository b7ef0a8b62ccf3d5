"""Defects planted in the fused TRMM and TRSM, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

from functools import partial

import pytest

from pyblasgpu.types import Triangle

from . import test_trsm_fused
from .kernel_checks import (
    diagonal_blocks,
    stacked_trmm,
    trmm_fused,
    trmm_non_finite,
    trsm_by_warps,
    trsm_fused,
    trsm_test,
)
from .planting import assert_caught, parameters
from .test_trmm_fused import VECTORS_OF_T

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # products in place
    ("gemm.trmm_fused", "if load_acquire(flags, before * strips + strip) > level:", "if True:", trmm_fused()),
    ("gemm.trmm_fused", "strip) > level:", "strip) >= level:", trmm_fused(order=61)),
    ("gemm.trmm_fused", "while before < level:", "while before < level - 1:", trmm_fused()),
    ("gemm.trmm_fused", "strips + strip, passed)", "strips + strip, passed + 1)", trmm_fused(order=61)),
    ("gemm.trmm_fused", "THREADS)\n        cuda.syncthreads()", "THREADS)", trmm_fused()),
    ("gemm.trmm_fused", "strips + strip, int32(ALL_PASSED))", "strips + strip, int32(0))", trmm_fused()),
    ("gemm.trmm_fused", "level if apart else t)", "level)", trmm_fused()),
    ("gemm.trmm_fused", "(tri, b, ldt, ldb), ((m", "(tri, b, ldt, ldc), ((m", trmm_fused(apart=True)),
    ("gemm.trmm_fused", "(c, ldc)", "(b, ldb)", trmm_fused(apart=True)),
    ("gemm.trmm_fused", "depth if passed < count else 0", "depth", trmm_fused()),
    ("gemm.trmm_fused", "if passed == own:", "if passed == own + 1:", trmm_fused()),
    ("gemm.trmm_fused", "first + (-BLK_K if down else BLK)", "first", trmm_fused()),
    ("gemm.trmm_fused", "(-BLK_K if down else BLK)", "BLK", trmm_fused()),
    ("gemm.trmm_fused", "-step_b if down else step_b", "step_b", trmm_fused()),
    ("gemm.trmm_fused", "own - 1 if down else 0", "0", trmm_fused()),
    ("gemm.trmm_fused", "levels - 1 - level if down else level", "level", trmm_fused()),
    ("gemm.trmm_fused", "levels - 1 - level if down else level", "level", trmm_fused(triangle=Triangle.UPPER_RIGHT)),
    ("gemm.trmm_fused", "own + index * PER if down", "index * PER if down", trmm_fused()),
    ("gemm.trmm_fused", "int64(first) * BLK + begin_t", "begin_t", trmm_fused(triangle=Triangle.UPPER_LEFT)),
    ("gemm.trmm_fused", "probe_sum[0] != probe_sum[0]", "False", trmm_non_finite()),
    ("gemm.trmm_fused", "(int32(0), here) if down", "(int32(0), int32(depth - 1)) if down", trmm_non_finite()),
    ("gemm.trmm_fused", "(here, int32(depth - 1))", "(int32(0), int32(depth - 1))", trmm_non_finite("z", Triangle.LOWER_RIGHT)),
    ("gemm.trmm_fused", "x[0] * y[0] - imaginary", "x[0] * y[0] + imaginary", trmm_non_finite("z")),
    ("gemm.trmm_fused", "is_aligned(tri, b, ldt, ldb) if OF_A", "True if OF_A", trmm_fused("d", **VECTORS_OF_T)),
    ("gemm.trmm_fused", "if non_finite or not vectors:", "if non_finite:", trmm_fused("d", **VECTORS_OF_T)),
    ("gemm.trsm_fused_phases", "ready = load_acquire(flags, flag)", "ready = int32(passed + 1)", trsm_fused(order=61)),
    ("gemm.trsm_fused_phases", "int32(empty + 1)", "int32(empty)", trsm_fused(order=61)),
    ("gemm.trsm_fused_phases", "            if is_dry:", "            if False:",
     trsm_fused(order=61, stages=3, prefetch=True)),
    ("gemm.trsm_fused_phases", "is_dry or empty == STAGES - 1", "is_dry", trsm_fused(order=61, stages=3, prefetch=True)),
    ("gemm.trsm_fused_phases", "(STAGES - 1) - empty", "(STAGES - 1)", trsm_fused(order=61)),
    ("gemm.trsm_fused_phases", "into if into < STAGES else into - STAGES", "into",
     trsm_fused(order=61, stages=3)),
    ("gemm.trsm_fused_phases", "int32(count + done))", "int32(count + done + 1))", trsm_fused(order=61)),
    ("gemm.trsm_fused", "if level < levels - 1 else 0", "if level < levels else 0", trsm_fused()),
    ("gemm.trsm_fused", "(k_tiles - 1) * BLK_K, order", "k_tiles * BLK_K, order", trsm_fused(triangle=Triangle.UPPER_LEFT)),
    ("gemm.trsm_fused", "next_c(ldc) * REALS * int64(sign)", "next_c(ldc) * REALS", trsm_fused(triangle=Triangle.UPPER_LEFT)),
    ("gemm.trsm_fused_phases", "base + BLK_K if down else base - BLK_K", "base + BLK_K", trsm_fused(triangle=Triangle.LOWER_RIGHT)),
    ("gemm.trsm_fused_phases", "(own - 1) * BLK_K)", "0)", trsm_fused(triangle=Triangle.LOWER_RIGHT)),
    ("gemm.trsm_fused", "compute(True, False, unit", "compute(True, True, unit", trsm_fused(triangle=Triangle.UPPER_LEFT)),
    ("gemm.trsm_fused", "compute(False, down, unit", "compute(True, down, unit", trsm_fused("d", **VECTORS_OF_T)),
    ("gemm.trsm_fused_phases", "if done < own - 1:", "if done < own - 2:", trsm_fused()),
    ("gemm.trsm_fused_phases", "cuda.syncthreads()\n        if t == ASIDE", "if t == ASIDE", trsm_fused()),
    ("gemm.trsm_fused", "cuda.syncthreads()\n        if t == 0:\n            store_release",
     "if t == 0:\n            store_release", trsm_fused()),
    ("gemm.trsm_fused", "strip * FLAG)", "0)", trsm_fused()),
    ("gemm.trsm_fused", "            cuda.syncthreads()\n        vectors", "        vectors", trsm_fused(apart=True)),
    ("gemm.trsm_fused", "options & READS_Y != 0, ldb", "False, ldb", trsm_fused(apart=True, adds=True)),
    ("gemm.trsm_fused", "(int64(col0) * ldb + row0)", "(int64(col0) * ldc + row0)", trsm_fused(apart=True)),
    ("gemm.trsm_fused", "(level if down else levels - 1 - level) * BLK", "level * BLK",
     trsm_fused(triangle=Triangle.UPPER_LEFT, apart=True)),
    ("gemm.trsm_fused_phases", "(row < rows) & (col < cols) &", "(col < cols) &", trsm_fused(apart=True, order=41)),
    ("gemm.trsm_fused_phases", "& (number < EACH)", "", trsm_fused("d", apart=True, others=60, BLK_N=24)),
    ("gemm.trsm_fused_phases", "factor * im + factor_i * re", "factor * im", trsm_fused("c", apart=True, adds=True)),
    ("gemm.diagonal_solve", "panel[at] - acc[x]", "panel[at] + acc[x]", trsm_fused()),
    ("gemm.diagonal_solve", "alpha * panel[at] - acc[x]", "panel[at] - acc[x]", trsm_fused()),
    ("gemm.diagonal_solve", "real(1) if unit else value[ON_DIAGONAL]", "real(1)", trsm_fused()),
    ("gemm.diagonal_solve", "real(1) if unit else value", "value", trsm_fused(unit=True, first_pass_only=True)),
    ("gemm.diagonal_solve", "THREADS * MANY)), MANY * REALS", "THREADS * MANY)), 0", trsm_fused()),
    ("gemm.diagonal_solve", "((i > j) == down) & (i != j)", "(i > j)", trsm_fused(triangle=Triangle.UPPER_LEFT, first_pass_only=True)),
    ("gemm.diagonal_solve", "(COUNT - 1 - i, COUNT - 1 - j)", "(i, j)",
     trsm_fused(triangle=Triangle.UPPER_LEFT, first_pass_only=True)),
    ("gemm.simt", "conj_a,\n            conj_b,", "False,\n            conj_b,", trsm_fused("c", conj=True)),
    ("gemm.diagonal_solve", "real(CONJ) * value[x + 1]", "value[x + 1]", trsm_fused("c", conj=True)),
    ("gemm.diagonal_solve", "else (sides, extent)", "else (extent, sides)", trsm_fused(triangle=Triangle.LOWER_RIGHT)),
    ("gemm.diagonal_solve", "(k < extent) & (side < sides)", "(side < sides)",
     trsm_test(test_trsm_fused.overflowing)),
    ("gemm.diagonal_solve", "(k < extent) & (side < sides)", "(k < extent)",
     trsm_test(test_trsm_fused.overflowing)),
    ("gemm.diagonal_solve", "non_finite if size < real(INFINITY) else 1", "non_finite",
     trsm_test(test_trsm_fused.overflowing)),
    ("gemm.warp_substitution", "        sync_warp()", "        pass", trsm_by_warps()),
    ("gemm.warp_substitution", "            eliminate(column)\n", "", trsm_by_warps("z", first_pass_only=True)),
    ("gemm.warp_substitution", "range(1, SHARES)", "range(2, SHARES)", trsm_by_warps()),
    ("gemm.warp_substitution", "later_rows(column, own)\n", "pass\n", trsm_by_warps("z")),
    ("gemm.warp_substitution", "put(0, column, mine)\n", "pass\n", trsm_by_warps("c")),
    ("gemm.warp_substitution", "SIGN * share", "share", trsm_by_warps(triangle=Triangle.UPPER_LEFT)),
    ("gemm.warp_substitution", "else layout.count - 1", "else 0", trsm_by_warps(triangle=Triangle.LOWER_RIGHT)),
    ("gemm.warp_substitution", "share * LINES", "0", trsm_by_warps()),
    ("gemm.warp_substitution", "0 if size < real(INFINITY) else 1", "0",
     trsm_test(partial(test_trsm_fused.overflowing, **test_trsm_fused.shared(Triangle.LOWER_LEFT)))),
    ("gemm.diagonal_solve", "(p, q) if BY_ROWS", "(q, p) if BY_ROWS", trsm_by_warps(first_pass_only=True)),
    ("trmm.diagonal_blocks", "& is_inside(row, col, 0, options)", "", diagonal_blocks(beyond=77)),
    ("trmm.diagonal_blocks", "(row < left) & (col < left) &", "", diagonal_blocks()),
    ("trmm.diagonal_blocks", "ok & (not is_one)", "ok", diagonal_blocks("z", unit=True, beyond=77j)),
    ("trmm.diagonal_blocks", "values[i * REALS] = real(1)", "pass", diagonal_blocks(unit=True)),
    ("trmm.diagonal_blocks", "(fast, slow) if options & BY_ROWS", "(slow, fast) if options & BY_ROWS", diagonal_blocks()),
    ("trmm.diagonal_blocks", "flag < count", "flag < count - 1", diagonal_blocks()),
    ("trmm.diagonal_blocks", "matrix * stride_copy + first", "0 * stride_copy + first", stacked_trmm("s", stem="diagonal_blocks")),
    ("gemm.trmm_stack", "matrix * stride_blocks * REALS", "matrix * stride_blocks", stacked_trmm("z")),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
