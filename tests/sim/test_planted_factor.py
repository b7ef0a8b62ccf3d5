"""Defects planted in the leaves of the Cholesky factorisation and of triangles, one at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from . import test_potrf_leaf, test_potrf_panel, test_potrf_small, test_triangle_leaves
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def potrf(letter="d", test: Callable = test_potrf_leaf.check, **options) -> Check:
    """A factor, or one of its tests."""
    return Check("potrf_leaf", lambda module: test(letter=letter, kernels=module, **options))


@one_each
def small(test: Callable = test_potrf_small.check, **options) -> Check:
    return Check("potrf_small", lambda module: test(kernels=module, **options))


@one_each
def trtri(test: Callable = test_triangle_leaves.check_inverse, **options) -> Check:
    return Check("trtri_leaf", lambda module: test(kernels=module, **options))


@one_each
def lauum(**options) -> Check:
    return Check("lauum_leaf", lambda module: test_triangle_leaves.check_product(kernels=module, **options))


@one_each
def zeros(**options) -> Check:
    return Check("zero_diagonal", lambda module: test_triangle_leaves.first_zero(kernels=module, **options))


@one_each
def panel(letter="d", test: Callable = test_potrf_panel.check, **options) -> Check:
    """A factor and the rows below it, in some orders of the blocks."""
    flags = {"letter": letter} if test is test_potrf_panel.check else {}
    return Check("potrf_panel", lambda module: test(kernels=module, **flags, **options))


BAD = potrf(test=test_potrf_leaf.bad_pivot)
SPECIAL = Check("potrf_leaf", lambda module: test_potrf_leaf.special("first", kernels=module))
EARLIER = Check("potrf_leaf", lambda module: test_potrf_leaf.earlier_pivot(module))
SINGULAR = trtri(test_triangle_leaves.singular)
KNOWN = trtri(test_triangle_leaves.singular, writes_info=False)
LARGE = {"n": 21, "threads": 64, "size": 24}

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers
    ("factor.triangles.triangle_copy", "wait()\n        cuda.syncthreads()", "wait()", potrf()),
    ("factor.triangles.triangle_copy", "commit()\n        wait()", "commit()", potrf()),
    ("factor.cholesky.cholesky_panel", "pivots, i, bad, before)\n                cuda.syncthreads()\n                if i >= 0:\n                    update_rest", "pivots, i, bad, before)\n                if i >= 0:\n                    update_rest", potrf(**LARGE)),
    ("factor.cholesky.cholesky_panel", "eliminate(row, tile, other, panel, pivots, i, bad, before)\n                cuda.syncthreads()", "eliminate(row, tile, other, panel, pivots, i, bad, before)", potrf(**LARGE)),
    ("factor.cholesky.potrf_leaf", "rows - first - BLK)\n            cuda.syncthreads()", "rows - first - BLK)", potrf(**LARGE)),
    ("factor.triangles.trtri_leaf", "safe, t)\n        cuda.syncthreads()", "safe, t)", trtri()),
    ("factor.triangles.lauum_leaf", "k * SPAN + lane)\n        cuda.syncthreads()", "k * SPAN + lane)", lauum()),
    ("factor.cholesky.potrf_small", "square_root(pivot)\n            sync_warp()", "square_root(pivot)", small()),
    ("factor.cholesky.potrf_small", "sync_warp()\n            if ok and lane > j:", "if ok and lane > j:", small()),
    ("factor.cholesky.potrf_small", "update(rows, row, j, lane)\n            sync_warp()", "update(rows, row, j, lane)", small()),
    ("factor.cholesky.potrf_small", "bad == 0 and not pivot", "not pivot", small(test_potrf_small.special, place="nan within four")),
    ("factor.cholesky.potrf_small", "int32(j + 1)\n            root", "int32(j)\n            root", small(test_potrf_small.bad_pivots)),
    ("factor.cholesky.potrf_small", "pivot > real(0)", "pivot >= real(0)", small(test_potrf_small.bad_pivots)),
    ("factor.cholesky.potrf_small", "im * other_im", "-im * other_im", small(letter="z")),
    ("factor.cholesky.potrf_small", "im * other - re * other_im", "im * other + re * other_im", small(letter="z")),
    ("factor.cholesky.potrf_small", "while k <= lane:", "while k < lane:", small()),
    ("factor.cholesky.potrf_small", "(j <= i) | (clean != 0)", "j <= i", small(clean=1)),
    ("factor.cholesky.potrf_small", "(j <= i) | (clean != 0)", "True", small()),
    ("factor.cholesky.potrf_small", "(part == 0)", "True", small(letter="z")),
    ("factor.cholesky.potrf_small", "if is_here:", "if True:", small()),
    ("factor.cholesky.potrf_small", "matrix * stride_info", "matrix", small()),
    ("factor.cholesky.potrf_small", "matrix * stride_a", "matrix", small()),
    ("factor.cholesky.potrf_small", "group * lanes * LD", "group * LD", small()),
    # edges
    ("factor.cholesky.potrf_leaf", "if n <= t and t < ORDER:", "if n < t and t < ORDER:", potrf()),
    ("factor.cholesky.potrf_leaf", "clear(l, t)\n            cuda.syncthreads()", "cuda.syncthreads()", potrf(clean=1)),
    ("factor.cholesky.potrf_leaf", "-ORDER if how & CLEAN", "0 if how & CLEAN", potrf(clean=1)),
    ("factor.cholesky.potrf_leaf", "total <= real(LIMIT)", "total <= real(2) * real(LIMIT)", potrf(test=test_potrf_leaf.near_identity)),
    ("factor.cholesky.potrf_leaf", "total += (middle", "total -= (middle", potrf(test=test_potrf_leaf.near_identity)),
    ("factor.cholesky.potrf_leaf", "is_near and t < n", "t < n", potrf(test=test_potrf_leaf.near_identity)),
    ("factor.cholesky.potrf_leaf", "cuda.syncthreads_and(int32(total", "(int32(total", potrf(test=test_potrf_leaf.near_identity)),
    ("factor.cholesky.potrf_leaf", "(n + (BLK - 1)) // BLK * BLK", "n // BLK * BLK", potrf()),
    ("factor.cholesky.potrf_leaf", "t - first if t < rows else -1", "t - first", potrf(n=5)),
    ("factor.cholesky.cholesky_panel", "left > g * GROUP", "left > (g + 1) * GROUP", potrf()),
    ("factor.cholesky.cholesky_panel", "triangle + tiles * TILES_BELOW, THREADS", "triangle - 1, THREADS", potrf("s")),
    ("factor.triangles.triangle_copy", "(i < m) & (j < n) & (i - j >= first)", "(i <= m) & (i - j >= first)", potrf()),
    ("factor.triangles.lauum_leaf", "(n + (TILE - 1)) // TILE", "n // TILE", lauum()),
    ("factor.triangles.zero_diagonal", "range(t, n, THREADS)", "range(t, n - 1, THREADS)", zeros(zeros=(89,))),
    # what must not be read or written
    ("factor.triangles.triangle_copy", "t, n, n, 0, first)", "t, n, n, 0, -99)", lauum()),
    ("factor.triangles.triangle_copy", "& (i - j >= first)", "", potrf()),
    ("factor.triangles.triangle_copy", "select(i == j, real(0), value)", "value", potrf("z")),
    ("factor.triangles.trtri_leaf", "clean != 0 else unit", "clean != 0 else 0", trtri(unit=True)),
    ("factor.triangles.trtri_leaf", "-ORDER if clean != 0", "0 if clean != 0", trtri(test_triangle_leaves.check_apart)),
    ("factor.triangles.trtri_leaf", "tri, source, source_rs, source_cs", "tri, source, a_rs, a_cs", trtri(test_triangle_leaves.check_apart)),
    ("factor.triangles.trtri_leaf", "batch * stride_source + first", "first", trtri(test_triangle_leaves.check_apart)),
    ("factor.triangles.trtri_leaf", "first * (source_rs + source_cs)", "first", trtri(test_triangle_leaves.check_blocks)),
    # info
    ("factor.cholesky.cholesky_panel", "(bad[0] == 0) & (not d > real(0))", "not d > real(0)", BAD),
    ("factor.cholesky.cholesky_panel", "(not d > real(0))", "(d <= real(0))", potrf(test=test_potrf_leaf.bad_pivot, value=float("nan"))),
    ("factor.cholesky.cholesky_panel", "before + (c + 1)", "before + c", BAD),
    ("factor.cholesky.cholesky_panel", "before + FIRST)", "before)", BAD),
    ("factor.cholesky.potrf_leaf", "before + first, n", "before, n", potrf(test=test_potrf_leaf.bad_pivot, at=9)),
    ("factor.cholesky.potrf_leaf", "before > 0 and load_acquire(info, 0) != 0", "before > 99", EARLIER),
    ("factor.cholesky.potrf_leaf", "t == rows - 1", "t == 0", potrf(test=test_potrf_leaf.bad_pivot, at=9)),
    ("factor.triangles.trtri_leaf", "mine & (not is_zero(shared, earlier))", "mine", SINGULAR),
    ("factor.triangles.trtri_leaf", "            if is_singular:\n                return", "", SINGULAR),
    ("factor.triangles.trtri_leaf", "writes_info == 0 and load_acquire(info, 0) != 0", "writes_info > 9", KNOWN),
    ("factor.triangles.trtri_leaf", "first * (a_rs + a_cs)", "first", trtri(test_triangle_leaves.check_blocks)),
    ("factor.triangles.trtri_leaf", "min(n - first, ORDER)", "min(n, ORDER)", trtri(test_triangle_leaves.check_blocks)),
    ("factor.triangles.trtri_leaf", "int32(t + 1) if", "int32(t) if", SINGULAR),
    ("factor.triangles.zero_diagonal", " and i < first", "", zeros(zeros=(1, 33, 40))),
    ("factor.triangles.zero_diagonal", "min(first, firsts[other])", "first", zeros()),
    ("factor.triangles.zero_diagonal", "first + 1", "first", zeros()),
    ("factor.triangles.zero_diagonal", " and value[1] == real(0)", "", zeros(letter="z")),
    # rows below, and who waits for whom
    ("factor.cholesky.potrf_panel", "if not is_last:\n            set_flag(flags, t)", "if not is_last and t > 99:\n            set_flag(flags, t)", panel()),
    ("factor.cholesky.potrf_panel", "            wait(flags, t)\n", "", panel()),
    ("factor.cholesky.potrf_panel", "batch * stride_info)", "0)", panel(test=test_potrf_panel.stack)),
    ("factor.cholesky.potrf_panel", "batch * cuda.gridDim.x)", "0)", panel(test=test_potrf_panel.stack)),
    ("factor.cholesky.potrf_panel", "store_relaxed(flags, other, int32(0))", "pass", panel()),
    ("factor.cholesky.potrf_panel", "cuda.gridDim.x - 1, THREADS", "cuda.gridDim.x - 2, THREADS", panel()),
    ("factor.cholesky.potrf_panel", "(n + first_row) * a_rs", "first_row * a_rs", panel()),
    ("factor.cholesky.potrf_panel", "before + first, n", "before, n", panel(test=test_potrf_panel.bad_pivot)),
    ("factor.cholesky.potrf_panel", "t < rows or is_below", "t < rows", panel()),
    ("factor.cholesky.potrf_panel", "before > 0 and load_acquire(info, 0) != 0", "before > 99", panel(test=test_potrf_panel.earlier_pivot)),
    ("factor.cholesky.cholesky_panel", "ORDER + number % TILES_BELOW * GROUP", "number % TILES_BELOW * GROUP", panel("s")),
    ("factor.cholesky.cholesky_update_mma", "ORDER + number % TILES_BELOW * EDGE", "number % TILES_BELOW * EDGE", panel()),
    ("factor.cholesky.cholesky_update_mma", "(first - BLK + quarter) * LD + g", "(first - BLK) * LD + g", panel()),
    ("factor.cholesky.cholesky_update_mma", "(k + 4 * step) * LD", "k * LD", panel()),
    ("factor.cholesky.cholesky_update_mma", "column // 2 * 8 + column % 2", "column", potrf(test=test_potrf_leaf.wide_tiles)),
    ("factor.cholesky.cholesky_update_mma", "col + 2 * quarter", "col + quarter", panel()),
    ("factor.cholesky.cholesky_update_mma", "reals, False, True, DEPTH", "reals, False, False, DEPTH", panel("z")),
    # arithmetic
    ("factor.cholesky.inverse_root", "fma(-(d * r), r, real(1))", "real(0)", potrf()),
    ("factor.cholesky.cholesky_panel", "            bad[0] = earlier\n", "", potrf(test=test_potrf_leaf.extreme)),
    ("factor.cholesky.cholesky_panel", "            load_pivot_row(row, tile, pivots)\n            factor_carefully", "            factor_carefully", potrf(test=test_potrf_leaf.extreme)),
    ("factor.cholesky.inverse_root", "real(0.375)", "real(0.5)", potrf(test=test_potrf_leaf.accurate)),
    ("factor.cholesky.inverse_root", "return not r <= real(LARGEST_ROOT)", "return r < real(0)", potrf(test=test_potrf_leaf.extreme)),
    ("factor.cholesky.inverse_root", "if d == real(INFINITY)", "if d < real(0)", SPECIAL),
    ("factor.cholesky.cholesky_panel", "            keep_infinities(0, tile, i)\n", "", SPECIAL),
    ("factor.cholesky.cholesky_panel", "-tile[OWN + c * REALS + 1]", "tile[OWN + c * REALS + 1]", potrf("z")),
    ("factor.cholesky.cholesky_panel", "- tile[X + 1] * tile[Z + 1]", "+ tile[X + 1] * tile[Z + 1]", potrf("z")),
    ("factor.cholesky.cholesky_panel", "+ tile[X] * tile[Z + 1]", "- tile[X] * tile[Z + 1]", potrf("z")),
    ("factor.cholesky.cholesky_panel", "row[2 * k + 1] = -row[2 * k + 1]", "pass", potrf("z")),
    ("factor.cholesky.cholesky_panel", "GROUP, GROUP, REALS, False, True)", "GROUP, GROUP, REALS, False, False)", potrf("c")),
    ("factor.triangles.lauum_leaf", "TILE, TILE, REALS, True, False)", "TILE, TILE, REALS, False, False)", lauum(letter="z")),
    ("factor.triangles.trtri_leaf", "(i == t) & (part == 0)", "i == t", trtri(letter="z")),
    ("factor.triangles.trtri_leaf", "        if safe:", "        if True:", trtri(test_triangle_leaves.unsafe_diagonal)),
    # indices
    ("factor.cholesky.cholesky_panel", "(i - FIRST) * SPAN + x]", "x]", potrf()),
    ("factor.cholesky.cholesky_panel", "(k + FIRST * LD) * REALS)", "(FIRST * LD) * REALS)", potrf()),
    ("factor.cholesky.cholesky_panel", "(first - BLK) * LD", "first * LD", potrf("s")),
    ("factor.cholesky.potrf_leaf", "batch * stride_a * REALS", "0", potrf(batch=2)),
    ("factor.cholesky.potrf_leaf", "batch * stride_source", "batch * stride_info", potrf(batch=2)),
    ("factor.cholesky.potrf_leaf", "l, source, source_rs, source_cs", "l, source, a_rs, a_cs", potrf(batch=2, clean=1)),
    ("factor.cholesky.potrf_leaf", "batch * stride_info", "0", potrf(batch=2)),
    ("factor.triangles.lauum_leaf", "row * (LD + 1) * REALS)", "row * LD * REALS)", lauum()),
    ("factor.triangles.lauum_leaf", "* stride_a * REALS", "* 0", lauum(batch=2)),
    ("factor.triangles.trtri_leaf", "batch * stride_a + first", "first", trtri(batch=2)),
    ("factor.triangles.zero_diagonal", "int64(i) * step * reals", "int64(i) * step", zeros(letter="z")),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
