"""Defects planted in what kernels have in common, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import pytest

from pyblasgpu.kernels.copy.packing import RBL, ROW
from pyblasgpu.types import Region

from .kernel_checks import (
    COPIES,
    ODD_LEAD,
    ODD_START,
    STRICT,
    T_BY_ROWS,
    TRIANGLE,
    UNSAFE_RECIPROCAL,
    VECTORS_OF_A,
    for_packed,
    leaf,
    mma,
    simt,
    split_k_reduce,
    trsm_fused,
    trsv,
)
from .planting import assert_caught, parameters

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers and waits
    ("common.triangle_panel", "= acc[x]\n            cuda.syncthreads()", "= acc[x]", leaf("trmm", slices=2)),
    # edges
    ("common.tile_loaders", "(first < majors) & (minor0 < minors)", "(first < majors)", simt()),
    ("common.tile_loaders", "(first < majors) & (minor0 < minors)", "(first <= majors) & (minor0 < minors)", simt()),
    ("common.tile_loaders", "pointer_is(source) & ", "", simt(**ODD_START)),
    ("common.tile_loaders", "& (ld & (ELEMENTS - 1) == 0)", "", simt(**ODD_LEAD)),
    ("common.tile_loaders", "replace(smem_tile, vec=1)", "replace(smem_tile, vec=smem_tile.vec)", simt(**ODD_LEAD)),
    ("common.tile_loaders", "if minor0 < minors else 0", "if minor0 <= minors else 0", simt(stages=2)),
    ("common.tile_loaders", "max(majors - major0, 0)", "max(majors - major0 + 1, 0)", simt(stages=2)),
    ("common.triangle_panel", "(i < rows_left) & (j < cols_left)", "(i <= rows_left) & (j < cols_left)", T_BY_ROWS),
    ("common.triangle_panel", "(i < rows_left) & (j < cols_left)", "(i < rows_left)", leaf("trmm")),
    ("common.triangle_panel", "(row < rows) & (col < cols)", "(row <= rows) & (col < cols)", leaf("trmm")),
    ("common.triangle_panel", "(row < rows) & (col < cols)", "(row < rows)", leaf("trmm")),
    ("common.coalesced_index", "True if TOTAL % THREADS == 0 else t + k * THREADS < TOTAL", "True", leaf("trmm", depth=6)),
    ("common.coalesced_index", "+ k * STEP", "+ k", leaf("trmm", depth=6)),
    ("common.coalesced_index", "at + STEP *", "at + (STEP + 1) *", leaf("trmm", depth=6)),
    ("common.coalesced_index", "element_offset(t, k + 1,", "element_offset(t, k,", leaf("trmm", depth=6)),
    ("common.substitution", "(i < rows) & (j < cols)", "(i <= rows) & (j < cols)", leaf("small")),
    ("common.substitution", "(i < rows) & (j < cols)", "(i < rows - 1) & (j < cols)", leaf("small")),
    ("common.region", "else shift + BLK_M >", "else shift >", TRIANGLE),
    # what must not be read
    ("common.triangle_panel", "i + shift - j >= first", "i + shift - j > first", leaf("trmm")),
    ("common.triangle_panel", "i + shift - j >= first", "j - i - shift >= first", leaf("trmm")),
    ("common.triangle_panel", "i + shift - j >= first", "i - j >= first", leaf("trmm")),
    ("common.region", "(first <= i)", "(first < i)", TRIANGLE),
    ("common.region", "diagonal = j - shift", "diagonal = j", TRIANGLE),
    ("common.region", "1 if options & STRICT else 0", "0", STRICT),
    ("common.region", "(i <= last)", "(i < last)", split_k_reduce(m=9, n=9, region=Region.UPPER)),
    ("common.region", "last = diagonal if options & UPPER else ROWS", "last = ROWS", split_k_reduce(m=9, n=9, region=Region.UPPER)),
    ("common.region", "min(end, int32(diagonal + 1))", "min(end, diagonal)", simt(m=20, n=20, region=Region.UPPER)),
    ("common.region", "options & UPPER else diagonal", "options & UPPER else int32(diagonal + 1)", simt(m=20, n=20, region=Region.LOWER)),
    ("common.region", "int32(j - shift)", "int32(j)", simt(m=20, n=20, region=Region.UPPER)),
    ("common.region", "options & TRIANGLE == 0", "False", COPIES),
    ("common.region", "shift + BLK_M <= 0 if", "shift <= 0 if", simt(m=32, n=32, region=Region.UPPER)),
    ("common.region", "else shift >= BLK_N", "else shift >= 0", simt(m=32, n=32, region=Region.LOWER)),
    ("common.region", "else shift >= BLK_N", "else shift >= 0", simt("c", m=32, n=32, region=Region.HERMITIAN_LOWER)),
    ("common.region", "return covered | is_whole(options)", "return True", simt(m=32, n=32, region=Region.LOWER)),
    ("common.tile_scheduler", "if options & TRIANGLE:", "if options & UPPER:", simt(m=40, n=40, region=Region.LOWER)),
    ("common.tile_scheduler", "if options & TRIANGLE:", "if True:", simt(m=40, n=20)),
    # conjugation and complex arithmetic
    ("common.triangle_panel", "REALS, conj, False)", "REALS, False, False)", leaf("trmm", "z", conj=True)),
    ("common.triangle_panel", "REALS, conj, False)", "REALS, False, conj)", leaf("trmm", "c", conj=True)),
    ("common.substitution", "sign * panel[x + 1]", "panel[x + 1]", leaf("small", "c", conj=True)),
    ("common.substitution", "inverse[x] = diagonal[at] = real(1)", "inverse[x] = real(1)", leaf("small", "z", unit=True)),
    # places and strides
    ("common.tile_loaders", "target + e * LD, staged", "target + e, staged", VECTORS_OF_A),
    ("common.tile_loaders", "major0 * LD + minor0 * REALS if TRANSPOSES else ", "", simt(trans_a=True, stages=2)),
    ("common.tile_loaders", "major * LD + minor * REALS if TRANSPOSES else ", "", simt(trans_a=True, stages=2)),
    ("common.smem_tile", "self.ld if self.is_kept", "1 if self.is_kept", mma()),
    ("common.smem_tile", "return 1 if self.is_kept", "return self.ld if self.is_kept", mma()),
    ("common.tile_iterators", "first * ld + k0 if K_MAJOR else ", "", simt(trans_a=True)),
    ("common.tile_iterators", "int64(DEPTH) if K_MAJOR else DEPTH * ld", "int64(DEPTH)", simt(trans_b=True)),
    ("common.packed_tile", "quotient(first, BLK) * ld", "first * ld", for_packed()),
    ("common.packed_tile", "+ k0 * LD", "+ k0 * BLK", for_packed("d", "gemm_mma", n=40, schedule="streamed")),
    ("common.packed_tile", "int64(DEPTH * LD)", "int64(DEPTH * BLK)", for_packed("z", "gemm_mma")),
    ("common.packed_tile", "or t + first < RUNS", "or True", for_packed("c", BLK_M=8, DIM_XA=8, DIM_YA=4)),
    ("common.packed_tile", "range(0, RUNS, THREADS)", "range(0, RUNS - THREADS, THREADS)", for_packed("d")),
    ("common.packed_tile", "target + first * RUN_REALS", "target", for_packed("z")),
    ("common.packed_tile", "line, first * RUN_REALS", "line, 0", for_packed("z")),
    ("common.packed_tile", "* (DEPTH * LD)", "* (BLK * LD)", for_packed("d", packing_a=RBL)),
    ("common.packed_tile", "k0 // DEPTH * ld", "k0 * ld", for_packed("d", packing_b=RBL, n=40, schedule="streamed")),
    ("common.packed_tile", "if BY_TILES else ld", "if BY_TILES else int64(DEPTH * LD)", for_packed("s", packing_a=RBL)),
    ("common.packed_tile", "first + k0 * ld", "first + k0", for_packed("d", packing_a=ROW, schedule="streamed")),
    ("common.packed_tile", "return DEPTH * ld", "return ld", for_packed("z", packing_b=ROW)),
    ("common.packed_tile", "row * ld * REALS", "row * LD", for_packed("d", packing_a=ROW)),
    ("common.packed_tile", "row * LD + column", "run * RUN_REALS", for_packed("d", "gemm_mma", packing_a=ROW)),
    ("common.packed_tile", "or run < ALL", "or True", for_packed("c", BLK_M=8, DIM_XA=8, DIM_YA=4, packing_a=ROW)),
    ("common.tile_loaders", "line = offset(line, DIM_Y * ld", "line = offset(line, ld", simt()),
    # products in place
    ("common.substitution", "(i < rows) & (j < cols)", "(j < cols)", trsm_fused()),
    ("common.substitution", "(i < rows) & (j < cols)", "(i < rows)", trsm_fused()),
    ("common.substitution", "i * row + j * col", "i * row + j * reals",
     trsm_fused(BLK_K=8, UNROLL=8, VEC_K=2)),
    ("common.triangle_panel", "(slice - 1) * ACC + x", "slice * ACC + x", leaf("trmm", slices=2)),
    ("common.triangle_panel", "kk * LD_T)", "kk * (LD_T - 1))", leaf("trmm")),
    # order and arithmetic
    ("common.substitution", "divided(column[x], diagonal[t], inverse[x])", "column[x]", leaf("small")),
    ("common.substitution", "int32((size >= real(TINY)) & (size <= real(HUGE)))", "int32(1)", UNSAFE_RECIPROCAL),
    ("common.substitution", "range(j + 1, n)", "range(j + 2, n)", UNSAFE_RECIPROCAL),
    # the leaves whose warps own columns of B
    ("common.substitution", "j * (ld + 1) * REALS", "j * (n + 1) * REALS", leaf("small")),
    # few right-hand sides in one launch
    ("common.substitution", "y[i] - t[k] * x[j]\n", "y[i] + t[k] * x[j]\n", trsv()),
    ("common.substitution", "- t[k + 1] * x[j]\n", "+ t[k + 1] * x[j]\n", trsv("c")),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
