"""Defects planted in DGEMM and ZGEMM by residues, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import pytest

from . import test_gemm_int8 as checks
from . import test_zgemm_int8 as of_complex
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters
from .test_sample_pairs import check_hopeless, check_shared, check_verdicts


@one_each
def scaled(**options) -> Check:
    return Check("row_scales", lambda module: checks.check_scales(kernels=module, **options))


@one_each
def packed(**options) -> Check:
    return Check("pack_residues", lambda module: checks.check_pack(kernels=module, **options))


@one_each
def multiplied(m=20, n=9, k=300, moduli=2, **options) -> Check:
    return Check(
        "gemm_int8", lambda module: checks.check_products(m, n, k, moduli, kernels=module, **options)
    )


@one_each
def combined(m=20, moduli=13, **options) -> Check:
    return Check(
        "combine_residues",
        lambda module: checks.check_combined(m=m, moduli=moduli, kernels=module, **options),
    )


@one_each
def verdict(case: int) -> Check:
    chosen = slice(case, case + 1)
    return Check("sample_pairs", lambda module: check_verdicts(chosen=chosen, kernels=module))


SKIPPED = Check("row_scales", lambda module: checks.check_skipped(module))
UNPACKED = Check("pack_residues", lambda module: checks.check_skipped(packing=module))
PIVOTS = Check("pivot_scales", lambda module: checks.check_pivots(kernels=module))
PARTS = Check("pack_residues", lambda module: checks.check_parts(packing=module))
SOME_ROWS = Check("gemm_int8", lambda module: checks.check_parts(module))
FLAGS = Check("gemm_int8", lambda module: checks.check_flags(module))
SAMPLED = Check("gemm_int8", lambda module: checks.check_sampled(module))
FLAGGED = Check("gemm_int8", lambda module: checks.check_flagged(module))
GUARDED = Check("gemm_int8_guarded", lambda module: checks.check_guarded(module))
HOPELESS = Check("gemm_int8", lambda module: check_hopeless(module))
SHARED = Check("gemm_int8_guarded", lambda module: check_shared(kernels=module))
CLUSTER = multiplied(m=70, n=20, k=40)
Z_SCALED = Check("row_scales", lambda module: of_complex.check_scales(kernels=module))
Z_PACKED = Check("pack_residues", lambda module: of_complex.check_pack(conj=True, kernels=module))
Z_MULTIPLIED = Check("gemm_int8", lambda module: of_complex.check_products(kernels=module))
Z_COMBINED = Check(
    "combine_residues", lambda module: of_complex.check_combined(1 - 2j, 0.5j, m=9, kernels=module)
)
Z_EXACT = Check("combine_residues", lambda module: of_complex.check_combined(1j, m=9, kernels=module))
Z_GUARDED = Check("gemm_int8_guarded", lambda module: of_complex.check_guarded(kernels=module))
FOLDER, RING = "gemm.int8.", "gemm.stage_ring"
SAMPLER, SCALES, PIVOT, PACK, PRODUCT, PIPELINE, EPILOGUE, COMBINE, GUARD = (
    FOLDER + name
    for name in (
        "sample_pairs",
        "row_scales",
        "pivot_scales",
        "pack_residues",
        "product",
        "pipeline",
        "epilogue",
        "combine_residues",
        "guarded",
    )
)

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # scales
    (SCALES, "cuda.syncthreads()\n", "pass\n", scaled(k=40)),
    (SCALES, "reals if row0 + lane < extent else 0", "reals", scaled(k=40, by_rows=True, gap=3)),
    (SCALES, "reals if row0 + row < extent else 0", "reals", scaled(k=40, gap=3)),
    (SCALES, "at < k)", "True)", scaled(k=40, gap=3)),
    (SCALES, "by_norm = int32(by_norm - 1)", "pass", scaled(k=40)),
    (SCALES, "min(by_norm, LARGEST - 1 - e)", "by_norm", scaled(k=40, moduli=15)),
    (SCALES, "DIGIT_BITS - 1 - e - s", "DIGIT_BITS - e - s", scaled(k=40)),
    (SCALES, "size * scale * real(0.5)", "size * scale * real(0.25)", scaled(k=40)),
    (SCALES, "unit, share = real(0), size", "unit, share = real(0), real(0)", scaled(k=40)),
    (SCALES, "(e >= -MAX_EXPONENT) & ", "", scaled(k=40)),
    (SCALES, "count = WARPS if options & BY_ROWS else 32", "count = WARPS", scaled(k=40)),
    (SCALES, "others |= int32(verdicts[at] == 0)", "others = int32(verdicts[at] == 0)", SKIPPED),
    (SCALES, "real(INFINITE) if skips else largest", "largest", SKIPPED),
    # verdicts
    (SAMPLER, "cuda.syncthreads()\n            kk", "kk", verdict(0)),
    (SAMPLER, "(row < rows) & (kk < depth)", "row < rows", verdict(0)),
    (SAMPLER, "DEPTH * config.every", "DEPTH", verdict(0)),
    (SAMPLER, "t // 4 * OWN + i", "t // 4 + i", verdict(0)),
    (SAMPLER, "unit * of_col[SIZE * ROWS]", "real(0)", verdict(1)),
    (SAMPLER, "shared[0] + shared[1]", "shared[0]", verdict(4)),
    (SAMPLER, "block * SCATTER % BLOCKS", "block", verdict(4)),
    # residues and digits
    (PACK, "found |= int32(sizes[int64(row)] < real(INFINITE))", "found = int32(1)", UNPACKED),
    (PACK, "cuda.syncthreads()\n", "pass\n", packed(moduli=2, k=40)),
    (PACK, "(row < rows) & (kk < depth)", "row < rows", packed(moduli=2, k=40, gap=3)),
    (PACK, "(row < rows) & (kk < depth)", "kk < depth", packed(moduli=2, k=40, by_rows=True, gap=3)),
    (PACK, "(chunk ^ row % 8) * 4", "chunk * 4", packed(moduli=2, k=40)),
    (PACK, "real(MAGIC)))) * p", "real(MAGIC)))) * (p + 1)", packed(k=40)),
    (PACK, "real(-0.5)", "real(0)", packed(moduli=2, k=40)),
    (PACK, "abs(x), digit", "x, digit", packed(moduli=2, k=40)),
    (PACK, "number * plane_words", "0 * plane_words", packed(moduli=2, k=40)),
    (PACK, "chunk % SAMPLE == turn", "chunk % SAMPLE == 0", packed(moduli=1, k=600, sample=4)),
    (
        PACK,
        "(chunk >= (turn + 1) * SHARE)",
        "(chunk > (turn + 1) * SHARE)",
        packed(moduli=1, k=600, sample=4),
    ),
    (PACK, "stage == stages - 1", "False", packed(moduli=1, k=600, sample=4)),
    (PACK, "quotient(begin, BLK)", "0", PARTS),
    (PACK, "int32(stage + first)", "int32(stage)", PARTS),
    # rows of a Cholesky factor
    (PIVOT, "cuda.syncthreads()\n", "pass\n", PIVOTS),
    (PIVOT, "if not total <= own[MOST * step]", "if total > own[MOST * step]", PIVOTS),
    (PIVOT, "total = own[SQUARES * step]", "total = real(0)", PIVOTS),
    (PIVOT, "+ 2) >> 1", "+ 1) >> 1", PIVOTS),
    # who waits for whom
    (RING, "wait(int32(full + 8), int32(turn % 2 ^ 1))", "pass", multiplied()),
    (PIPELINE, "wait_for_last()\n", "pass\n", multiplied()),
    (PIPELINE, "release(before, shared, lane)", "release(stage, shared, lane)", multiplied()),
    (RING, "int32(ARRIVALS)", "int32(ARRIVALS // CLUSTER)", multiplied(m=70, k=300)),
    (RING, "            init_fence()\n", "            pass\n", multiplied()),
    (PRODUCT, "            cluster_sync()  #", "            pass  #", CLUSTER),
    # what is multiplied
    (PIPELINE, "int32(b + step * STEP)", "b", multiplied(k=40)),
    (PIPELINE, "start(acc, a, b)", "go_on(acc, a, b)", multiplied(k=40)),
    (PIPELINE, "part = int32(rank_of() * PART)", "part = int32(0 * PART)", CLUSTER),
    (PRODUCT, "col0 + cluster_rank() * COLUMNS", "col0", CLUSTER),
    (PRODUCT, "image = int32(image + first)\n            work", "work", FLAGS),
    (PRODUCT, "if image == DIGITS else stages", "if image != DIGITS else stages", SAMPLED),
    (PRODUCT, "own | ((other >= 0)", "own & ((other >= 0)", FLAGGED),
    (PRODUCT, "elif own:", "else:", FLAGGED),
    (PRODUCT, "images = int32(0)", "pass", HOPELESS),
    (PRODUCT, "flags[i] = int32(1)", "flags[0] = int32(1)", HOPELESS),
    (PRODUCT, "begin + min(row", "min(row", SOME_ROWS),
    # residues of sums, and flags
    (EPILOGUE, ">> (SHIFT - 32)", ">> (SHIFT - 31)", multiplied(k=40)),
    (EPILOGUE, "(v * WORKERS + t) * 4", "t * 4", multiplied(n=40, k=40, BLK_N=64)),
    (EPILOGUE, "U = 2.0**-53", "U = 1.0", FLAGS),
    (EPILOGUE, "(at < n) & (left > 8)", "(at < n) & (left > 16)", FLAGS),
    (EPILOGUE, "t % 32 == 0", "t == 0", FLAGS),
    # integers, and C
    (COMBINE, "fma(times, real(-THIRD), thirds[e])", "real(0)", combined()),
    (COMBINE, "fma(times, real(-SECOND), seconds[e])", "seconds[e]", combined()),
    (COMBINE, "(lost + fma", "(fma", combined(alpha=2.0, m=70)),
    (COMBINE, "fill(thirds, real(BEGIN_3))", "fill(thirds, real(0))", combined()),
    (COMBINE, "MODULI + first + number) * step", "MODULI) * step", combined()),
    (COMBINE, "(rows > row) & (col < cols)", "(col < cols)", combined()),
    (COMBINE, "scales, reads_c)", "scales, True)", combined()),
    (COMBINE, "+ beta * old[e], ok", "+ old[e], ok", combined(beta=0.5)),
    (COMBINE, "place, scale_8, scales[j]", "place, scale, scales[j]", combined()),
    (COMBINE, "col + 4 * COLUMNS", "col + COLUMNS", combined()),
    (COMBINE, " and not flagged(flags, tile, t % 32)", "", combined(flagged=True, beta=1.0)),
    # what is left
    (GUARD, "if flagged(flags", "if True or flagged(flags", GUARDED),
    (GUARD, "slot(int32(min(row, m - 1))", "slot(int32(0)", GUARDED),
    (GUARD, "SHARES and block < shared", "False and block < shared", SHARED),
    (GUARD, ">= int32(cuda.gridDim.x) - blocks", "> int32(cuda.gridDim.x) - blocks", SHARED),
    # complex numbers
    (SCALES, "* REALS + at % REALS", "* REALS", Z_SCALED),
    (PACK, "part * PART + row", "row", Z_PACKED),
    (PACK, "scale if part != 1 else real(0)", "scale", Z_PACKED),
    (PACK, "-scale if options & CONJUGATE else scale", "scale", Z_PACKED),
    (PACK, "re if re > im else im", "re", Z_PACKED),
    (EPILOGUE, "image % MODULI if PARTS > 1 else image", "image", Z_MULTIPLIED),
    (COMBINE, "of_image(words, 1, e) - real(1)", "of_image(words, 1, e)", Z_EXACT),
    (COMBINE, "alpha * re - alpha_i * im", "alpha * re + alpha_i * im", Z_COMBINED),
    (COMBINE, "beta * old_im + beta_i * old_re", "beta * old_im", Z_COMBINED),
    (GUARD, "if COMPLEX and conj != 0", "if False", Z_GUARDED),
]


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
