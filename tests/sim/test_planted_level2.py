"""Defects planted in the kernels of level 2, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import pytest

from pyblasgpu.kernels.common import options
from pyblasgpu.kernels.level2 import gemv as plain_gemv

from . import test_gemv, test_ger, test_symv
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def gemv(form="n", letter="d", outputs=36, terms=20, **options) -> Check:
    """A product by `gemv`."""

    def run(module):
        test_gemv.check(letter, form, outputs, terms, kernels=module, **options)

    return Check("gemv", run)


@one_each
def symv(letter="d", n=66, bits=0, **options) -> Check:
    """A product by `symv`."""

    def run(module):
        test_symv.check(letter, n, bits, kernels=module, **options)

    return Check("symv", run)


@one_each
def small(letter="d", n=68, bits=0, **options) -> Check:
    """A product by `symv_small`."""

    def run(module):
        test_symv.check_small(letter, n, bits, kernels=module, **options)

    return Check("symv_small", run)


@one_each
def symv_sum(**options) -> Check:
    """The sums of `symv`."""

    def run(module):
        test_symv.check(sums=module, **options)

    return Check("symv_sum", run)


@one_each
def ger(letter="d", m=20, n=9, bits=0, **options) -> Check:
    """An update by `ger`."""

    def run(module):
        test_ger.check(letter, m, n, bits, kernels=module, **options)

    return Check("ger", run)


SLICED, BEFORE = gemv(slices=2, terms=40), gemv(outputs=36, terms=36, which=plain_gemv.BEFORE)
AFTER, TRANSPOSED = gemv(outputs=36, terms=36, which=plain_gemv.AFTER), gemv("t")
UNIT = gemv(outputs=36, terms=36, which=plain_gemv.BEFORE, bits=options.UNIT)
COMPLEX_UNIT = gemv(letter="z", outputs=36, terms=36, which=plain_gemv.BEFORE, bits=options.UNIT)
MANY = gemv(terms=200, slices=20, DIM_R=16, THR_R=1)
VECTORS = gemv("t", "s", 4, 24, x_vectors=True, THR_R=2)
CONJ = gemv(letter="z", bits=options.CONJUGATE)
UPPER, HERMITIAN = symv(bits=options.UPPER), symv("z", bits=options.HERMITIAN)
LOWER, REAL = (
    ger(m=20, n=20, bits=options.TRIANGLE),
    ger("z", 20, 20, options.HERMITIAN | options.TRIANGLE | options.UPPER | options.CONJUGATE_SECOND),
)
#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    ("level2.sums", "def add(sums, t):\n        cuda.syncthreads()", "def add(sums, t):", symv()),
    ("level2.sums", "sums[at + half * LD]\n            cuda.syncthreads()", "sums[at + half * LD]", symv(WARPS=4)),
    ("level2.sums", "u < left)", "True)", SLICED),
    ("level2.sums", "left - UNROLL", "left - 1", SLICED),
    ("level2.sums", "part, reads)", "part, True)", gemv(beta=0)),
    ("level2.sums", "alpha * re - alpha_i * im +", "alpha * re + alpha_i * im +", gemv(letter="z")),
    ("level2.gemv_terms", "(o + g * next_o < outputs) & (k + u * next_r < end)",
     "(k + u * next_r < end)", gemv()),
    ("level2.gemv_terms", "(o + g * next_o < outputs) & (k + u * next_r < end)",
     "(o + g * next_o < outputs)", gemv(terms=21)),
    ("level2.gemv_terms", "ok & (inside >= first)", "ok", BEFORE),
    ("level2.gemv_terms", "ok & (inside >= first)", "ok & (inside >= 0)", COMPLEX_UNIT),
    ("level2.gemv_terms", "(first == 1), real(1)", "(first == 1), real(0)", UNIT),
    ("level2.gemv_terms", "k + more < end)", "True)", gemv(terms=21)),
    ("level2.gemv_terms", "sign_a * a[", "a[", CONJ),
    ("level2.gemv_terms", "sign_x * x[", "x[", gemv(letter="z", bits=options.CONJUGATE_SECOND)),
    ("level2.gemv_terms", "return k - o if which == AFTER_ else o - k", "return o - k", AFTER),
    ("level2.gemv_terms", "begin = stop", "begin = border", AFTER),
    ("level2.gemv_terms", "end = border", "end = stop", BEFORE),
    ("level2.gemv_terms", "left - step)", "left - step - 1)", gemv()),
    ("level2.gemv_terms", "border = stop", "pass", gemv(outputs=36, terms=36, which=plain_gemv.BEFORE, slices=2)),
    ("level2.gemv_terms", "x_here, u * next_r * REALS + part, k + u * next_r < end", "x_here, u * next_r * REALS + part, True", VECTORS),
    ("level2.gemv_terms", "o0 // VEC_R * VEC_R", "o0", gemv("t", "s", 36, 36, which=plain_gemv.BEFORE, DIM_R=32, THR_O=1)),
    ("level2.gemv_sums", "take_ticket(flags, ticket) == slices - 1", "take_ticket(flags, ticket) == 0", SLICED),
    ("level2.gemv_sums", "store_relaxed(flags, ticket, int32(0))", "pass", SLICED),
    ("level2.gemv_sums", "True)\n            cuda.syncthreads()", "True)", SLICED),
    ("level2.gemv_sums", "else 0)\n            cuda.syncthreads()", "else 0)", SLICED),
    ("level2.gemv_sums", "total[part]\n        cuda.syncthreads()", "total[part]", MANY),
    ("level2.gemv_sums", "min(int32(begin + share), slices)", "int32(begin + share)", MANY),
    ("level2.gemv_sums", "int32(line * share)", "int32(0)", MANY),
    ("level2.gemv_sums", "first + LINES)", "first + LINES + 1)", MANY),
    ("level2.gemv_sums", "select(line < lines, ", "select(True, ", gemv(WARPS=2, DIM_R=1)),
    ("level2.gemv_sums", "(dim_o * VEC_O))\n        cuda.syncthreads()", "(dim_o * VEC_O))", gemv(WARPS=2, DIM_R=64, THR_R=1)),
    ("level2.gemv_sums", "mask * 2)", "mask * 4)", TRANSPOSED),
    ("level2.gemv_sums", "LOG_WARP - log_o", "LOG_WARP - log_o - 1", gemv()),
    ("level2.gemv_sums", "o * incy * REALS", "o * REALS", gemv(inc=(1, 2))),
    ("level2.gemv", "batch * tiles + tile", "tile", gemv(slices=2, terms=40, batch=2)),
    ("level2.gemv", "batch * slices * ldw", "batch * ldw", gemv(slices=2, terms=40, batch=2)),
    ("level2.gemv", "r * int64(incx)", "r", gemv(inc=(2, 1))),
    ("level2.gemv", "(t >> log_r, t & (dim_r - 1)) if TRANSPOSED", "(t >> log_r, t >> log_r) if TRANSPOSED", TRANSPOSED),
    ("level2.symv", "sync_warp()\n        u, line", "u, line", symv()),
    ("level2.symv", "= total\n        sync_warp()", "= total", symv()),
    ("level2.symv", "(line == 0) & (u < cols))\n        sync_warp()", "(line == 0) & (u < cols))", symv()),
    ("level2.symv", "(line == 0) & (u < cols)", "line == 0", symv(vectors=False, n=65)),
    ("level2.symv", "ok = (row < rows) & (u < cols) & (", "ok = (row < rows) & (", symv(vectors=False, n=65, bits=options.UPPER)),
    ("level2.symv", "(lane * VEC + g * STEP < rows) & (u < cols)", "u < cols", symv()),
    ("level2.symv", "distance <= 0 if upper else distance >= 0)\n        for", "True)\n        for", symv()),
    ("level2.symv", "(distance < 0 if upper else distance > 0)", "(distance <= 0 if upper else distance >= 0)", symv()),
    ("level2.symv", "(distance == 0) & hermitian", "False", HERMITIAN),
    ("level2.symv", "mirror = -sign if hermitian else sign", "mirror = sign", HERMITIAN),
    ("level2.symv", "(strips - 1 - p) * BLK", "p * BLK", UPPER),
    ("level2.symv", "begin <= p and p < begin + tiles", "True", symv(n=130)),
    ("level2.symv", "cuda.syncthreads()\n        keep(0", "keep(0", symv()),
    ("level2.symv", "int64(p + 1) * ldw", "int64(p) * ldw", symv()),
    ("level2.symv_small", "k + u * DIM_R < end\n", "True\n", small(bits=options.UPPER)),
    ("level2.symv_small", "u * DIM_R * inc * REALS + part, k + u * DIM_R < end", "u * DIM_R * inc * REALS + part, True", small(bits=options.UPPER)),
    ("level2.symv_small", "(o < left) & (k + u * STEP + e // REALS < end)", "k + u * STEP < end", small("s", 36, options.UPPER)),
    ("level2.symv_small", "(o < left) & (k + u * STEP + e // REALS < end)", "o < left", small()),
    ("level2.symv_small", "STEP + e // REALS < end", "STEP < end", small("s", 69, vectors=False)),
    ("level2.symv_small", "e // REALS * rs + u * DIM_R", "e // REALS + u * DIM_R", small("s", 36, vectors=False, spread=2)),
    ("level2.symv_small", "bits & VECTORS_ != 0", "True", small("s", 37, vectors=False, spread=2)),
    ("level2.symv_small", "part, k + more < end)", "part, True)", small()),
    ("level2.symv_small", "u // BLK * VEC + v", "v", small("d", 200, LOADS=8)),
    ("level2.symv_small", "sign * a[", "a[", small("z", 20, options.HERMITIAN)),
    ("level2.symv_small", "(o < left) & (k < left)\n", "True\n", small("s", 36)),
    ("level2.symv_small", "(min(o, k), max(o, k)) if upper else", "", small(bits=options.UPPER)),
    ("level2.symv_small", "o <= k if upper else o >= k", "o >= k", small("c", 20, options.HERMITIAN | options.UPPER)),
    ("level2.symv_small", "(o == k) & hermitian", "False", small("z", 20, options.HERMITIAN)),
    ("level2.symv_small", "select(to == o // VEC, ", "select(to >= 0, ", small()),
    ("level2.symv_small", "mask // 2", "mask // 4", small()),
    ("level2.symv_small", "-sign if hermitian else sign", "sign", small("z", 20, options.HERMITIAN)),
    ("level2.symv_small", "(behind, n) if upper else (int32(0), o0)", "(int32(0), o0)", small(bits=options.UPPER)),
    ("level2.symv_small", "batch * stride_x * REALS", "0", small(batch=2)),
    ("level2.symv_small", "(o0 + t) * int64(incy)", "o0 + t", small(inc=(1, 2))),
    ("level2.symv_small", "t % 32, t // 32)\n        cuda.syncthreads()", "t % 32, t // 32)", small()),
    ("level2.symv_small", "row_k + ROW_STEP", "row_k", small("d", 150)),
    ("level2.symv_small", "COL_STEP * rs * REALS", "COL_STEP // 2 * rs * REALS", small("d", 200)),
    ("level2.symv_sum", "slots - 2 - tile", "tile", symv_sum(bits=options.UPPER, n=130, tiles=2)),
    ("level2.symv_sum", "q + 1 - of_rows", "q - of_rows", symv_sum()),
    ("level2.symv_sum", "min(end, of_rows)", "end", symv_sum()),
    ("level2.ger", "& reads\n        for", "\n        for", ger(m=20, n=20, bits=options.TRIANGLE | options.OVERWRITE)),
    ("level2.ger", "(col < cols) & reads)", "(col < cols))", ger(bits=options.OVERWRITE)),
    ("level2.ger", "v * VEC * REALS + part, (row < rows) & (col < cols))", "v * VEC * REALS + part, col < cols)", ger()),
    ("level2.ger", "(distance <= 0 if upper else distance >= 0)", "True", LOWER),
    ("level2.ger", "hermitian & (row + shift == col)", "False", REAL),
    ("level2.ger", "row0 + BLK_M > col0 if upper else row0 < col0 + BLK_N", "False", LOWER),
    ("level2.ger", "y_rows, x_cols, incy, incx", "x_rows, y_cols, incx, incy", ger(bits=options.RANK_2)),
    ("level2.ger", "sign * right[", "right[", REAL),
    ("level2.ger", "left[i * REALS + 1] *= sign", "pass", ger("z", bits=options.CONJUGATE)),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
