"""Defects planted in the leaves of the Cholesky factorisation and of triangles, one at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from . import test_potrf_leaf, test_triangle_leaves
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def potrf(letter="d", test: Callable = test_potrf_leaf.check, **options) -> Check:
    """A factor, or one of its tests."""
    return Check("potrf_leaf", lambda module: test(letter=letter, kernels=module, **options))


@one_each
def trtri(test: Callable = test_triangle_leaves.check_inverse, **options) -> Check:
    return Check("trtri_leaf", lambda module: test(kernels=module, **options))


@one_each
def lauum(**options) -> Check:
    return Check("lauum_leaf", lambda module: test_triangle_leaves.check_product(kernels=module, **options))


@one_each
def zeros(**options) -> Check:
    return Check("zero_diagonal", lambda module: test_triangle_leaves.first_zero(kernels=module, **options))


BAD = potrf(test=test_potrf_leaf.bad_pivot)
EARLIER = Check("potrf_leaf", lambda module: test_potrf_leaf.earlier_pivot(module))
SINGULAR = trtri(test_triangle_leaves.singular)
KNOWN = trtri(test_triangle_leaves.singular, tells=False)
LARGE = {"n": 21, "threads": 64, "size": 24}

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers
    ("factor.triangle_copy", "wait()\n        cuda.syncthreads()", "wait()", potrf()),
    ("factor.triangle_copy", "commit()\n        wait()", "commit()", potrf()),
    ("factor.potrf_leaf", "pivots, i, bad, before)\n            cuda.syncthreads()\n            if i >= 0:\n                eliminate", "pivots, i, bad, before)\n            if i >= 0:\n                eliminate", potrf(**LARGE)),
    ("factor.potrf_leaf", "eliminate(row, tile, other, panel, pivots, i, bad, before)\n            cuda.syncthreads()", "eliminate(row, tile, other, panel, pivots, i, bad, before)", potrf(**LARGE)),
    ("factor.potrf_leaf", "rows - first - BLK)\n            cuda.syncthreads()", "rows - first - BLK)", potrf(**LARGE)),
    ("factor.trtri_leaf", "safe, t)\n        cuda.syncthreads()", "safe, t)", trtri()),
    ("factor.lauum_leaf", "k * SPAN + lane)\n        cuda.syncthreads()", "k * SPAN + lane)", lauum()),
    # edges
    ("factor.potrf_leaf", "if n <= t and t < ORDER:", "if n < t and t < ORDER:", potrf()),
    ("factor.potrf_leaf", "(n + (BLK - 1)) // BLK * BLK", "n // BLK * BLK", potrf()),
    ("factor.potrf_leaf", "t - first if t < rows else -1", "t - first", potrf(n=5)),
    ("factor.potrf_leaf", "tiles * (tiles + 1) // 2, THREADS", "tiles, THREADS", potrf()),
    ("factor.triangle_copy", "(i < n) & (i - j >= first)", "(i <= n) & (i - j >= first)", potrf()),
    ("factor.lauum_leaf", "(n + (TILE - 1)) // TILE", "n // TILE", lauum()),
    ("factor.zero_diagonal", "range(t, n, THREADS)", "range(t, n - 1, THREADS)", zeros(zeros=(89,))),
    # what must not be read or written
    ("factor.triangle_copy", "t, n, n, 0, first)", "t, n, n, 0, -99)", lauum()),
    ("factor.triangle_copy", "& (i - j >= first)", "", potrf()),
    ("factor.triangle_copy", "select(i == j, real(0), value)", "value", potrf("z")),
    ("factor.trtri_leaf", "a_rs, a_cs, t, n, unit)\n\n    return", "a_rs, a_cs, t, n, 0)\n\n    return", trtri(unit=True)),
    # info
    ("factor.potrf_leaf", "(bad[0] == 0) & (not d > real(0))", "not d > real(0)", BAD),
    ("factor.potrf_leaf", "(not d > real(0))", "(d <= real(0))", potrf(test=test_potrf_leaf.bad_pivot, value=float("nan"))),
    ("factor.potrf_leaf", "before + (c + 1)", "before + c", BAD),
    ("factor.potrf_leaf", "before + FIRST)", "before)", BAD),
    ("factor.potrf_leaf", "bad, before + first)", "bad, before)", potrf(test=test_potrf_leaf.bad_pivot, at=9)),
    ("factor.potrf_leaf", "before > 0 and load_acquire(info, 0) != 0", "before > 99", EARLIER),
    ("factor.potrf_leaf", "t == rows - 1", "t == 0", potrf(test=test_potrf_leaf.bad_pivot, at=9)),
    ("factor.trtri_leaf", "mine & (not is_zero(shared, earlier))", "mine", SINGULAR),
    ("factor.trtri_leaf", "            if is_singular:\n                return", "", SINGULAR),
    ("factor.trtri_leaf", "tells == 0 and load_acquire(info, 0) != 0", "tells > 9", KNOWN),
    ("factor.trtri_leaf", "int32(t + 1) if", "int32(t) if", SINGULAR),
    ("factor.zero_diagonal", "zero and i < first", "zero", zeros(zeros=(1, 33, 40))),
    ("factor.zero_diagonal", "min(first, found[other])", "first", zeros()),
    ("factor.zero_diagonal", "first + 1", "first", zeros()),
    ("factor.zero_diagonal", "zero & (value[PARTS - 1] == real(0))", "zero", zeros(letter="z")),
    # arithmetic
    ("factor.inverse_root", "fma(-(d * r), r, real(1))", "real(0)", potrf()),
    ("factor.inverse_root", "real(0.375)", "real(0.5)", potrf(test=test_potrf_leaf.accurate)),
    ("factor.inverse_root", "if d < real(LEAST):", "if d < real(0):", potrf(test=test_potrf_leaf.extreme)),
    ("factor.potrf_leaf", "-tile[OWN + c * PARTS + 1]", "tile[OWN + c * PARTS + 1]", potrf("z")),
    ("factor.potrf_leaf", "- tile[X + 1] * tile[Z + 1]", "+ tile[X + 1] * tile[Z + 1]", potrf("z")),
    ("factor.potrf_leaf", "+ tile[X] * tile[Z + 1]", "- tile[X] * tile[Z + 1]", potrf("z")),
    ("factor.potrf_leaf", "row[2 * k + 1] = -row[2 * k + 1]", "pass", potrf("z")),
    ("factor.potrf_leaf", "GROUP, GROUP, PARTS, False, True)", "GROUP, GROUP, PARTS, False, False)", potrf("z")),
    ("factor.lauum_leaf", "TILE, TILE, PARTS, True, False)", "TILE, TILE, PARTS, False, False)", lauum(letter="z")),
    ("factor.trtri_leaf", "(i == t) & (part == 0)", "i == t", trtri(letter="z")),
    ("factor.trtri_leaf", "        if safe:", "        if True:", trtri(test_triangle_leaves.unsafe_diagonal)),
    # indices
    ("factor.potrf_leaf", "(i - FIRST) * SPAN + x]", "x]", potrf()),
    ("factor.potrf_leaf", "(k + FIRST * LEAD) * PARTS)", "(FIRST * LEAD) * PARTS)", potrf()),
    ("factor.potrf_leaf", "(first - BLK) * LEAD", "first * LEAD", potrf()),
    ("factor.potrf_leaf", "batch * stride_a * PARTS", "0", potrf(batch=2)),
    ("factor.potrf_leaf", "batch * stride_info * PARTS", "0", potrf(batch=2)),
    ("factor.lauum_leaf", "row * (LEAD + 1) * PARTS)", "row * LEAD * PARTS)", lauum()),
    ("factor.lauum_leaf", "* stride_a * PARTS", "* 0", lauum(batch=2)),
    ("factor.trtri_leaf", "batch * stride_a * PARTS", "0", trtri(batch=2)),
    ("factor.zero_diagonal", "int64(i) * step * PARTS", "int64(i) * step", zeros(letter="z")),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
