"""Defects planted in the kernels of QR, one at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from . import test_geqp3, test_geqrf_panel, test_reflectors
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def panel(kind: str = "panel", test: Callable = test_geqrf_panel.check, **options) -> Check:
    way = test_geqrf_panel.CLUSTER if kind == "cluster" else test_geqrf_panel.KINDS[kind]
    return Check("geqrf_panel", lambda module: test(way=way._replace(kernels=module), **options))


@one_each
def small(test: Callable = test_geqrf_panel.check, is_panel: bool = False, **options) -> Check:
    return Check("geqrf_small", lambda module: test(way=test_geqrf_panel.Small(module, is_panel), **options))


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


@one_each
def columns(test: Callable = test_reflectors.check_columns, **options) -> Check:
    return Check("orhr_leaf", lambda module: test(kernels=module, **options))


@one_each
def pivoted(test: Callable = test_geqp3.check, **options) -> Check:
    return Check("geqp3", lambda module: test(kernels=module, **options))


@one_each
def by_panels(test: Callable = test_geqp3.check, **options) -> Check:
    return Check("geqp3_panel", lambda module: test(kernels=module, **options))


PANELS, CANCELLED = by_panels(blocks=2), by_panels(test_geqp3.cancelled)
SKIPPED = Check("geqrf_tall", lambda module: test_geqrf_panel.skipped(module))
SPREAD, PIVOTED_SPECIAL = pivoted(blocks=2), pivoted(test_geqp3.special)
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
    ("factor.qr.larft_leaf", "        cuda.syncthreads()\n        if thread", "        if thread", triangle()),
    ("factor.qr.larft_leaf", "        cuda.syncthreads()\n        zero", "        zero", triangle(n=39)),
    ("factor.qr.larft_leaf", "        cuda.syncthreads()\n        if is_there", "        if is_there", triangle(n=39)),
    ("factor.qr.small_steps", "            cuda.syncthreads()\n            if", "            if", small(m=16, n=16)),
    ("factor.qr.geqrf_small", "        cuda.syncthreads()\n        own", "        own", small()),
    ("factor.qr.geqrf_small", "        cuda.syncthreads()\n        if abs", "        if abs", small()),
    ("factor.qr.small_steps", "(j & 1) * SPAN + part", "part", small(m=16, n=16)),
    ("factor.qr.small_steps", "(j & 1) * HEADS", "0", small(m=16, n=16)),
    ("factor.qr.geqrf_small", "batch * stride_tau", "0 * stride_tau", small(batch=2)),
    ("factor.qr.geqrf_small", "v = offset(v, batch * stride_v", "v = offset(v, 0 * stride_v", small(is_panel=True, batch=2)),
    ("factor.qr.geqrf_small", "offset(a, batch * stride_a * REALS), offset(v, batch", "offset(a, batch * stride_a * REALS), offset(v, 0", small(batch=2)),
    ("factor.qr.geqrf_small", "copy(s, source, a_rs", "copy(s, a, a_rs", small()),
    ("factor.qr.geqrf_small", "batch * stride_t *", "0 * stride_t *", small(is_panel=True, batch=2)),
    ("factor.qr.geqrf_small", "batch * stride_a", "0 * stride_a", small(batch=2)),
    ("factor.qr.split_columns", "largest(w[0], lane, int32(SPLIT))", "w[0]", small(scale=1e307)),
    ("factor.qr.split_columns", "total(x[k], lane, int32(SPLIT))", "x[k]", small()),
    ("factor.qr.geqrf_panel", "            cuda.syncthreads()\n            reads", "            reads", panel()),
    ("factor.qr.geqrf_panel", "        cuda.syncthreads()\n        for k in range(5)", "        for k in range(5)", panel()),
    ("factor.qr.geqrf_panel", "        cuda.syncthreads()\n        v", "        v", panel("panel")),
    ("factor.qr.panel_exchange", "meet(flags, int32(j + 2), blocks, t)", "pass", panel("spread", m=70)),
    ("factor.qr.panel_exchange", "        wait(mbarrier, int32((j >> 1) & 1))", "        pass", panel("cluster", m=70)),
    ("factor.qr.panel_exchange", "if lane < blocks:\n                store_async(int32(target + at * SIZE), y", "if lane < 1:\n                store_async(int32(target + at * SIZE), y", panel("cluster", m=70)),
    ("factor.qr.geqrf_panel", "meet(flags, int32(1), blocks, thread)", "pass", panel("spread", m=70)),
    ("factor.qr.geqrf_panel", "        meet_in_cluster(blocks)", "        pass", panel("cluster", m=70)),
    ("factor.qr.geqrf_panel", "            part(flags, blocks, thread)", "            pass", panel("spread", m=70)),
    ("factor.qr.geqp3", "            cuda.syncthreads()\n            if t == 0:", "            if t == 0:", pivoted()),
    ("factor.qr.geqp3", "int32(1)\n            cuda.syncthreads()", "int32(1)", pivoted()),
    ("factor.qr.geqp3", "            meet(flags, number, blocks, t)", "            pass", SPREAD),
    ("factor.qr.geqp3", "            part(flags, blocks, t)", "            pass", SPREAD),
    ("factor.qr.geqp3", "(3 - (j & 1)) * n", "(2 + (j & 1)) * n", SPREAD),
    ("factor.qr.pivot_column", "* CANDIDATE + k] = best[k]\n        cuda.syncthreads()", "* CANDIDATE + k] = best[k]", pivoted()),
    ("factor.qr.pivot_column", "            cuda.syncthreads()\n            for k in range(COUNT):\n                x[k] =", "            for k in range(COUNT):\n                x[k] =", SPREAD),
    ("factor.qr.signed_lu", "            cuda.syncthreads()\n\n            # (b)", "            # (b)", columns()),
    ("factor.qr.signed_lu", "            cuda.syncthreads()\n            i = int32", "            i = int32", columns()),
    ("factor.qr.orhr_leaf", "            parts[t >> 5] = x\n        cuda.syncthreads()", "            parts[t >> 5] = x", columns()),
    # vectors of orthonormal columns
    ("factor.qr.signed_lu", "p[DIAGONAL] >= real(0)", "p[DIAGONAL] < real(0)", columns()),
    ("factor.qr.signed_lu", "if row >= i + PIVOTS:\n                    if t", "if row > i + PIVOTS:\n                    if t", columns()),
    ("factor.qr.signed_lu", "subtract(y, TO, p, LEFT, y, FROM)", "pass", columns()),
    ("factor.qr.signed_lu", "            load(0, z, w, s, i, row, c)\n            store(0, z, w, s, x, row, c)", "            pass", columns(letter="s", n=16)),
    ("factor.qr.signed_lu", "= -x[q * 2 + 1]", "= x[q * 2 + 1]", columns(letter="z")),
    ("factor.qr.signed_lu", "y[j] * z[k + 1] - y[j + 1] * z[k]", "y[j] * z[k + 1] + y[j + 1] * z[k]", columns(letter="z")),
    ("factor.qr.orhr_leaf", "offset(r, batch * stride_r * REALS)", "r", columns()),
    ("factor.qr.orhr_leaf", "< real(DEPARTURE)", "< real(1)", columns(test_reflectors.check_failures)),
    ("factor.qr.orhr_leaf", "load_acquire(info, 0) != 0", "load_acquire(info, 0) < 0", columns(test_reflectors.check_failures)),
    ("factor.qr.orhr_leaf", "if not factor <= real(LARGEST):", "if factor < real(0):", columns(test_reflectors.check_failures)),
    ("factor.qr.orhr_leaf", "acc[0] = real(WORST)", "acc[0] += real(0)", columns(test_reflectors.check_failures)),
    ("factor.qr.geqp3", "load_acquire(info, batch * stride_info)", "load_acquire(info, 0)", pivoted(test_geqp3.unpivoted)),
    # pivots
    ("factor.qr.pivot_column", "e == best[0]) & ((f > best[1])", "e == best[0]) & ((f < best[1])", pivoted()),
    ("factor.qr.pivot_column", "(q < best[2])", "(q > best[2])", PIVOTED_SPECIAL),
    ("factor.qr.pivot_column", "real(e + exponent(scale))", "real(e)", pivoted(m=9, n=5, scales=10.0 ** np.array([-300, 300, 0, -299, 299]))),
    ("factor.qr.pivot_column", "        if e < LEAST:", "        if e > MOST:", PIVOTED_SPECIAL),
    ("factor.qr.geqp3", "if is_over[c] == 0:", "if is_over[c] < 2:", pivoted()),
    ("factor.qr.geqp3", "select(ok & (row != top), square", "select(ok, square", pivoted()),
    ("factor.qr.geqp3", "root(acc[0] + acc[1])\n\n    return step", "root(acc[0])\n\n    return step", pivoted()),
    ("factor.qr.geqp3", "int32(order[i] + 1)", "int32(order[i])", pivoted()),
    ("factor.qr.geqp3", "int32(least + team)", "n", pivoted(m=5, n=9)),
    ("factor.qr.geqp3", "w[0] * v[k * 2] - w[1] * v[k * 2 + 1]", "w[0] * v[k * 2] + w[1] * v[k * 2 + 1]", pivoted(letter="z")),
    ("factor.qr.geqp3", "v[k * 2] * x[k * 2 + 1] - v", "v[k * 2] * x[k * 2 + 1] + v", pivoted(letter="z")),
    ("factor.qr.geqp3", "re * h[FACTOR + 1] + im * h[FACTOR]", "im * h[FACTOR]", pivoted(letter="z")),
    ("factor.qr.geqp3", "(h[BETA] if i == j else re) * back", "h[BETA] if i == j else re", pivoted(scales=1e300)),
    ("factor.qr.geqp3", "batch * stride_w * REALS", "0", pivoted(batch=2)),
    ("factor.qr.geqp3", "batch * stride_jpvt", "0", pivoted(batch=2)),
    ("factor.qr.geqp3", "int64(block) * (2 * n)", "0", SPREAD),
    ("factor.qr.geqp3_panel", "            cuda.syncthreads()\n            products(", "            products(", PANELS),
    ("factor.qr.geqp3_panel", "            everybody(flags, int32(met + 1), blocks, t)\n            build", "            build", PANELS),
    ("factor.qr.geqp3_panel", "                settle(a, lda, vectors[3], int32(j - 1), i)", "                pass", by_panels()),
    ("factor.qr.geqp3_panel", "moved[OF_COLUMNS], numbers[1]", "moved[0], numbers[0]", by_panels()),
    ("factor.qr.geqp3_panel", "block * SUMS + i", "i", by_panels(m=70, n=5, blocks=2)),
    ("factor.qr.laqps_rows", "            if is_element:", "            if i < 0:", by_panels(n=12)),
    ("factor.qr.laqps_columns", "u[part] if kind == 1 else moved", "moved", by_panels(n=12)),
    ("factor.qr.laqps_columns", "key[part] -= acc[REALS + part]", "key[part] -= real(0)", by_panels()),
    ("factor.qr.laqps_columns", "is_lost = int32(1)", "is_lost = int32(0)", CANCELLED),
    ("factor.qr.laqps_columns", "subtract(acc, re, im, u[2], u[3])", "subtract(acc, re, im, u[0], u[1])", CANCELLED),
    # edges
    ("factor.qr.geqrf_panel", "if col == j + 1:", "if col == j + 2:", panel()),
    ("factor.qr.geqrf_panel", "top + lane > j)\n            add", "True)\n            add", panel(test=test_geqrf_panel.infinite)),
    ("factor.qr.geqrf_panel", "w, c, top + lane > j", "w, c, True", panel(test=test_geqrf_panel.infinite)),
    ("factor.qr.small_steps", "own < WIDTH - 1", "own < WIDTH - 2", small(m=16, n=16)),
    ("factor.qr.small_steps", "facts, FIRST, ROWS = config.dtype_facts, slot * config.GROUP", "facts, FIRST, ROWS = config.dtype_facts, 0", small(m=30, n=20)),
    ("factor.qr.geqrf_small", "i < above * n", "i < above", small(is_panel=True)),
    ("factor.qr.small_steps", "s[to] *= s[f] * s[g]", "s[to] *= s[f]", small(is_panel=True)),
    ("factor.qr.small_steps", "re * x - im * y,", "re * x + im * y,", small(letter="z", is_panel=True)),
    ("factor.qr.small_steps", "g *= invert(fma(t, t, real(1)))", "g *= real(1)", small(letter="z")),
    ("factor.qr.geqrf_small", "                cuda.syncthreads()\n                t =", "                t =", small(is_panel=True)),
    ("factor.qr.geqrf_small", "        cuda.syncthreads()\n        finish", "        finish", small()),
    ("factor.qr.small_steps", "w[0], w[1], y[1] = re, real(0), real(0)", "w[0], w[1], y[1] = re, real(0), re", small(test=test_geqrf_panel.special)),
    ("factor.qr.split_columns", "shuffle(passed, int32(lane ^ distance))", "passed", small(is_panel=True)),
    ("factor.qr.split_columns", "(lane & -SPLIT) + lane_of", "lane & -SPLIT", small(is_panel=True)),
    ("factor.qr.split_columns", "col + c * GROUPS > j", "col + c * GROUPS >= j", small()),
    ("factor.qr.split_columns", "if c == own", "if c >= own", small()),
    ("factor.qr.small_steps", "(IS_PANEL and triangular) or ", "", small(is_panel=True, n=14, m=40)),
    ("factor.qr.split_columns", "select(i == j, one, real(0))", "real(0)", small(is_panel=True)),
    ("factor.qr.split_columns", "(i < m) & (j < n))", "(i < m) & (j <= n))", small()),
    ("factor.qr.split_columns", "row(k, part) >= j\n        add_product", "k >= 0\n        add_product", small(test=test_geqrf_panel.infinite)),
    ("factor.qr.split_columns", "row(k, part) >= j\n        re, im", "k >= 0\n        re, im", small(test=test_geqrf_panel.infinite)),
    ("factor.qr.geqrf_panel", "block == 0 and thread < n", "block == 0 and thread < n - 1", panel()),
    ("factor.qr.geqrf_panel", "i < above * n", "i < above", panel("panel")),
    ("factor.qr.register_columns", "k * WARP < left)", "k * WARP <= left)", panel()),
    ("factor.qr.register_columns", "rows - lane if col < n else 0)", "rows - lane)", panel()),
    ("factor.qr.register_columns", "rows - lane if col < n else 0\n", "rows - lane\n", panel()),
    ("factor.qr.register_columns", "select(i + k * WARP == col, real(1), real(0))", "real(0)", panel("panel")),
    ("factor.qr.larft_leaf", "select(r <= c + k, s[", "select(r < c + k, s[", triangle()),
    ("factor.qr.larft_leaf", "if i < n:", "if i < n - 1:", triangle()),
    ("factor.qr.larft_leaf", "select(r <= c, s[", "select(r >= 0, s[", triangle()),
    ("factor.qr.larft_leaf", "l + u <= tk + q * TILES", "l + u < w", triangle(n=39)),
    ("factor.qr.larft_leaf", "l + u >= ti + p", "l + u >= 0", triangle(n=39)),
    ("factor.qr.larft_leaf", "-y[left + 1] if", "y[left + 1] if", triangle(letter="z")),
    ("factor.qr.geqrf_tall", "elif i > j:", "elif i >= j:", tall()),
    ("factor.qr.geqrf_tall", "i == first)", "i == j)", tall()),
    ("factor.qr.geqrf_tall", "elif j < k < n:", "elif j < k < n - 1:", tall()),
    ("factor.qr.geqrf_tall", "if first < n:\n            leave", "if first < n - 1:\n            leave", tall()),
    ("factor.qr.geqrf_tall", "block] = x\n        cuda.syncthreads()", "block] = x", tall(m=40, n=19)),
    ("factor.qr.geqrf_tall", "if begin <= first:", "if begin < first:", tall()),
    ("factor.qr.geqrf_tall", "max(j + 1, 0), n - 1)", "max(j + 1, 0), n)", tall(n=8)),
    ("factor.qr.geqrf_tall", "load_acquire(info, 0) == 0", "load_acquire(info, 0) != 0", SKIPPED),
    ("factor.qr.geqrf_tall", "i + blocks * DIM", "m", tall(m=130)),
    ("factor.qr.reflector_copy", "i > first + j", "i >= first + j", copy()),
    ("factor.qr.reflector_copy", "m + (DIM - 1)", "m", copy()),
    ("factor.qr.reflector_copy", "and part == 0", "", copy(letter="z")),
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
    ("factor.qr.larft_leaf", "+= t[u + 1] * re - t[u] * im", "+= t[u + 1] * re + t[u] * im", triangle(letter="z")),
    ("factor.qr.larft_leaf", "re - f_im * acc[q * 2 + 1]", "re + f_im * acc[q * 2 + 1]", triangle(letter="z")),
    ("factor.qr.larft_leaf", "select(r < i, -re,", "select(r < i, re,", triangle()),
    ("factor.qr.reflector", "v[k * 2] * im - v[k * 2 + 1] * re", "v[k * 2] * im + v[k * 2 + 1] * re", panel(letter="z")),
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
