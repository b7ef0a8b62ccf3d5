"""Defects planted in the kernels of L D L^H factors, one at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyblasgpu.routines import launch_list
from pyblasgpu.routines.lapack import ldl, sytrs

from . import test_sytrf, test_sytrf_panel
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def panel(kind: str = "whole", test: Callable = test_sytrf_panel.check, **options) -> Check:
    number = test_sytrf_panel.WAYS[kind].kind
    rook = options.pop("rook", False)
    return Check(
        "sytrf_panel", lambda module: test(way=test_sytrf_panel.Way(number, module, rook), **options)
    )


def of_routine(stem: str, check: Callable, **options) -> Check:
    """A check of a routine that has the kernel in the place of its own."""

    def run(module) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sytrs, stem, module)
            patch.setattr(ldl, stem, module, raising=False)
            patch.setattr(launch_list, "cache", {})
            check(**options)

    return Check(stem, run)


@one_each
def solution(stem: str, **options) -> Check:
    return of_routine(stem, test_sytrf.check_solution, **options)


@one_each
def matrices(stem: str, **options) -> Check:
    return of_routine(stem, test_sytrf.check_matrices, **options)


@one_each
def inverse(**options) -> Check:
    return of_routine("ldl_triangle", test_sytrf.check_inverse, **options)


SPREAD = panel("spread", letter="s", n=27, seed=1, order="C")
ROOK = panel("spread", letter="s", n=27, seed=120, rook=True)
SPECIAL = panel(test=test_sytrf_panel.check_special)
MANY = panel(n=9, batch=8)
COMPLEX = panel(letter="z", n=19)
HERMITIAN = panel(letter="z", n=19, hermitian=True)
STEP, SEARCH, PANEL, STEPS = (
    f"factor.ldl.{name}" for name in ("pivot_step", "pivot_search", "sytrf_panel", "rook_step")
)

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers
    (PANEL, "sign, t)\n            meet(counts, flags, blocks, t)\n", "sign, t)\n", panel(n=27)),
    (PANEL, "sign, t)\n            meet(counts, flags, blocks, t)\n", "sign, t)\n            cuda.syncthreads()\n", SPREAD),
    (PANEL, "            leave(flags, blocks, t)", "            pass", SPREAD),
    (PANEL, "        sync_warp()\n", "        pass\n", panel(n=27)),
    (SEARCH, "            meet(n, flags, blocks, t)\n", "            cuda.syncthreads()\n", SPREAD),
    (SEARCH, "        cuda.syncthreads()\n        found", "        found", panel(n=27)),
    (PANEL, "int32(2 * WIDTH + 2 - to)", "to", SPREAD),
    (SEARCH, "int32(n[TURN] & 1)", "int32(0)", SPREAD),
    # pivots
    (PANEL, "not diagonal >= real(ALPHA) * most:", "not diagonal >= real(0.1) * most:", MANY),
    (PANEL, "* divide(most, of_row)", "", MANY),
    (PANEL, ">= real(ALPHA) * of_row", ">= of_row", MANY),
    (PANEL, "(diagonal != diagonal) | ", "", SPECIAL),
    (SEARCH, "(size == most and label < key)):\n                    most, key = size, label", "size == most):\n                    most, key = size, label", panel("panel", test=test_sytrf_panel.check_ties)),
    (SEARCH, "int32(m - 1 - i) if n[BACKWARDS] != 0", "int32(i) if n[BACKWARDS] != 0", panel(test=test_sytrf_panel.check_ties, uplo="U")),
    (SEARCH, "i != col and ", "", MANY),
    # what a step takes along
    (SEARCH, "(source * step + (n[TEMP]", "(col * step + (n[TEMP]", panel(n=13)),
    (STEP, "int32(kk if i == kp else i)", "i", panel(n=13)),
    (STEP, "+ kk - k,", ",", SPREAD),
    (PANEL, "counts[END] = k if is_zero else", "counts[END] =", SPECIAL),
    (PANEL, "if k > cols and low <= cols", "if False and low <= cols", SPREAD),
    (PANEL, "            if n[FIRST] > 0:\n", "            if False:\n", SPREAD),
    (PANEL, "int32(k - cols)", "int32(0)", SPREAD),
    # rook pivots
    (STEPS, "first, low, high, sign, t)\n            meet(n, flags, blocks, t)\n", "first, low, high, sign, t)\n", ROOK),
    (STEPS, "block, t)\n            meet(n, flags, blocks, t)\n", "block, t)\n", ROOK),
    (STEPS, "following == row or ", "", ROOK),
    (STEPS, "of_row <= most", "of_row <= 2 * most", ROOK),
    (STEPS, "column, other = other, column", "pass", ROOK),
    (SEARCH, "n[TEMP] if j == n[DONE] else n[OTHER]", "n[TEMP]", ROOK),
    (SEARCH, "n[BACK] if col == n[KP] else (n[DONE]", "n[KK] if col == n[KP] else (n[DONE]", ROOK),
    (STEP, "(k if i == first else i)", "i", ROOK),
    ("factor.ldl.ldl_triangle", "            rows[one], rows[other] = rows[other], rows[one]\n            is_first = False", "            is_first = False", solution("ldl_triangle", rook=True)),
    # arithmetic
    (SEARCH, "sign * a[at + 1]", "a[at + 1]", HERMITIAN),
    (SEARCH, "w_im = sign * w[q + 1]", "w_im = w[q + 1]", HERMITIAN),
    (STEP, "            p[5] = sign * p[5]\n", "            pass\n", HERMITIAN),
    (STEP, "p[D] * p[A + 1] + p[D + 1] * p[A]", "p[D] * p[A + 1] - p[D + 1] * p[A]", COMPLEX),
    (STEP, "p[factor] * im + p[factor + 1] * re", "p[factor] * im - p[factor + 1] * re", COMPLEX),
    # solutions
    ("factor.ldl.ldl_triangle", "            cuda.syncthreads()\n            j = int32(j - 1)", "            j = int32(j - 1)", solution("ldl_triangle")),
    ("factor.ldl.ldl_triangle", "real(0) if is_coupled else value", "value", solution("ldl_triangle")),
    ("factor.ldl.ldl_triangle", "j + 1 if is_first else j", "j", solution("ldl_triangle")),
    ("factor.ldl.ldl_triangle", "real(1) if i == j and part == 0", "real(1) if i == j", matrices("ldl_triangle", letter="z")),
    ("factor.ldl.ldl_triangle", "piv_step] > 0", "piv_step] > -99", inverse()),
    ("factor.ldl.ldl_triangle", "        if t & (WARP - 1) == 0:\n            lowest", "        if t == 0:\n            lowest", inverse()),
    ("factor.ldl.ldl_rows", "abs(i - j) == 1 and", "i - j == 1 and", matrices("ldl_rows")),
    ("factor.ldl.ldl_rows", "multiply(p, 12, 4)", "multiply(p, 12, 8)", solution("ldl_rows", letter="z", hermitian=True)),
    ("factor.ldl.ldl_rows", "elif kind == FIRST_OF_TWO", "else", solution("ldl_rows")),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
