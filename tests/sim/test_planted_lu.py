"""Defects planted in the kernels of LU factors, one at a time: the checks must catch every one."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.gpu.simulator import intrinsics as simulator

from . import test_getrf_panel, test_lu_solve
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def panel(letter="d", m=140, n=7, seeds=2, **options) -> Check:
    """A panel of several blocks, in some orders of them."""

    def run(module):
        for seed in range(seeds):
            simulator.reseed(seed)
            test_getrf_panel.check(letter, m, n, kernels=module, **options)

    return Check("getrf_panel", run)


@one_each
def beside(letter="d", m=140, cluster=4, **options) -> Check:
    """A panel of a cluster, with columns beside it."""
    check = test_getrf_panel.check_beside
    return Check("getrf_panel", lambda module: check(letter, m, kernels=module, cluster=cluster, **options))


def no_number_beside(module) -> None:
    test_getrf_panel.no_number_beside(module)


def first_zero(module) -> None:
    info, a = np.zeros(1, np.int32), np.zeros((80, 3))
    a[:, 0] = 1
    test_getrf_panel.factor(a, first=8, info=info, kernels=module)
    assert info[0] == 10


def stays(module) -> None:
    info, a = np.array([5], np.int32), np.zeros((80, 3))
    test_getrf_panel.factor(a, first=8, info=info, kernels=module)
    assert info[0] == 5


def only_row_of_a_block(module) -> None:
    """The only row of the last block is the first pivot; then it has no candidate."""
    a = test_getrf_panel.random("d", 65, 4)
    a[-1, 0], a[:, 1] = 5, a[:, 1] / 100
    a[0, 1] = 1
    _, piv, _ = test_getrf_panel.lapack.dgetrf(a)
    assert np.array_equal(test_getrf_panel.factor(a, kernels=module)[0], piv)


def only_row_of_a_block_by_rows(module) -> None:
    """Plant `only_row_of_a_block`, of two warps or of two blocks."""
    for m, rows in ((33, 64), (65, 64)):
        a = test_getrf_panel.random("d", m, 4)
        a[-1, 0], a[:, 1] = 5, a[:, 1] / 100
        a[0, 1] = 1
        _, piv, _ = test_getrf_panel.lapack.dgetrf(a)
        results = test_getrf_panel.factor(a, rows=rows, direct=2, kernels=module)
        assert np.array_equal(results[0], piv)


def real_numbers(module) -> None:
    """Complex ones without imaginary parts."""
    a = test_getrf_panel.random("d", 20, 4).astype(complex)
    lu, _, _ = test_getrf_panel.lapack.zgetrf(a)
    test_getrf_panel.factor(a, kernels=module)
    np.testing.assert_allclose(a, lu, atol=1e-13)


def not_a_number(module) -> None:
    """The first row of NaN is the pivot, in whichever block it is."""
    for rows in ([5, 75], [70, 75]):
        a = test_getrf_panel.random("d", 80, 4)
        a[rows, 0] = np.nan
        piv, _, _ = test_getrf_panel.factor(a, kernels=module)
        assert piv[0] == rows[0]


def not_a_number_of_two(module) -> None:
    """Both rows of a thread are NaN: the first one is the pivot, or the second one where it is the only one."""
    for rows, pivot in (([5, 37], 5), ([37], 37)):
        a = test_getrf_panel.random("d", 80, 4)
        a[rows, 0] = np.nan
        assert test_getrf_panel.factor(a, kernels=module, **test_getrf_panel.TWO_ROWS)[0][0] == pivot


def both_rows(module) -> None:
    """Both rows of a thread are pivots, one after the other."""
    a = test_getrf_panel.random("d", 80, 4)
    a[5, 0], a[37, 1] = 5, 50
    _, piv, _ = test_getrf_panel.lapack.dgetrf(a)
    assert np.array_equal(test_getrf_panel.factor(a, kernels=module, **test_getrf_panel.TWO_ROWS)[0], piv)


def zeros(module) -> None:
    """A column of zeros after a second row was the pivot."""
    a = test_getrf_panel.random("d", 80, 4)
    a[37, 0], a[:, 1] = 5, 0
    piv, _, _ = test_getrf_panel.factor(a, kernels=module, **test_getrf_panel.TWO_ROWS)
    assert list(piv[:2]) == [37, 1]


def ties(module) -> None:
    """Equal candidates of a thread."""
    piv, _, _ = test_getrf_panel.factor(np.ones((64, 1)), kernels=module, **test_getrf_panel.TWO_ROWS)
    assert piv[0] == 0


@one_each
def swaps(**options) -> Check:
    """Rows interchanged as random pivots say."""
    return Check("laswp", lambda module: test_lu_solve.check(kernels=module, **options))


@one_each
def moves(**options) -> Check:
    return Check("pivot_moves", lambda module: test_lu_solve.check(movers=module, **options))


@one_each
def order(**options) -> Check:
    return Check("pivot_order", lambda module: test_lu_solve.check_permuted(orders=module, **options))


@one_each
def columns(**options) -> Check:
    return Check("permute_rows", lambda module: test_lu_solve.check_permuted(kernels=module, **options))


ONE, SEVERAL, BATCH = panel(m=30), panel(), Check("getrf_panel", test_getrf_panel.check_batch)
DIRECT, LABELLED, WARPS = panel(direct=4), panel(direct=1), panel(m=60, n=8, rows=64, direct=4)
CLUSTERS, TWO_ROWS = panel(cluster=4), panel(**test_getrf_panel.TWO_ROWS)
PANEL, ROWS, EXCHANGE, ROW_EXCHANGE, CLUSTER, BESIDE, LASWP, MOVES, ORDER, COLUMNS = (
    f"factor.lu.{name}"
    for name in (
        "getrf_panel",
        "panel_rows",
        "pivot_exchange",
        "row_exchange",
        "cluster_exchange",
        "outside_columns",
        "laswp",
        "pivot_moves",
        "pivot_order",
        "permute_rows",
    )
)

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    (PANEL, "ok & (k < n)", "ok", ONE),
    (ROWS, "values[ROW_REALS + part] = values[part]", "pass", ONE),
    (PANEL, "if label == j:", "if False:", ONE),
    (PANEL, "label, is_left, done = j, False, j", "label, done = j, j", ONE),
    (PANEL, "label, is_left, done = j, False, j", "is_left, done = False, j", ONE),
    (PANEL, "label, is_left, done = j, False, j", "label, is_left = j, False", ONE),
    (EXCHANGE, "chosen[0] = pivot\n        wait()", "chosen[0] = pivot", ONE),
    (EXCHANGE, "elif t == 0 and pivot == NO_LABEL:", "elif False:", Check("getrf_panel", only_row_of_a_block)),
    (PANEL, "int32(first + pivot)", "int32(pivot)", panel(first=3, info=np.zeros(1, np.int32))),
    (PANEL, "first + j + 1", "first + j", Check("getrf_panel", first_zero)),
    (PANEL, "and info[batch * stride_info] == 0", "", Check("getrf_panel", stays)),
    (PANEL, "and failed == 0", "", Check("getrf_panel", first_zero)),
    (PANEL, "moves[label] = int32(row)", "pass", ONE),
    (PANEL, "moves[COLS + row] = label", "pass", ONE),
    (ROWS, "if pivot != real(0) or", "if", Check("getrf_panel", real_numbers)),
    (ROWS, "left <= columns", "left <= columns + 2", panel(m=30, n=8)),
    (PANEL, "t - 1 if t > 0 else COLS - 1", "t", ONE),
    (PANEL, "if t < count:", "if t <= count:", panel(m=30, n=4)),
    (PANEL, "pivot_row, a_cs, t, left)", "pivot_row, a_cs, t, n)", panel(m=30, n=4)),
    (ROWS, "abs(values[0]) + abs(values[1])", "abs(values[0])", panel("z", 30)),
    (PANEL, "batch * stride_a * REALS", "batch * REALS", BATCH),
    (PANEL, "label, is_left, done = j, False, j", "label, done = j, j", Check("getrf_panel", zeros)),
    (PANEL, "out, t_2, left", "out, t, left", TWO_ROWS),
    (PANEL, "other, other_done, n, t_2", "other, done, n, t_2", TWO_ROWS),
    (PANEL, "other, other_done, n, t_2", "other, other_done, n, t", TWO_ROWS),
    (PANEL, "if TWO and is_other:", "if False:", TWO_ROWS),
    (PANEL, "take(others, a, row + THREADS,", "take(others, a, row,", TWO_ROWS),
    (ROW_EXCHANGE, "(second > size) |", "(second < size) |", TWO_ROWS),
    (ROW_EXCHANGE, "(other < label)", "(other > label)", Check("getrf_panel", ties)),
    (ROW_EXCHANGE, "((second != second) & (size == size))", "(second != second)", Check("getrf_panel", not_a_number_of_two)),
    (ROW_EXCHANGE, "(not is_left) |", "", TWO_ROWS),
    (ROW_EXCHANGE, "put(there, others, COLS)", "put(there, values, COLS)", TWO_ROWS),
    (ROW_EXCHANGE, "is_left | other_left, is_second", "is_left, is_second", Check("getrf_panel", both_rows)),
    (BESIDE, "        if IS_CLUSTER and blocks > 1:\n            cluster_sync()\n", "", beside()),
    (BESIDE, "column - left + n)", "column - left)", beside(m=30)),
    (BESIDE, "ok & (target >= n)", "ok", beside(m=30)),
    (BESIDE, "ok & (target >= n)", "ok & (target > n)", beside(m=9)),
    (BESIDE, "(c + u * step < end) & (lane < n)\n        for part in range(REALS):\n            store", "lane < n\n        for part in range(REALS):\n            store", beside(m=30)),
    (BESIDE, "& (c + u * step >= left)", "", beside(m=30)),
    (BESIDE, "is_below = (lane > k) &", "is_below = (lane >= 0) &", Check("getrf_panel", no_number_beside)),
    (BESIDE, "- values[IM] * y\n", "+ values[IM] * y\n", beside("z", 30)),
    (BESIDE, "c + AT_ONCE * step", "c + step", beside(m=30, right=20)),
    (BESIDE, "moves[COLS + known]", "moves[known]", beside(m=9)),
    (PANEL, "offset(piv, batch * stride_piv)", "piv", BATCH),
    (PANEL, "finish(flags, offset(words, TOLD), t, blocks)", "pass", SEVERAL),
    (PANEL, "offset(words, TOLD)", "offset(words, TOLD + 4)", SEVERAL),
    (EXCHANGE, "sizes[warp], labels[warp] = size, largest\n            cuda.syncthreads()",
     "sizes[warp], labels[warp] = size, largest", panel(m=60, rows=64)),
    (EXCHANGE, "| ((lane == 0) & (largest == NO_LABEL))", "", panel(m=30, rows=64)),
    (EXCHANGE, "else:\n            sync_warp()", "else:\n            pass", ONE),
    (EXCHANGE, "step % 2 * blocks", "0", SEVERAL),
    (EXCHANGE, "int32(step + 1)", "int32(1)", SEVERAL),
    (EXCHANGE, "largest_label != NO_LABEL)\n        sync_warp()", "largest_label != NO_LABEL)", SEVERAL),
    (EXCHANGE, "pivot, slot\n        sync_warp()", "pivot, slot", SEVERAL),
    (EXCHANGE, "size if lane == SIZE", "real(1) if lane == SIZE", SEVERAL),
    (EXCHANGE, "-1 if label == NO_LABEL else label", "label % 1000", Check("getrf_panel", only_row_of_a_block)),
    (EXCHANGE, "real_size // 2\n    int32, atomic_add", "real_size // 4\n    int32, atomic_add", SEVERAL),
    (EXCHANGE, "store_relaxed(flags, DONE, int32(0))", "pass", SEVERAL),
    (EXCHANGE, "cuda.syncthreads()\n        if is_last[0]", "if is_last[0]", SEVERAL),
    (ROW_EXCHANGE, "turn * WARPS", "0", WARPS),
    (ROW_EXCHANGE, "first + warp] = NO_LABEL\n        cuda.syncthreads()", "first + warp] = NO_LABEL", WARPS),
    (ROW_EXCHANGE, "return int32(first + which), pivot", "return int32(which), pivot", WARPS),
    (ROW_EXCHANGE, "ok & (label != NO_LABEL)", "ok", Check("getrf_panel", only_row_of_a_block_by_rows)),
    (ROW_EXCHANGE, "return which, int32(shuffle(label, which))", "return int32(1), int32(shuffle(label, which))", WARPS),
    (ROW_EXCHANGE, "elif best < 0 and lane == 0:", "elif False:",
     Check("getrf_panel", only_row_of_a_block_by_rows)),
    (ROW_EXCHANGE, "int32(-1) if pivot == NO_LABEL else pivot", "pivot % 1000", Check("getrf_panel", only_row_of_a_block_by_rows)),
    (ROW_EXCHANGE, "step % 2 * blocks", "0", DIRECT),
    (ROW_EXCHANGE, "int32(step + 1)", "int32(1)", DIRECT),
    (ROW_EXCHANGE, "blocks,\n                tag,\n            )\n            cuda.syncthreads()", "blocks, tag)", DIRECT),
    (ROW_EXCHANGE, "AREA + (RECEIVED + which) * REALS", "AREA + RECEIVED * REALS", DIRECT),
    (ROW_EXCHANGE, "rows[other * REALS + k]", "rows[k]", DIRECT),
    (ROW_EXCHANGE, "sizes[other] = got[1]", "sizes[other] = real(1)", DIRECT),
    (ROW_EXCHANGE, "while other < blocks:", "while other < min(blocks, WARPS):", panel(m=257, direct=8)),
    (ROW_EXCHANGE, "chosen[0] = pivot\n            sync_warp()", "chosen[0] = pivot", LABELLED),
    (ROW_EXCHANGE, "lane, block, blocks, step)\n        cuda.syncthreads()", "lane, block, blocks, step)", LABELLED),
    (ROW_EXCHANGE, "offset(sizes, which), got", "sizes, got", LABELLED),
    (CLUSTER, "turn * SLOTS * MESSAGE", "0", CLUSTERS),
    (CLUSTER, "+ 8 * turn)", ")", CLUSTERS),
    (CLUSTER, "(step >> 1) & 1", "0", CLUSTERS),
    (CLUSTER, "cluster_sync()\n\n    return", "pass\n\n    return", CLUSTERS),
    (CLUSTER, "init_fence()\n", "pass\n", CLUSTERS),
    (CLUSTER, "blocks * NBYTES", "NBYTES", CLUSTERS),
    (CLUSTER, "wait(mbarrier, int32", "int32(0), (int32", CLUSTERS),
    (CLUSTER, "+ block * MESSAGE))", "))", CLUSTERS),
    (CLUSTER, "first + min(lane, blocks - 1) * MESSAGE + REALS", "first + min(lane, 0) * MESSAGE + REALS", CLUSTERS),
    (CLUSTER, "first + which * MESSAGE", "first", CLUSTERS),
    (CLUSTER, "shared[SIZES + which]", "shared[SIZES]", CLUSTERS),
    (CLUSTER, "block = int32(block + WARPS)", "block = blocks", CLUSTERS),
    (CLUSTER, "words[(at + 1) * WORDS]", "words[at * WORDS]", CLUSTERS),
    (LASWP, "row < rows) & (col < cols), column(col, skip, skipped, a_cs)\n        known", "row < rows) & (col <= cols), column(col, skip, skipped, a_cs)\n        known", swaps()),
    (LASWP, "col + skipped if col >= skip else col", "col", swaps(skip=(3, 5))),
    (LASWP, "col >= skip", "col > skip", swaps(skip=(3, 5))),
    (LASWP, "(target < 0) | (target >= rows)", "target >= rows", swaps(base=9)),
    (LASWP, "(target < 0) | (target >= rows)", "target > rows", swaps(m=23, count=5)),
    (LASWP, "groups - 1 - number if backwards else number", "number", swaps(backwards=True)),
    (LASWP, "to_top, from_top = from_top, to_top", "pass", swaps(backwards=True)),
    (LASWP, "last if which == groups - 1 else group", "group", swaps()),
    (LASWP, "i_step, c, c_step, rows, n, skip, skipped, a_rs, a_cs)\n            cuda.syncthreads()\n\n    return",
     "i_step, c, c_step, rows, n, skip, skipped, a_rs, a_cs)\n\n    return", swaps(count=40)),
    (LASWP, "int32(DIM // cols), int32(0)", "int32(0), int32(0)", swaps(order="C")),
    (MOVES, "pivots[t] = int32(piv[t * step] - base - first)\n        cuda.syncthreads()",
     "pivots[t] = int32(piv[t * step] - base - first)", moves()),
    (MOVES, "piv[t * step] - base - first", "piv[t * step] - base", moves()),
    (MOVES, "piv[t * step] - base - first", "piv[t * step] - first", moves(base=9)),
    (MOVES, "row < 0 or row >= here", "row >= here", moves(base=9)),
    (MOVES, "elif label == pivot:", "elif False:", moves()),
    (MOVES, "follows and label >= 0 and label < here", "label >= 0 and label < here", moves()),
    (ORDER, "cuda.syncthreads()\n            shared[t]", "shared[t]", order()),
    (ORDER, "else first + t)\n            cuda.syncthreads()", "else first + t)", order()),
    (ORDER, "else first + t)", "else 0)", order()),
    (ORDER, "(first + t) * step] - base", "(first + t) * step]", order()),
    (ORDER, "parts - 1 - part", "part", order()),
    (ORDER, "top + (AT_ONCE - 1) - u", "top + u", order()),
    (ORDER, "elif origin[0] == pivot:", "elif False:", order()),
    (ORDER, "row >= first and row < rows", "row < rows", order(block=5)),
    (ORDER, "+ row - first]", "+ row]", order(block=5)),
    (ORDER, "int32(origin[0] - first)", "int32(origin[0])", order(block=5)),
    (ORDER, "self.DIM if every >= count else gcd(self.DIM, every)", "self.DIM", order(block=5)),
    (COLUMNS, "at + u * DIM < reals)\n", "True)\n", columns()),
    (COLUMNS, "shared[origin], i < reals", "shared[origin], True", columns()),
    (COLUMNS, "        cuda.syncthreads()\n\n        # (2)", "\n        # (2)", columns()),
    (COLUMNS, "int32(min(n - first, columns))", "columns", columns()),
    (COLUMNS, "c // block + 1", "c // block", columns(block=5)),
    (COLUMNS, "int64(top // block) * m", "int64(top // block - 1) * m", columns(block=5)),
    (COLUMNS, "(i & shift)", "0", columns(letter="z", m=20, n=3, count=9)),
    (COLUMNS, "rows[u] << shift", "rows[u]", columns(letter="z", m=20, n=3, count=9)),
    (COLUMNS, "at = int32(at + STEP)\n        cuda", "at = reals\n        cuda", columns(m=600, n=2)),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)


def test_what_is_no_number_is_a_pivot():
    not_a_number(test_getrf_panel.getrf_panel)
