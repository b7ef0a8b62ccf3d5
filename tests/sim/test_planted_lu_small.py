"""Defects planted in the kernels of small LU factors, one at a time: the checks must catch every one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from . import test_determinant, test_getrf_column, test_lu_small
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def factors(letter="d", m=7, n=7, batch=5, order="F", **changes) -> Check:
    def run(module):
        test_lu_small.check_factors(letter, m, n, batch, order, module, **changes)

    return Check("getrf_small", run)


@one_each
def solutions(letter="d", n=7, r=1, batch=5, **options) -> Check:
    def run(module):
        test_lu_small.check_solutions(letter, n, r, batch, kernels=module, **options)

    return Check("getrs_small", run)


@one_each
def restored(**options) -> Check:
    return Check("restore", lambda module: test_lu_small.check_restored(module, **options))


@one_each
def columns(**options) -> Check:
    return Check("getrf_column", lambda module: test_getrf_column.check(kernels=module, **options))


def column_of_real_numbers(module) -> None:
    """Complex ones without imaginary parts."""
    start = test_lu_small.random("d", 40, 3).astype(complex)
    test_getrf_column.check("z", start=start, kernels=module)


@one_each
def definite(letter="d", **options) -> Check:
    return Check(
        "getrs_small", lambda module: test_lu_small.check_definite(letter, kernels=module, **options)
    )


@one_each
def inverted(letter="d", **options) -> Check:
    return Check(
        "getrs_small", lambda module: test_lu_small.check_inverses(letter, kernels=module, **options)
    )


def ties(module) -> None:
    """The largest of each column stands in several rows."""
    stack = np.random.default_rng(0).choice([1.0, -1.0], (4, 14, 2))
    test_lu_small.check_factors(start=stack, kernels=module)


def zeros(module) -> None:
    stack = np.stack([test_lu_small.random("d", 6, 6, seed) for seed in range(3)])
    stack[1, :, 2] = stack[1, :, 4] = 0
    test_lu_small.check_factors(start=stack, kernels=module)


def not_a_number(module) -> None:
    stack = np.stack([test_lu_small.random("d", 6, 3, seed) for seed in range(3)])
    stack[:, 1, 0] = np.nan
    assert not (test_lu_small.factor(stack, module)[0][:, 0] == 1).any()


def imaginary(module) -> None:
    """Pivots without real parts."""
    stack = np.stack([test_lu_small.random("z", 6, 3, seed).imag * 1j for seed in range(3)])
    test_lu_small.check_factors("z", start=stack, kernels=module)


@one_each
def at_once(test: Callable = test_lu_small.check_at_once, **options) -> Check:
    return Check("gesv_small", lambda module: test(kernels=module, **options))


@one_each
def determinants(test: Callable = test_determinant.check, **options) -> Check:
    return Check("determinant", lambda module: test(kernels=module, **options))


FACTOR, SOLVE, SWEEP, SMALL, ROWS, COLUMN, DETERMINANT, SYSTEM = (
    f"factor.lu.{name}"
    for name in (
        "getrf_small", "getrs_small", "small_sweeps", "small_matrices", "panel_rows", "getrf_column", "determinant",
        "gesv_small",
    )
)  # fmt: skip
RESTORE = "factor.restore"
INVERSE, SHARED = at_once(r=0), at_once(n=3, r=11, COLS=8)
ONE, WARP, SINGLE = factors(), factors(m=20, n=20, batch=2), solutions()
SEVERAL, COMPLEX, COMPLEXES = solutions(r=6), solutions("z", trans=2), solutions("z", trans=2, r=2)
TALL, INVERTED = solutions(n=40, r=2, batch=2), inverted()
TIES, ZEROS = Check("getrf_small", ties), Check("getrf_small", zeros)
NOT_A_NUMBER, IMAGINARY = Check("getrf_small", not_a_number), Check("getrf_small", imaginary)

SPECIAL, ENDS = determinants(test_determinant.special), determinants(test_determinant.ends)
WIDE, LARGE = determinants(test_determinant.products), determinants(n=33)
UNREAL = determinants(test_determinant.special, dtype="D")

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    (FACTOR, "row[k * REALS + part], real(0)", "row[(k + 1) * REALS + part], real(0)", factors(order="C")),
    (FACTOR, "put(pivot_row, values, left)\n            sync_warp()", "put(pivot_row, values, left)", ONE),
    (ROWS, "if left > start:", "if left > start + 8:", WARP),
    (ROWS, "load(held, 0, pivot_row, start * REALS)", "load(held, 0, pivot_row, 0)", WARP),
    (ROWS, "factor[0] * held[y + 1] - factor[1]", "factor[0] * held[y + 1] + factor[1]", factors("z")),
    (FACTOR, "find(real(1), done, is_zero", "find(real(done), done, is_zero", ZEROS),
    (FACTOR, "int32(failed + 1)", "int32(failed)", ZEROS),
    (FACTOR, "(done < steps) & (values[0]", "(values[0]", Check("getrf_small", test_lu_small.check_rows_left)),
    (FACTOR, "== real(0)) & (values", "== real(0)) | (values", IMAGINARY),
    (FACTOR, "if lane == j:", "if lane == j + 1:", ONE),
    (FACTOR, "label, is_left, done = j, False, j", "is_left, done = False, j", ONE),
    (FACTOR, "label, is_left, done = j, False, j", "label, done = j, j", ONE),
    (FACTOR, "label, is_left, done = j, False, j", "label, is_left = j, False", ONE),
    (FACTOR, "if label == j:", "if False:", ONE),
    (FACTOR, "(j & 1) * ROW", "0", ONE),
    (FACTOR, "done + k < n", "k < n", factors(m=8, n=8, COLS=8)),
    (FACTOR, "ok & (k < n)", "ok", factors(m=9, n=9, batch=1)),
    (FACTOR, "if n > start:", "if n > start + 1:", factors(m=9, n=9)),
    (FACTOR, "lane_of_row[label] = lane\n        sync_warp()", "lane_of_row[label] = lane", ONE),
    (FACTOR, "group * (lanes * LD * REALS - TURNS * ROW)", "group * (LD * REALS - TURNS * ROW)", ONE),
    (FACTOR, "matrix * stride_a * REALS", "matrix * REALS", ONE),
    (FACTOR, "lane * piv_step", "lane", ONE),
    (FACTOR, "WORDS + group * lanes", "WORDS + group", ONE),
    (FACTOR, "lane < steps", "lane < m", factors(m=7, n=3)),
    (ROWS, "IS_ALL | (left <= columns)", "IS_ALL | (left < columns)", factors(m=8, n=8)),
    (ROWS, "pivot_row[PIVOT + part] = values[part]", "pass", ONE),
    (SMALL, "slow_end, fast_end = int32(m), int32(n)", "slow_end, fast_end = int32(n), int32(m)", factors(m=5, n=9, order="C")),
    (SMALL, "fast_stride, slow_step, fast_step = col_stride, row_stride", "fast_stride, slow_step, fast_step = row_stride, col_stride", SINGLE),
    (SMALL, "fast = int32(fast + lanes)", "fast = fast_end", factors(m=4, n=11, order="C")),
    (SMALL, "k = int32(k + lanes)", "k = n", factors(m=4, n=11, order="C")),
    (SMALL, "slow <= fast if", "slow >= fast if", definite()),
    (SMALL, "wait()\n        sync_warp()", "wait()", factors(order="C")),
    (SMALL, "commit()\n        wait()", "commit()", factors(order="C")),
    (SMALL, "lane_of_row[i] * (LD", "i * (LD", factors(order="C")),
    (SMALL, "lane_of_row[lane] * (LD", "lane * (LD", ONE),
    (SOLVE, "label[s] = pivot", "pass", SINGLE),
    (SOLVE, "elif label[s] == pivot:", "elif False:", SINGLE),
    (SOLVE, "row_of_label[lane + s * WARP] = lane + s * WARP\n        sync_warp()", "row_of_label[lane + s * WARP] = lane + s * WARP", SINGLE),
    (SOLVE, "row_of_label[label[s]] = lane + s * WARP\n        sync_warp()", "row_of_label[label[s]] = lane + s * WARP", SINGLE),
    (SOLVE, "int32((t - lane + i) & (WARP - 1))", "int32(i)", SINGLE),
    (SOLVE, "mine[0] if i < WARP else mine[OWN - 1]", "mine[0]", TALL),
    (SWEEP, "if lane < columns:", "if lane < 1:", SEVERAL),
    (SWEEP, "* y[0] + element[e + 1]", "* y[0] - element[e + 1]", COMPLEXES),
    (SWEEP, "* y[1] - element[e + 1]", "* y[1] + element[e + 1]", COMPLEXES),
    (SWEEP, "sign * element[s", "element[s", COMPLEXES),
    (SWEEP, "t_re, t_im = y[0], sign * y", "t_re, t_im = y[0], y", COMPLEXES),
    (SWEEP, "r_re, r_im = y[0], sign * y", "r_re, r_im = y[0], y", COMPLEXES),
    (SWEEP, "get_all(0, x, slot)", "pass", SEVERAL),
    (SWEEP, "rows[end], sign * rows", "rows[end], rows", COMPLEX),
    (SWEEP, "divide_all(0, x, at[0], sign * at", "divide_all(0, x, at[0], at", COMPLEX),
    (SWEEP, "pivot_lane, False", "int32(j), False", SINGLE),
    (SWEEP, "pivot_lane, is_pivot, is", "pivot_lane, divides, is", solutions("s")),
    (SWEEP, "(lane == j) & divides", "lane == j", SINGLE),
    (SWEEP, "lane < j if backwards else lane > j", "lane < j if backwards else lane >= j", SINGLE),
    (SWEEP, "j > first if backwards", "j > first + 1 if backwards", SINGLE),
    (SMALL, "re * y + im * y_im", "re * y - im * y_im", COMPLEX),
    (SMALL, "- re * y_im - im * y", "- re * y_im + im * y", COMPLEX),
    (SOLVE, "lane, not unit, False", "lane, unit, False", SINGLE),
    (SOLVE, "int64(others[s] if unit else row) * from_rs", "int64(row) * from_rs", SINGLE),
    (SOLVE, "int64(row if unit else others[s]) * b_rs", "int64(row) * b_rs", solutions(trans=1)),
    (SOLVE, "range(share * COLUMNS, r, groups * COLUMNS)", "range(share * COLUMNS, r, COLUMNS)", solutions(r=9, groups=2)),
    (SOLVE, "range(share * COLUMNS, r, groups * COLUMNS)", "range(0, min(r, COLUMNS), COLUMNS)", SEVERAL),
    (SOLVE, "REALS + part, ok & (c + q < r))", "REALS + part, ok)", SEVERAL),
    (SOLVE, "matrix * stride_piv", "0", SINGLE),
    (SYSTEM, "if done + k < n:", "if k < n:", at_once(n=7, COLS=8)),
    (SYSTEM, "(j & 1) * ROW", "0", at_once()),
    (SYSTEM, "put(pivot_row, values, left)\n            sync_warp()", "put(pivot_row, values, left)", at_once()),
    (SYSTEM, "label, is_left = j, False", "label = j", at_once()),
    (SYSTEM, "lane_of_row[label] = lane\n        sync_warp()", "lane_of_row[label] = lane", at_once()),
    (SMALL, "re * y + im * y_im", "re * y - im * y_im", at_once(letter="z")),
    (SMALL, "- re * y_im - im * y", "- re * y_im + im * y", at_once(letter="z")),
    (SYSTEM, "False, label > j", "False, label >= j", at_once()),
    (SYSTEM, "label == j, label < j", "label == j, label <= j", at_once()),
    (SYSTEM, "label == j, label < j", "False, label < j", at_once()),
    (SYSTEM, "while j > 0:", "while j > 1:", at_once()),
    (SYSTEM, "k == label", "k == label - 1", INVERSE),
    (SYSTEM, "if inverts:", "if not inverts:", INVERSE),
    (SYSTEM, "int32(lane_of_row[k]) if inverts else k", "k", INVERSE),
    (SYSTEM, "int32(j + 1) if inverts else columns", "int32(j + 1)", at_once(r=6)),
    (SYSTEM, "if label > j:", "if label >= j:", INVERSE),
    (SYSTEM, "while j < n - 1:", "while j < n - 2:", INVERSE),
    (SYSTEM, "sync_warp()\n            finish(", "finish(", INVERSE),
    (SYSTEM, "lanes)\n            sync_warp()", "lanes)", INVERSE),
    (SYSTEM, "k = int32(k + lanes)", "k = columns", at_once(n=3, r=6, COLS=8)),
    (SYSTEM, "re * other[u] + im", "re * other[u] - im", at_once(letter="z", r=0)),
    (SYSTEM, "re * other[u + 1] - im", "re * other[u + 1] + im", at_once(letter="c", r=0)),
    (SYSTEM, "block % shares * COLS", "0", SHARED),
    (SYSTEM, "first * b_cs", "0", SHARED),
    (SYSTEM, "first * x_cs", "0", SHARED),
    (SYSTEM, "int32(r - first)", "r", SHARED),
    (SYSTEM, "int32((t - lane) & (WARP - 1))", "int32(0)", at_once()),
    (SYSTEM, "label * x_rs", "lane * x_rs", at_once()),
    (SYSTEM, "lane * b_rs", "group * b_rs", at_once()),
    (SYSTEM, "find(real(1), label, is_zero", "find(real(lane), label, is_zero", at_once(test_lu_small.check_singular)),
    (SYSTEM, "int32(failed + 1)", "failed", at_once(test_lu_small.check_singular)),
    (SYSTEM, "matrix * stride_info", "matrix", at_once(test_lu_small.check_singular)),
    (SYSTEM, "n if is_here else 0, n, lane", "n, n, lane", at_once(batch=1)),
    (DETERMINANT, "-LIMIT), LIMIT))\n        factor = power(int32(-e))", "-9), 9))\n        factor = power(int32(-e))", ENDS),
    (DETERMINANT, "int32(state[0] + e)", "state[0]", LARGE),
    (DETERMINANT, "x * re - y * im, x * im + y * re", "x * re + y * im, x * im + y * re", determinants(dtype="D")),
    (DETERMINANT, "moved != (re < float64(0))", "moved", LARGE),
    (DETERMINANT, "moved != (re < float64(0))", "re < float64(0)", LARGE),
    (DETERMINANT, "INFINITE_ if is_infinite else NAN_", "INFINITE_", SPECIAL),
    (DETERMINANT, "bits = int32(bits | ZERO_)", "pass", SPECIAL),
    (DETERMINANT, "state[0] = shift[0]", "pass", LARGE),
    (DETERMINANT, "while half > 0:\n            cuda.syncthreads()", "while half > 0:", LARGE),
    (DETERMINANT, "int32(state[0] + words[other])", "state[0]", LARGE),
    (DETERMINANT, "(state[1] ^ bits) & SIGN", "(state[1] | bits) & SIGN", determinants(n=300, batch=9)),
    (DETERMINANT, "int32(half >> 1)", "0", LARGE),
    (DETERMINANT, "x * float64(0.5), k + float64(1)", "x * float64(0.5), k", LARGE),
    (DETERMINANT, "k * float64(1.9", "k * float64(0.0) * float64(1.9", determinants(test_determinant.ends, dtype="d")),
    (DETERMINANT, "is_nan = (bits & NAN_) != 0 or COMPLEX", "is_nan = False", SPECIAL),
    (DETERMINANT, "-3 * LIMIT), 3 * LIMIT", "-LIMIT), LIMIT", WIDE),
    (DETERMINANT, "if bits & SIGN:\n            product[0]", "if False:\n            product[0]", LARGE),
    (DETERMINANT, "if bits & SIGN:\n            re, im", "if False:\n            re, im", LARGE),
    (DETERMINANT, "re, im = float64(float(\"nan\")), float64(float(\"nan\"))", "pass", UNREAL),
    (DETERMINANT, "float64(-float(\"inf\")), float64(0)", "float64(0), float64(0)", SPECIAL),
    (DETERMINANT, "is_here = matrix < count", "is_here = True", determinants(n=5, batch=5)),
    (DETERMINANT, "matrix * stride_a * REALS", "matrix * REALS", LARGE),
    (DETERMINANT, "matrix * stride_piv", "0", LARGE),
    (DETERMINANT, "range(lane, n, lanes)", "range(lane, n, DIM)", determinants(n=4)),
    (DETERMINANT, "piv[int64(i) * piv_step]", "piv[i]", LARGE),
    (DETERMINANT, "at * WIDE", "at", determinants(dtype="f")),
    (COLUMN, "int32((j + 1) % 2)", "int32(0)", columns()),
    (COLUMN, "pivot // DIM % blocks", "pivot // DIM", columns(m=150, blocks=2)),
    (COLUMN, "int64(blocks) * DIM\n\n", "int64(m)\n\n", columns(m=150, blocks=2)),
    (COLUMN, "if i >= j:", "if True:", columns()),
    (COLUMN, "put_row(row, a_cs, top, j)", "pass", columns()),
    (COLUMN, "eliminate(row, top, pivot_row", "eliminate(row, row, pivot_row", columns(order="C")),
    (COLUMN, "copy_row(offset(leaves, blocks * (reals + 1))", "copy_row(offset(leaves, blocks * reals)", columns()),
    (COLUMN, "is_zero and info[0] == 0", "is_zero", Check("getrf_column", test_getrf_column.check_columns_of_zeros)),
    (COLUMN, "int32(first + pivot)", "pivot", columns(first=3, info=0)),
    (COLUMN, "first == 0:", "first == 1:", columns()),
    (COLUMN, "t < blocks and", "", columns(m=40, n=4)),
    (COLUMN, "pivot_row[j * REALS] == real(0) and", "", Check("getrf_column", column_of_real_numbers)),
    (COLUMN, "f * pivot[u + 1] - f_i * pivot[u]", "f * pivot[u + 1] + f_i * pivot[u]", columns(letter="c")),
    (COLUMN, "if re != real(0) or im != real(0):", "if True:", Check("getrf_column", test_getrf_column.check_columns_of_zeros)),
    (COLUMN, "i += int64(blocks)", "i += int64(blocks + 1)", columns(m=150, blocks=2)),
    (SWEEP, "j * LD + row if mirrored", "row * LD + j if mirrored", definite(r=2)),
    (SWEEP, "j * LD + lane if mirrored", "lane * LD + j if mirrored", definite()),
    (SOLVE, "-sign if mirrored", "sign if mirrored", definite("z")),
    (SOLVE, "unit or mirrored, mirrored", "unit, mirrored", definite()),
    (SOLVE, "if not mirrored:", "if True:", definite(n=14)),
    (SMALL, "else fast <= slow", "else fast < slow", definite(order="C")),
    (RESTORE, "== 0:", "== 3:", restored()),
    (RESTORE, "batch * stride_info", "batch", restored()),
    (RESTORE, "batch * stride_to * reals", "batch * stride_to", restored(letter="z")),
    (RESTORE, "range(reals)", "range(1)", restored(letter="c")),
    (RESTORE, "i * to_rs + j * to_cs", "i * from_rs + j * from_cs", restored()),
    (RESTORE, "int64(cuda.gridDim.x) * DIM", "int64(m) * n", restored(rows=70, columns=71)),
    (SOLVE, "is_here & (lane + s * WARP < n)", "is_here", solutions(order="C")),
    (SOLVE, "matrix * stride_info", "matrix", SINGLE),
    (SOLVE, "matrix * stride_from", "matrix * stride_b", definite()),
    (SOLVE, "if failed:\n            for", "if False:\n            for", SINGLE),
    (SOLVE, "if failed and not INVERTS:", "if False:", SEVERAL),
    (SWEEP, "if lane == j - p * WARP:", "if lane == j:", TALL),
    (SWEEP, "lane + s * WARP < j if backwards", "lane < j if backwards", TALL),
    (SWEEP, "(j & 1) * SLOT", "0", SEVERAL),
    (SWEEP, "sync_warp()\n                if divides:", "if divides:", SEVERAL),
    (SWEEP, "lane, sign)\n                    sync_warp()", "lane, sign)", SEVERAL),
    (SWEEP, "rows[(row * LD + LD - 1) * REALS] = real(NAN)", "pass", Check("getrs_small", test_lu_small.check_tiny_pivots)),
    (SOLVE, "int32(c if INVERTS", "int32(c + 1 if INVERTS", INVERTED),
    (SOLVE, "row >= c + q", "row > c + q", INVERTED),
    (SOLVE, "INVERTS and part == 1:", "INVERTS and part == 2:", inverted("c")),
    (SOLVE, "(row == c + q) & (part == 0)", "(row == c + q)", inverted("c")),
    (SOLVE, "not (failed & INVERTS)", "True", INVERTED),
    (SOLVE, "int32(first + 1)", "int32(first)", INVERTED),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
