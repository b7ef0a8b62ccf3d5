"""Defects planted in the kernels of eigenvalues and singular values, one at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from . import test_eigh_divided, test_jacobi_columns, test_jacobi_eigh, test_jacobi_svd, test_svd_refined
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters

BLOCK = test_jacobi_eigh.BLOCK
SWEEPS = 12


def jacobi(stem: str, test: Callable, options: dict) -> Check:
    """A check whose matrices take few sweeps, lest a defective kernel go on for all that it may."""

    def run(module):
        module.SWEEPS = SWEEPS
        test(kernels=module, **options)

    return Check(stem, run)


@one_each
def eigh(test: Callable = test_jacobi_eigh.check, **options) -> Check:
    return jacobi("jacobi_eigh", test, options)


@one_each
def by_thread(test: Callable = test_jacobi_eigh.check, **options) -> Check:
    options = {"n": 4, "threads": test_jacobi_eigh.THREAD, **options}
    return jacobi("jacobi_thread", test, options)


@one_each
def svd(test: Callable = test_jacobi_svd.check, **options) -> Check:
    return jacobi("jacobi_svd", test, options)


@one_each
def columns(test: Callable = test_jacobi_columns.check, **options) -> Check:
    return jacobi("jacobi_columns", test, options)


@one_each
def reduced(test: Callable = test_eigh_divided.check, **options) -> Check:
    return Check("sytrd", lambda module: test(sytrd=module, **options))


@one_each
def resident(test: Callable = test_eigh_divided.check, kernel: str = "sytrd_resident", **options) -> Check:
    options = {"resident": (1, 1, 1), **options}
    return Check(kernel, lambda module: test(**{kernel: module}, **options))


@one_each
def merged(test: Callable = test_eigh_divided.check, **options) -> Check:
    return Check("tridiagonal_merge", lambda module: test(tridiagonal_merge=module, **options))


@one_each
def chased(test: Callable = test_eigh_divided.values_by_band, **options) -> Check:
    return Check("band_chase", lambda module: test(band_chase=module, **options))


@one_each
def refined(test: Callable = test_svd_refined.check, kernel: str = "svd_results", **options) -> Check:
    return Check(kernel, lambda module: test(**{kernel: module}, **options))


@one_each
def corrected(**options) -> Check:
    return Check("svd_correction", lambda module: test_svd_refined.corrected(kernels=module, **options))


MIXED, ALONE = eigh(test_jacobi_eigh.mixed), eigh(test_jacobi_eigh.values_alone)
ODD, EVEN, COMPLEX = eigh(n=7, threads=BLOCK), eigh(n=8, threads=BLOCK), eigh(letter="z", n=8)
TEN = eigh(n=10, threads=BLOCK)
PAIRS, ZEROS = svd(m=13, n=11), svd(kind="zero columns", m=8, n=6)
COLUMNS = columns(test_jacobi_columns.check_symmetric, letter="z")
SIX, EIGEN = columns(m=6, n=6), columns(test_jacobi_columns.check_symmetric)
SEVERAL = columns(m=20, n=19, cols=64)
SPREAD = reduced(letter="s", n=24, blocks=2)
SIGNS = merged(kind="signs", n=12, batch=3)
WARPS, CLUSTER = resident(n=5, resident=(1, 2, 1)), resident(letter="z", n=4, resident=(1, 1, 2))
HERMITIAN, BACK = resident(letter="z", n=5), resident(kernel="ormtr", letter="c", n=5)
CORRECTED, REFINED = corrected(), refined(m=4, n=4)
FEW = refined(test_svd_refined.too_few, error=1.0, steps=2)
HUGE, TINY = {"kind": "huge"}, {"kind": "tiny"}

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers
    ("factor.eigen.jacobi_eigh", "            update(x, now, s, plane, i, k, h, d, groups, meets_fixed)\n            sync()", "            update(x, now, s, plane, i, k, h, d, groups, meets_fixed)", EVEN),
    ("factor.eigen.jacobi_eigh", "k, h, row, end)\n            sync()", "k, h, row, end)", EVEN),
    ("factor.eigen.jacobi_eigh", "int32(0), h)\n        sync()", "int32(0), h)", EVEN),
    ("factor.eigen.jacobi_eigh", "            i = int32(i + lanes)\n        sync()\n        i = int32(thread)", "            i = int32(i + lanes)\n        i = int32(thread)", EVEN),
    ("factor.eigen.rotation", "            cuda.syncthreads()\n            x = partials[0]", "            x = partials[0]", EVEN),
    ("factor.eigen.rotation", "        sync_warp()\n        lane", "        lane", eigh(n=7)),
    ("factor.eigen.jacobi_svd", "                first = int32(first + groups)\n            sync()", "                first = int32(first + groups)", PAIRS),
    ("factor.eigen.jacobi_svd", "rows, thread, lanes)\n        sync()", "rows, thread, lanes)", PAIRS),
    ("factor.eigen.svd_vectors", "            first = int32(first + groups)\n        sync()\n        i = int32(t", "            first = int32(first + groups)\n        i = int32(t", ZEROS),
    # pairs and edges
    ("factor.eigen.rotation", "if i == 0:", "if i == 1:", EVEN),
    ("factor.eigen.rotation", "p = int32(p - rounds)", "p = int32(p - rounds - 1)", EVEN),
    ("factor.eigen.jacobi_eigh", "k < m - 2", "k < m - 3", EVEN),
    ("factor.eigen.eigh_steps", "d + d < others or (d + d == others and i <= d)", "d + d < others", TEN),
    ("factor.eigen.eigh_steps", "d + d < others or (d + d == others and i <= d)", "d + d <= others", TEN),
    ("factor.eigen.eigh_steps", "int32(d + step)", "int32(d + step + 1)", eigh(n=16)),
    ("factor.eigen.jacobi_eigh", "int32(min(row + share, n))", "int32(row + share)", eigh(n=7)),
    ("factor.eigen.symmetric_store", "if i < rows:", "if i <= rows:", eigh(n=7)),
    ("factor.eigen.jacobi_svd", "n + (n & 1)", "n", svd(m=6, n=5)),
    ("factor.eigen.jacobi_svd", "(i < pairs)", "(i <= pairs)", PAIRS),
    ("factor.eigen.svd_columns", "while i + step - width < m:", "while i < m:", svd(m=40, n=3)),
    # range and special values
    ("factor.eigen.symmetric_store", "s[at + part * plane] * factor", "s[at + part * plane] * real(1)", eigh(**HUGE)),
    ("factor.eigen.jacobi_eigh", "* real(UNIT * UNIT)", "* real(UNIT)", eigh(n=8)),
    ("factor.eigen.jacobi_eigh", "back = out[1] if most < real(float(\"inf\")) else real(float(\"nan\"))", "back = out[1]", MIXED),
    ("factor.eigen.jacobi_eigh", "real(i) if is_bad else", "", MIXED),
    ("factor.eigen.ranking", "y == x and j < i", "y != y", eigh(kind="zero")),
    ("factor.eigen.svd_columns", "s[at] = s[at] * factor", "pass", svd(**HUGE)),
    ("factor.eigen.svd_columns", "s[at] = s[at] * factor", "pass", svd(**TINY)),
    ("factor.eigen.svd_vectors", "if is_empty else int32(0)", "if False else int32(0)", ZEROS),
    ("factor.eigen.svd_vectors", "for _ in range(2):", "for _ in range(0):", ZEROS),
    ("factor.eigen.ranking", "y == x and j < i", "y != y", svd(kind="zeros")),
    ("factor.eigen.jacobi_svd", "if is_here and most < real", "if most < real", svd(batch=3, m=4, n=4)),
    # arithmetic
    ("factor.eigen.rotation", "-t if tau < real(0) else t", "t", EVEN),
    ("factor.eigen.rotation", "s if re > real(0) else -s", "s", EVEN),
    ("factor.eigen.rotation", "c * first - re * second - im * second_im", "c * first - re * second + im * second_im", COMPLEX),
    ("factor.eigen.rotation", "root(real(1) + rest * rest)", "real(1)", COMPLEX),
    ("factor.eigen.eigh_steps", "s[second] += gain", "s[second] -= gain", EVEN),
    ("factor.eigen.eigh_steps", "turn(x, 0, 2 * REALS, c, re, -im)", "turn(x, 0, 2 * REALS, c, re, im)", COMPLEX),
    ("factor.eigen.symmetric_store", "real(1) if (i >= j) != is_far else real(-1)", "real(1)", COMPLEX),
    ("factor.eigen.symmetric_store", " & (max(i, j) < h + h - 1)", "", COMPLEX),
    ("factor.eigen.eigh_steps", "first, crossed = real(1) if is_back else real(-1)", "first, crossed = real(-1)", COMPLEX),
    ("factor.eigen.eigh_steps", "real(1) if is_near else real(-1)", "real(1)", COMPLEX),
    ("factor.eigen.jacobi_eigh", "(group == least)", "(group == groups)", EVEN),
    ("factor.eigen.jacobi_eigh", "is_here & (i > 0)", "is_here", EVEN),
    ("factor.eigen.symmetric_store", "number + m + distance", "number + distance", EVEN),
    ("factor.eigen.symmetric_store", "(-x[1] if conj != 0 else x[1])", "x[1]", eigh(letter="z", conj=True)),
    ("factor.eigen.svd_columns", "x[i] * x[j + 1] - x[i + 1] * x[j]", "x[i] * x[j + 1] + x[i + 1] * x[j]", svd(letter="z")),
    ("factor.eigen.svd_columns", "x[1] = sign * x[1]", "pass", svd(letter="z", conj=test_jacobi_svd.jacobi_svd.CONJ_A)),
    ("factor.eigen.svd_columns", "sign * s[of + plane] * unit", "s[of + plane] * unit", svd(letter="z", conj=test_jacobi_svd.jacobi_svd.CONJ_V)),
    # indices
    ("factor.eigen.jacobi_eigh", "matrix * stride_v * REALS", "0", MIXED),
    ("factor.eigen.jacobi_svd", "matrix * stride_u * REALS", "0", svd(batch=2)),
    ("factor.eigen.jacobi_svd", "while i < n and is_here:", "while i < n:", svd(test_jacobi_svd.mixed, n=3)),
    # a matrix a thread
    ("factor.eigen.jacobi_thread", "s[SECOND] += h[0]", "s[SECOND] -= h[0]", by_thread()),
    ("factor.eigen.jacobi_thread", "(-1.0 if r < k else 1.0 for k in (p, q))", "(1.0 for k in (p, q))", by_thread(letter="z")),
    ("factor.eigen.jacobi_thread", "(n > i) & (n > j)", "n > i", by_thread(n=3)),
    ("factor.eigen.jacobi_thread", "select(is_bad, real(0), s[i] * factor)", "s[i]", by_thread(**HUGE)),
    ("factor.eigen.jacobi_thread", "matrix * stride_v * REALS", "0", by_thread(batch=2)),
    ("factor.eigen.jacobi_thread", "(values[j] == values[i]) & (j < i)", "(values[j] != values[j])", by_thread(kind="zero")),
    # columns in registers
    ("factor.eigen.halves", "select(is_second, y[k + half], y[k]) + shuffle", "y[k] + shuffle", SIX),
    ("factor.eigen.column_steps", "t = twice * r * r", "t = g * r * r", SIX),
    ("factor.eigen.column_steps", "x[i] -= acc[number] * y[j]", "x[i] += acc[number] * y[j]", SIX),
    ("factor.eigen.column_steps", "acc[0] * y[j + 1] + acc[1] * y[j]", "acc[0] * y[j + 1] - acc[1] * y[j]", COLUMNS),
    ("factor.eigen.column_steps", "t_im = (g_im + g_im) * r * r", "t_im = -(g_im + g_im) * r * r", COLUMNS),
    ("factor.eigen.definite", "sign * a[at * REALS + 1]", "a[at * REALS + 1]", columns(test_jacobi_columns.check_symmetric, letter="z", conj=True)),
    ("factor.eigen.column_steps", "theirs[part] = shuffle(theirs[part], source)", "pass", SIX),
    ("factor.eigen.column_steps", "mine[part] = select(is_upper, other, mine[part])", "pass", SIX),
    ("factor.eigen.column_steps", "s = c * w", "s = c", SIX),
    ("factor.eigen.column_steps", "y[k * EACH + row] *= acc[1]", "pass", SIX),
    ("factor.eigen.column_steps", "i if row < ROWS else int32(m + i)", "i", SIX),
    ("factor.eigen.column_steps", "        sync_warp()\n        if first_lane", "        if first_lane", SIX),
    ("factor.eigen.jacobi_columns", "restore(0, x, y)", "pass", SIX),
    ("factor.eigen.jacobi_columns", "            if not IS_WHOLE:\n                sync()\n", "", SEVERAL),
    ("factor.eigen.jacobi_columns", "store(0, x, y, s, p, q, n, m, row)", "pass", columns(m=12, n=11, cols=64)),
    ("factor.eigen.jacobi_columns", "values[i] = shift - values[i]", "pass", EIGEN),
    ("factor.eigen.jacobi_columns", "matrix * stride_v", "0", columns(batch=2)),
    # singular vectors from those of few digits
    ("factor.eigen.svd_correction", "e[0], e[2] = (re - high * p) * factor", "e[0], e[2] = (re + high * p) * factor", CORRECTED),
    ("factor.eigen.svd_correction", "(low * p - re)", "(re - low * p)", CORRECTED),
    ("factor.eigen.svd_correction", "real(0.5) * q", "real(-0.5) * q", corrected(letter="z")),
    ("factor.eigen.svd_correction", "(im - low * q)", "(low * q - im)", corrected(letter="z")),
    ("factor.eigen.svd_correction", "or not largest <= real(LARGE)", "", CORRECTED),
    ("factor.eigen.svd_correction", "max(abs(e[2]), abs(e[3]))", "real(0)", CORRECTED),
    ("factor.eigen.svd_correction", "and j <= i", "and j < i", CORRECTED),
    ("factor.eigen.svd_correction", "(line_i * LD + lane)", "(lane * LD + line_i)", CORRECTED),
    ("factor.eigen.svd_correction", "        cuda.syncthreads()\n", "", CORRECTED),
    ("factor.eigen.svd_correction", "i0 >= tiles - j0", "i0 > tiles - j0", CORRECTED),
    ("factor.eigen.svd_results", "(other == norm and i < j)", "False", refined(are_equal=True)),
    ("factor.eigen.svd_results", "real(0) if is_good else real(1)", "real(0)", FEW),
    ("factor.eigen.svd_results", "<= norm < real(float(\"inf\"))", "<= norm", refined(test_svd_refined.of_size)),
    ("factor.eigen.svd_results", "place * u_cs", "int64(j) * u_cs", REFINED),
    ("factor.eigen.svd_results", "place * v_cs", "int64(j) * v_cs", REFINED),
    ("factor.eigen.svd_results", "batch * stride_right", "0", REFINED),
    ("factor.eigen.svd_results", "-factor if is_conjugated", "factor if is_conjugated", refined(letter="z", m=4, n=4)),
    ("factor.eigen.definite", "if i >= j:", "if i > j:", EIGEN),
    ("factor.eigen.definite", "s[i * ld + i] += shift", "pass", EIGEN),
    ("factor.eigen.definite", "real(BEYOND) * max(norm, real(1))", "real(0.25) * norm", columns(test_jacobi_columns.check_symmetric, kind="signs")),
    # divide and conquer
    ("factor.quotient", "fma(fma(e, e, e), r, r)", "r", merged(n=12)),
    ("factor.eigen.sytrd_columns", "put(stored, c * ROWS + a, x, 0)", "pass", resident(n=5, resident=(1, 2, 1, 4, 15))),
    ("factor.eigen.sytrd_leader", "-first * over", "first * over", resident(n=5)),
    ("factor.clusters", "        if has_clusters and blocks > 1:", "        if False:", SPREAD),
    ("factor.eigen.sytrd", "real(-0.5)", "real(0.5)", reduced()),
    ("factor.eigen.sytrd", "re * second + im * first", "re * second - im * first", reduced(letter="z")),
    ("factor.eigen.sytrd", "scale[batch] = real(float(\"nan\")) if is_bad else back", "scale[batch] = back", reduced(test_eigh_divided.mixed)),
    ("factor.eigen.sytrd_steps", "v[of] * w_k - w[of] * v_k", "v[of] * w_k", reduced()),
    ("factor.eigen.sytrd_steps", "row[1] * w[of] + row[0]", "row[1] * w[of] - row[0]", reduced(letter="z")),
    ("factor.eigen.sytrd_steps", "if row == 0 and 0 < i < n:", "if False:", reduced()),
    ("factor.eigen.sytrd_steps", "(block - start) & (blocks - 1)", "0", SPREAD),
    ("factor.eigen.sytrd_columns", "            sync()\n            multiply(", "            multiply(", WARPS),
    ("factor.eigen.sytrd_columns", "            sync()\n            q = ", "            q = ", WARPS),
    ("factor.eigen.sytrd_columns", "(i < j), -im, im", "(i < j), im, -im", HERMITIAN),
    ("factor.eigen.sytrd_columns", "(col >= 0) & (row < ORDER - skip)", "col >= 0", resident(n=5, resident=(1, 3, 1))),
    ("factor.eigen.sytrd_columns", "if slot == q - number * SLOTS:", "if slot == 0:", WARPS),
    ("factor.eigen.sytrd_columns", "re * z[5] + im * z[4]", "re * z[5] - im * z[4]", HERMITIAN),
    ("factor.eigen.sytrd_leader", "q - skip)\n        turn = int32(step & 1)", "q - skip)\n        turn = int32(0)", CLUSTER),
    ("factor.eigen.sytrd_leader", "is_owner = ", "is_owner = (block == 0) | ", CLUSTER),
    ("factor.eigen.sytrd_leader", "select(i > k + 1, value * value, real(0))", "value * value", WARPS),
    ("factor.eigen.sytrd_leader", "real(-0.5)", "real(0.5)", WARPS),
    ("factor.eigen.sytrd_leader", "acc[0] += v[at + 1] * im", "acc[0] += real(0)", HERMITIAN),
    ("factor.eigen.sytrd_leader", "v[at] * head_im - w[at + 1]", "v[at] * head_im", HERMITIAN),
    ("factor.eigen.sytrd_leader", "select(is_below, x[at + part], real(0))", "x[at + part]", WARPS),
    ("factor.eigen.sytrd_resident", "real(float(\"nan\")) if is_bad else back", "back", resident(test_eigh_divided.mixed)),
    ("factor.eigen.ormtr", "            cuda.syncthreads()\n            j =", "            j =", BACK),
    ("factor.eigen.ormtr", "select(is_one, real(1), x)", "x", BACK),
    ("factor.eigen.ormtr", "u[of] * x[at + 1] - u[of + 1] * x[at]", "u[of] * x[at + 1] + u[of + 1] * x[at]", BACK),
    ("factor.eigen.ormtr", "re * acc[c * 2 + 1] + im * acc[c * 2]", "re * acc[c * 2 + 1] - im * acc[c * 2]", BACK),
    ("factor.eigen.ormtr", "(i >= 0) & (col < cols)", "i >= 0", BACK),
    ("factor.eigen.band_chase", "min(k + 2, before)", "min(k + 1, before)", chased(n=15)),
    ("factor.eigen.band_chase", "is_bad = not most < real(float(\"inf\"))", "is_bad = False", chased(test_eigh_divided.mixed, bands=True)),
    ("factor.eigen.band_chase", "work, a, a_rs, a_cs, h[0], is_bad", "work, a, a_rs, a_cs, real(1), is_bad", chased(kind="huge", n=6)),
    ("factor.eigen.band_steps", "lane > 0, lane > warp", "lane > 0, lane >= warp", chased()),
    ("factor.eigen.band_steps", "                v[part] -= acc[part]", "                pass", chased()),
    ("factor.eigen.band_steps", "v, h, sums, others, warp", "v, h, sums, parts, warp", chased()),
    ("factor.eigen.band_steps", "is_there = (i <= WIDTH)", "is_there = (i < WIDTH)", chased()),
    ("factor.eigen.halves", "sent = select(is_second, y[k], y[k + half])", "sent = y[k]", chased()),
    ("factor.eigen.band_steps", "x[at + 1] -= w[1] * z[at] - w[0]", "x[at + 1] -= w[1] * z[at] + w[0]", chased(letter="z")),
    ("factor.eigen.deflation", "-z if is_second and coupling < real(0) else z", "z", SIGNS),
    ("factor.eigen.deflation", "(is_second and y == x)", "False", merged(kind="zero")),
    ("factor.eigen.deflation", "compact[p] = length,", "compact[p] = sorted_z[q],", SIGNS),
    ("factor.eigen.tridiagonal_merge", "turn[3] * x + turn[2] * y", "turn[2] * y", merged(kind="two clusters", letter="s", n=12)),
    ("factor.eigen.tridiagonal_merge", "to[i] = weight if weights[i] >= real(0) else -weight", "to[i] = weight", merged()),
    ("factor.eigen.secular", "(j < m) & (j != origin)", "j < m", merged()),
    ("factor.eigen.secular", "(j < m) & (j != i)", "j < m", merged()),
    ("factor.eigen.secular", "return following, j, -half, real(0)", "return j, following, real(0), half", merged(n=12)),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
