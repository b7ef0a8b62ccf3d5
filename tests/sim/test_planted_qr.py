"""Defects planted in the kernels of QR, one at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from . import test_geqrf_panel, test_reflectors
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def panel(kind: str = "whole", test: Callable = test_geqrf_panel.check, **options) -> Check:
    number = test_geqrf_panel.KINDS[kind].kind
    return Check("geqrf_panel", lambda module: test(way=test_geqrf_panel.Panel(number, module), **options))


@one_each
def tall(test: Callable = test_geqrf_panel.check, m=70, **options) -> Check:
    sizes = {"m": m} if test is test_geqrf_panel.check else {}
    return Check("geqrf_tall", lambda module: test(way=test_geqrf_panel.Tall(module), **sizes, **options))


@one_each
def copy(**options) -> Check:
    return Check("reflector_copy", lambda module: test_reflectors.check_copy(kernels=module, **options))


@one_each
def triangle(**options) -> Check:
    return Check("larft_leaf", lambda module: test_reflectors.check_triangle(kernels=module, **options))


SPECIAL, TALL_SPECIAL = panel(test=test_geqrf_panel.special), tall(test_geqrf_panel.special)
LARGE, SMALL = panel(scale=1e307), panel(scale=1e-307)

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers
    ("factor.qr.geqrf_tall", "t & 31))\n            cuda.syncthreads()", "t & 31))", tall()),
    ("factor.qr.geqrf_tall", "            cuda.syncthreads()\n\n            # (4)", "            # (4)", tall()),
    ("factor.qr.geqrf_tall", "t >> 5, t & 31)\n        cuda.syncthreads()", "t >> 5, t & 31)", tall()),
    ("factor.qr.meeting", "                pass\n        cuda.syncthreads()", "                pass", tall()),
    ("factor.qr.geqrf_tall", "                meet(flags, int32(j - FIRST + 1), blocks, t)\n", "                pass\n", tall()),
    ("factor.qr.meeting", "store_relaxed(flags, ARRIVED, int32(0))", "pass", tall()),
    ("factor.qr.meeting", "store_relaxed(flags, LEFT, int32(0))", "pass", tall()),
    ("factor.qr.geqrf_tall", "(1 - (j & 1)) * half", "(j & 1) * half", tall()),
    ("factor.qr.larft_leaf", "        cuda.syncthreads()\n", "", triangle()),
    ("factor.qr.geqrf_panel", "            cuda.syncthreads()\n            reads", "            reads", panel()),
    ("factor.qr.geqrf_panel", "        cuda.syncthreads()\n        for k in range(5)", "        for k in range(5)", panel()),
    ("factor.qr.geqrf_panel", "            cuda.syncthreads()\n            v", "            v", panel("panel")),
    ("factor.qr.geqrf_panel", "meet(flags, int32(j + 2), blocks, t)", "pass", panel("spread", m=70)),
    ("factor.qr.geqrf_panel", "meet(flags, int32(1), blocks, thread)", "pass", panel("spread", m=70)),
    ("factor.qr.geqrf_panel", "            part(flags, blocks, thread)", "            pass", panel("spread", m=70)),
    # edges
    ("factor.qr.geqrf_panel", "if col == j + 1:", "if col == j + 2:", panel()),
    ("factor.qr.geqrf_panel", "top + lane > j - FIRST)\n            add", "True)\n            add", panel(test=test_geqrf_panel.infinite)),
    ("factor.qr.geqrf_panel", "w, c, top + lane > j - FIRST", "w, c, True", panel(test=test_geqrf_panel.infinite)),
    ("factor.qr.geqrf_panel", "    FINISHED = 0 if IS_PANEL else FIRST // WARPS", "    FINISHED = FIRST // WARPS + 1", panel(m=40, n=35)),
    ("factor.qr.geqrf_panel", "block == 0 and thread < n", "block == 0 and thread < n - 1", panel()),
    ("factor.qr.geqrf_panel", "i < above * n", "i < above", panel("panel")),
    ("factor.qr.register_columns", "k * WARP < left)", "k * WARP <= left)", panel()),
    ("factor.qr.register_columns", "rows - lane if col < n else 0)", "rows - lane)", panel()),
    ("factor.qr.register_columns", "rows - lane if col < n else 0\n", "rows - lane\n", panel()),
    ("factor.qr.register_columns", "select(i + k * WARP == col, real(1), real(0))", "real(0)", panel("panel")),
    ("factor.qr.larft_leaf", "select(r <= c, s[", "select(r < c, s[", triangle()),
    ("factor.qr.larft_leaf", "if i < n:", "if i < n - 1:", triangle()),
    ("factor.qr.geqrf_tall", "elif i > j:", "elif i >= j:", tall()),
    ("factor.qr.geqrf_tall", "i == first)", "i == j)", tall()),
    ("factor.qr.geqrf_tall", "elif j < k < n:", "elif j < k < n - 1:", tall()),
    ("factor.qr.geqrf_tall", "if first < n:\n                leave", "if first < n - 1:\n                leave", tall()),
    ("factor.qr.geqrf_tall", "i + blocks * DIM", "m", tall(m=130)),
    ("factor.qr.reflector_copy", "i > first + j", "i >= first + j", copy()),
    ("factor.qr.reflector_copy", "m + (DIM - 1)", "m", copy()),
    ("factor.qr.reflector_copy", "and part == 0", "", copy(letter="z")),
    ("factor.qr.larft_leaf", "if r <= c else real(0)", "", triangle()),
    # range
    ("factor.qr.reflector", "max(-exponent(size), -MOST_OF)", "0", LARGE),
    ("factor.qr.reflector", "max(-exponent(size), -MOST_OF)", "0", SMALL),
    ("factor.qr.reflector", "max(-exponent(size), -MOST_OF)", "0", tall(scale=1e307)),
    ("factor.qr.reflector", "not square <= real(TINY)", "square > real(TINY)", SPECIAL),
    ("factor.qr.reflector", "rest != real(0) and ", "", SPECIAL),
    ("factor.qr.reflector", "rest != real(0) and ", "", TALL_SPECIAL),
    ("factor.qr.reflector", " and not square <= real(TINY)", "", panel(test=test_geqrf_panel.negligible)),
    ("factor.qr.reflector", "(h[TAU] == real(0)) &", "(h[TAU] > real(9)) &", TALL_SPECIAL),
    # arithmetic
    ("factor.qr.reflector", "norm if re < real(0) else -norm", "-norm", panel()),
    ("factor.qr.reflector", "            rest += im * im\n", "            pass\n", panel(test=test_geqrf_panel.imaginary)),
    ("factor.qr.reflector", "divide(-im, beta)", "divide(im, beta)", panel(letter="z")),
    ("factor.qr.reflector", "h[FACTOR + 1] * sums[k]\n", "h[FACTOR] * sums[k]\n", tall(letter="z")),
    ("factor.qr.reflector", "h[TAU] * y[0] + h[TAU + 1] * y[1]", "h[TAU] * y[0] - h[TAU + 1] * y[1]", tall(letter="z")),
    ("factor.qr.geqrf_tall", "f * im - f_im * re", "f * im + f_im * re", tall(letter="z")),
    ("factor.qr.geqrf_tall", "(head[at] - w[at]) * back[k]", "(head[at] - w[at])", tall(scale=1e307)),
    ("factor.qr.larft_leaf", "acc[q * 2 + 1] += t[1] * re - t[0] * im", "acc[q * 2 + 1] += t[1] * re + t[0] * im", triangle(letter="z")),
    ("factor.qr.larft_leaf", "re - f_im * acc[q * 2 + 1]", "re + f_im * acc[q * 2 + 1]", triangle(letter="z")),
    ("factor.qr.larft_leaf", "select(r < i, -re,", "select(r < i, re,", triangle()),
    ("factor.qr.register_columns", "v[k * 2] * im - v[k * 2 + 1] * re", "v[k * 2] * im + v[k * 2 + 1] * re", panel(letter="z")),
    ("factor.qr.register_columns", "upper, upper_im = x[of] * scale,", "upper, upper_im = x[of],", LARGE),
    ("factor.qr.geqrf_panel", "h[BETA] if part == 0 else real(0)", "h[BETA]", panel(letter="z")),
    ("factor.qr.geqrf_panel", "h[FACTOR] * w[3] + h[FACTOR + 1] * w[2]", "h[FACTOR] * w[3] - h[FACTOR + 1] * w[2]", panel(letter="z")),
    ("factor.qr.geqrf_panel", "= f * y[1] + f_im * y[0]", "= f * y[1] - f_im * y[0]", panel("panel", letter="z")),
    ("factor.qr.geqrf_panel", "s[TRIANGLE + at] = s[FACTORS + col] * y[0]", "s[TRIANGLE + at] = y[0]", panel("panel")),
    # indices
    ("factor.qr.geqrf_panel", "batch * stride_a + int64", "int64", panel(batch=2)),
    ("factor.qr.geqrf_panel", "batch * stride_tau + int64", "int64", panel(batch=2)),
    ("factor.qr.geqrf_panel", "batch * stride_v * REALS", "0", panel("panel", batch=2)),
    ("factor.qr.geqrf_panel", "batch * stride_t * REALS", "0", panel("panel", batch=2)),
    ("factor.qr.geqrf_panel", "batch * stride_state * REALS", "0", panel("spread", m=70, batch=2)),
    ("factor.qr.geqrf_panel", "batch * WORDS", "0", panel("spread", m=70, batch=2)),
    ("factor.qr.reflector_copy", "batch * stride_v + i * v_rs", "i * v_rs", copy()),
    ("factor.qr.larft_leaf", "batch * stride_t * REALS", "0", triangle()),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
