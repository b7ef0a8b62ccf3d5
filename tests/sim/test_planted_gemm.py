"""Defects planted in the GEMM kernels and their main loops, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import pytest

from pyblasgpu.types import Region

from .kernel_checks import (
    FILL_PIPELINE,
    INSIDE,
    LOAD_NEXT,
    NOT_SHARED,
    ODD_LEAD,
    SLICED,
    SLICED_IN_FOUR,
    SLICED_MMA,
    VECTORS_OF_A,
    WAIT,
    for_packed,
    grouped,
    k_major_b,
    mma,
    simt,
    simt_3m,
)
from .planting import assert_caught, parameters

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers and waits
    ("gemm.mainloop", f"{WAIT}\n            start", "wait()\n            start", simt(stages=2)),
    ("gemm.mainloop", f"{WAIT}\n            start", "cuda.syncthreads()\n            start", simt(stages=2)),
    ("gemm.mainloop", f"{WAIT}\n            {LOAD_NEXT}", f"wait()\n            {LOAD_NEXT}", mma()),
    ("gemm.mainloop", f"{WAIT}\n            {LOAD_NEXT}", f"cuda.syncthreads()\n            {LOAD_NEXT}", mma()),
    ("gemm.mainloop", FILL_PIPELINE, "wait()\n            load(0, ra", mma()),
    ("gemm.mainloop", FILL_PIPELINE, "cuda.syncthreads()\n            load(0, ra", mma()),
    ("gemm.mainloop", "ptx.wait_async(config.stages - 2)", "ptx.wait_async(config.stages - 1)", simt(stages=3)),
    ("gemm.mainloop", "if k_tile > 0:\n                    cuda.syncthreads()", "pass", simt()),
    ("gemm.mainloop", "staged_b, t)\n                cuda.syncthreads()", "staged_b, t)", simt()),
    # edges
    ("gemm.epilogue", "(int32(row) < end)", "(int32(row) <= end)", simt(beta=0)),
    ("common.region", "rows if j < cols else 0", "rows if j < cols - 1 else 0", simt()),
    ("gemm.epilogue", INSIDE, INSIDE.replace("BLK_M", "0"), simt()),
    ("gemm.epilogue", "and ldc % RUN == 0", "", simt(m=18, VEC_M=2, PAD_A=2)),
    ("gemm.simt", "(at < extent) & (kk < depth)", "(at < extent)", simt(**NOT_SHARED)),
    ("gemm.simt", "(at < extent) & (kk < depth)", "(kk < depth)", simt(trans_a=True, **NOT_SHARED)),
    ("gemm.load_stage", "depth >= BLK_K:", "depth > 0:", simt(m=16, n=8)),
    ("gemm.load_stage", "rows >= BLK_M and", "rows > 0 and", simt(trans_a=True, stages=2)),
    ("gemm.mainloop", "is_aligned(a, b, lda, ldb), a, b, c", "True, a, b, c", simt(**ODD_LEAD)),
    ("gemm.load_stage", "a_is_aligned(a, lda) & b_is_aligned(b, ldb)", "True", simt(**ODD_LEAD)),
    ("gemm.mainloop", "(depth + BLK_K - 1) // BLK_K", "depth // BLK_K", simt()),
    # what must not be read
    ("gemm.epilogue", "(beta != real(0)) | (beta_i != real(0))", "True", simt(beta=0)),
    ("gemm.epilogue", "read(old, i * WIDTH, c", "read(old, 0, c", simt(BLK_M=32, BLK_N=32)),
    ("gemm.epilogue", "coords(first + i, t)\n        ok", "coords(i, t)\n        ok",
     simt(n=30, BLK_M=32, BLK_N=32)),
    ("gemm.epilogue", "scale_run(0, x, i * WIDTH", "scale_run(0, x, 0", simt(BLK_M=32, BLK_N=32)),
    ("gemm.epilogue", "fma(alpha, acc[x], beta * old[y])", "fma(alpha, acc[x], old[y])", simt()),
    ("gemm.mainloop", "real(min(k_tiles, 1))", "real(min(k_tiles, 2))", VECTORS_OF_A),
    ("gemm.epilogue", "x = (first + i) * WIDTH", "x = i * WIDTH", simt(n=30, BLK_M=32, BLK_N=32)),
    ("gemm.epilogue", "(beta != real(0)) | (beta_i", "(beta != real(0)) & (beta_i", simt()),
    ("gemm.epilogue", "old[i * WIDTH + 1] = real(0)", "pass", simt("z", m=20, n=20, region=Region.HERMITIAN_LOWER)),
    ("gemm.epilogue", "acc[x + 1] = real(0)", "pass", simt("c", m=20, n=20, region=Region.HERMITIAN_UPPER)),
    ("gemm.epilogue", "& (row + shift == col)", "& (row == col)",
     simt("z", m=20, n=20, region=Region.HERMITIAN_LOWER)),
    # conjugation and complex arithmetic
    ("gemm.simt", "conj_a,\n            conj_b,", "conj_a,\n            False,", simt("c", conj_b=True)),
    ("gemm.simt", "conj_a,\n            conj_b,", "conj_b,\n            conj_a,", simt("z", conj_b=True)),
    ("gemm.epilogue", "real(-1) if options & CONJUGATE else", "", simt("c", conj_a=True, conj_b=True)),
    ("gemm.epilogue", "sign * alpha, sign * alpha_i", "sign * alpha, alpha_i", simt("z", conj_a=True, alpha=1 - 2j)),
    ("gemm.epilogue", "sign * alpha, sign * alpha_i", "alpha, sign * alpha_i", simt("z", conj_a=True, alpha=1 - 2j)),
    ("gemm.epilogue", "alpha * acc[x] - signed_i", "alpha * acc[x] + signed_i", simt("z", alpha=1 - 2j)),
    ("gemm.epilogue", "- beta_i * old[y + 1]", "+ beta_i * old[y + 1]", simt("c", beta=1j)),
    ("gemm.mma", "reals, conj_a, conj_b,", "reals, conj_a, False,", mma("z", conj_b=True)),
    ("gemm.mma", "reals, conj_a, conj_b,", "reals, conj_b, conj_a,", mma("z", conj_b=True)),
    ("gemm.mma", "by_real - by_imaginary\n", "by_real + by_imaginary\n", mma("z", three_m=True)),
    ("gemm.mma", "by_sums - by_real", "by_sums", mma("z", three_m=True)),
    ("gemm.simt_three_m", "by_real - by_imaginary\n", "by_real + by_imaginary\n", simt_3m()),
    ("gemm.simt_three_m", "by_sums - by_real", "by_sums", simt_3m()),
    ("gemm.simt_three_m", "kk, conj_b)", "kk, False)", simt_3m(conj_b=True)),
    ("gemm.simt_three_m", "SUMS * self.THR_M", "2 * self.THR_M", simt_3m()),
    # places and strides
    ("gemm.simt", "step * (VEC_K * LD) + thread", "step * (VEC_K * LD - 1) + thread", simt()),
    ("gemm.simt", "pointer, kk * LD)", "pointer, 0)", k_major_b()),
    ("gemm.simt", "kk * (count * reals)", "0", k_major_b()),
    ("gemm.simt", "thread * LD + step * (VEC_K * reals)", "thread * LD", k_major_b()),
    ("gemm.simt", "count, dim * LD", "count, LD", k_major_b()),
    ("gemm.simt", "(kk, VEC_K) if", "(0, VEC_K) if", k_major_b()),
    ("gemm.simt", "(kk * count, 1)", "(kk, 1)", k_major_b()),
    ("gemm.mainloop", "batch * stride_c + col0", "batch * stride_a + col0", simt(m=16, k=4, batch=2)),
    ("gemm.mainloop", "begin_b(col0, int64(0), ldb)", "begin_b(row0, int64(0), ldb)", simt()),
    ("gemm.load_stage", "BLK_M = BLK_N = BLK_K = 1", "BLK_M = BLK_N = BLK_K = 2", for_packed(m=33)),
    ("gemm.mainloop", "if reading < STAGES - 1 else 0", "if reading < STAGES else 0", simt(stages=2)),
    ("gemm.config", "self.stages * self.stage_reals", "self.stage_reals", simt(stages=3)),
    ("gemm.simt", "LD = smem_tile.ld * reals", "LD = smem_tile.blk * reals", simt(PAD_A=1, stages=2)),
    ("gemm.mma", "B_TILE + (col", "(col", mma()),
    ("gemm.mma", "step * DEPTH + quarter", "step * DEPTH", mma()),
    ("gemm.mma", "t // 32 % WARPS_M * WARP_M + g", "g", mma()),
    ("gemm.mma", "t % 4 * 2 + j % 2", "t % 4 * 2 + (1 - j % 2)", mma()),
    # slices of k
    ("gemm.slice_sums", "(t // GROUP - 1) * SLICE", "t // GROUP * SLICE", simt(**SLICED)),
    ("gemm.slice_sums", "other * SLICE", "0", simt(**SLICED_IN_FOUR)),
    ("gemm.slice_sums", "range(SLICES - 1)", "range(1)", simt(**SLICED_IN_FOUR)),
    ("gemm.slice_sums", "t >= GROUP", "t > GROUP", simt(**SLICED)),
    ("gemm.slice_sums", "t % GROUP * WIDTH", "t % GROUP", simt(**SLICED)),
    ("gemm.slice_sums", "cuda.syncthreads()\n        if t", "if t", simt(**SLICED)),
    ("gemm.slice_sums", "+= got[i]", "= got[i]", simt(**SLICED)),
    ("gemm.slice_sums", "cuda.syncthreads()\n            add(", "add(", simt(**SLICED, k=7)),
    ("gemm.mainloop", "SLICES == 1 or t < GROUP", "True", simt(**SLICED)),
    ("gemm.config", "(self.SLICES_K - 1) * self.slice_threads", "self.slice_threads", simt(**SLICED_IN_FOUR)),
    ("gemm.simt", "t // GROUP * SLICE_A", "0", simt(**SLICED)),
    ("gemm.simt", "t // GROUP * SLICE_B", "0", simt(**SLICED)),
    ("gemm.simt", "(t // 32 % WARPS if SLICES > 1 else t // 32)", "t // 32", simt(**SLICED)),
    ("gemm.mma", "quarter + t // GROUP * SLICE", "quarter", mma(**SLICED_MMA)),
    ("gemm.mma", "SLICE, t % GROUP", "SLICE, t", mma(**SLICED_MMA)),
    # products of unequal sizes
    ("common.problem_table", "int64(owner[0]) * ROW_WORDS", "int64(0)", grouped()),
    ("gemm.grouped", "int64(owner) * 4", "int64(0)", grouped()),
    ("gemm.grouped", "blockIdx.x - words[16]", "blockIdx.x", grouped()),
    ("gemm.grouped", "wide(words, 2) + begin_b(col0", "wide(words, 2) + begin_b(row0", grouped()),
    ("gemm.grouped", "(col0 * ldc + row0)", "(row0 * ldc + col0)", grouped()),
    ("gemm.grouped", "False, conj)", "False, False)", grouped("c")),
    # products in place
    ("gemm.mainloop", "load(2 * i + 3, ra_next", "load(2 * i + 2, ra_next", simt(stages=2, prefetch=True)),
    ("gemm.mainloop", "update(acc, ra_next, rb_next)\n        load", "load", simt(stages=2, prefetch=True)),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
