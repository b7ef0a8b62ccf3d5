"""Defects planted in the kernels of QR, one at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from . import test_geqrf_panel, test_reflectors
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def panel(test: Callable = test_geqrf_panel.check, **options) -> Check:
    return Check("geqrf_panel", lambda module: test(kernels=module, **options))


@one_each
def tall(test: Callable = test_geqrf_panel.check, m=70, **options) -> Check:
    sizes = {"m": m} if test is test_geqrf_panel.check else {}
    return Check("geqrf_tall", lambda module: test(kernels=module, **sizes, **options))


@one_each
def copy(**options) -> Check:
    return Check("reflector_copy", lambda module: test_reflectors.check_copy(kernels=module, **options))


@one_each
def triangle(**options) -> Check:
    return Check("larft_leaf", lambda module: test_reflectors.check_triangle(kernels=module, **options))


SPECIAL, TALL_SPECIAL = panel(test_geqrf_panel.special), tall(test_geqrf_panel.special)
LARGE, SMALL = panel(scale=1e307), panel(scale=1e-307)

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers
    ("factor.qr.geqrf_panel", "        while j < n:\n            cuda.syncthreads()", "        while j < n:", panel()),
    ("factor.qr.geqrf_panel", "a_cs, m, n, t)\n        cuda.syncthreads()", "a_cs, m, n, t)", panel()),
    ("factor.qr.geqrf_panel", "        sync_warp()\n        make", "        make", panel()),
    ("factor.qr.geqrf_panel", "below)\n        sync_warp()", "below)", panel()),
    ("factor.qr.geqrf_panel", "top))\n        sync_warp()", "top))", panel()),
    ("factor.qr.geqrf_panel", "            i = int32(i + 32)\n        sync_warp()", "            i = int32(i + 32)", panel()),
    ("factor.qr.geqrf_tall", "t & 31))\n            cuda.syncthreads()", "t & 31))", tall()),
    ("factor.qr.geqrf_tall", "            cuda.syncthreads()\n\n            # (4)", "            # (4)", tall()),
    ("factor.qr.geqrf_tall", "t >> 5, t & 31)\n        cuda.syncthreads()", "t >> 5, t & 31)", tall()),
    ("factor.qr.geqrf_tall", "                pass\n        cuda.syncthreads()", "                pass", tall()),
    ("factor.qr.geqrf_tall", "                meet(flags, int32(j - FIRST + 1), blocks, t)\n", "                pass\n", tall()),
    ("factor.qr.geqrf_tall", "store_relaxed(flags, ARRIVED, int32(0))", "pass", tall()),
    ("factor.qr.geqrf_tall", "store_relaxed(flags, LEFT, int32(0))", "pass", tall()),
    ("factor.qr.geqrf_tall", "(1 - (j & 1)) * half", "(j & 1) * half", tall()),
    ("factor.qr.larft_leaf", "            cuda.syncthreads()\n            if r <= i:", "            if r <= i:", triangle()),
    # edges
    ("factor.qr.geqrf_panel", "int32(first + lane)", "int32(first + lane + 1)", panel()),
    ("factor.qr.geqrf_panel", "int32(j + 1 + warp)", "int32(j + 1)", panel()),
    ("factor.qr.geqrf_panel", "if c == j + 1:", "if c == j + 2:", panel()),
    ("factor.qr.geqrf_panel", "if i <= j:", "if i < j:", LARGE),
    ("factor.qr.geqrf_panel", "i + LAST < m", "i < m", panel(m=300)),
    ("factor.qr.geqrf_panel", "i + COUNT * WARP", "i + 2 * COUNT * WARP", panel(m=600, n=2)),
    ("factor.qr.geqrf_panel", "if after < m:", "if after < 0:", panel()),
    ("factor.qr.geqrf_panel", "after, int32(after + 1), lane)\n                zero(acc, real(0))", "after, int32(after + 1), lane)", panel()),
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
    ("factor.qr.reflector", " and not square <= real(TINY)", "", panel(test_geqrf_panel.negligible)),
    ("factor.qr.geqrf_panel", " if t[0] != real(0) else real(0)", "", SPECIAL),
    ("factor.qr.geqrf_tall", "if h[TAU] == real(0) and", "if h[TAU] > real(9) and", TALL_SPECIAL),
    # arithmetic
    ("factor.qr.reflector", "norm if re < real(0) else -norm", "-norm", panel()),
    ("factor.qr.reflector", "            rest += im * im\n", "            pass\n", panel(test_geqrf_panel.imaginary)),
    ("factor.qr.reflector", "divide(-im, beta)", "divide(im, beta)", panel(letter="z")),
    ("factor.qr.geqrf_panel", "v[at] * x[at + 1] - v[at + 1] * x[at]", "v[at] * x[at + 1] + v[at + 1] * x[at]", panel(letter="z")),
    ("factor.qr.geqrf_panel", "t[0] * re + t[1] * im", "t[0] * re - t[1] * im", panel(letter="z")),
    ("factor.qr.geqrf_panel", "f[0] * w[1] + f[1] * w[0]", "f[0] * w[1] - f[1] * w[0]", panel(letter="z")),
    ("factor.qr.geqrf_panel", "acc[k * REALS + 1] += y_im * y_im", "pass", panel(letter="z")),
    ("factor.qr.geqrf_panel", "if part == 0 else real(0)", "if part == 0 else h[0]", panel(letter="z")),
    ("factor.qr.geqrf_tall", "h[FACTOR + 1] * sums[at]\n", "h[FACTOR] * sums[at]\n", tall(letter="z")),
    ("factor.qr.geqrf_tall", "w[at] = h[TAU] * re + h[TAU + 1] * im", "w[at] = h[TAU] * re - h[TAU + 1] * im", tall(letter="z")),
    ("factor.qr.geqrf_tall", "f * im - f_i * re", "f * im + f_i * re", tall(letter="z")),
    ("factor.qr.geqrf_tall", "(head[at] - w[at]) * back[k]", "(head[at] - w[at])", tall(scale=1e307)),
    ("factor.qr.larft_leaf", "re, im = real(-1), real(0)", "re, im = real(1), real(0)", triangle()),
    ("factor.qr.larft_leaf", "-f * im - f_i * re", "-f * im + f_i * re", triangle(letter="z")),
    # indices
    ("factor.qr.geqrf_panel", "batch * stride_a * REALS", "0", panel(batch=2)),
    ("factor.qr.geqrf_panel", "batch * stride_tau * REALS", "0", panel(batch=2)),
    ("factor.qr.reflector_copy", "batch * stride_v + i * v_rs", "i * v_rs", copy()),
    ("factor.qr.larft_leaf", "batch * stride_t * REALS", "0", triangle()),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
