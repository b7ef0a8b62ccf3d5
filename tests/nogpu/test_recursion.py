"""The recursion of TRMM and TRSM: its schedule, and the views that make every variant one case."""

from __future__ import annotations

from itertools import pairwise, product

import fake_kernels
import numpy as np
import pytest
from covering import by_precision
from fake_routines import elements
from hypothesis import given
from hypothesis import strategies as st

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.frontend.calls.call import launch_list_of, routine
from pyblasgpu.kernels.trsm.fma import TrsmFma
from pyblasgpu.kernels.trsm.mma import TrsmMma
from pyblasgpu.operands import Operand
from pyblasgpu.routines import copies
from pyblasgpu.routines.level3 import trmm_by_levels
from pyblasgpu.routines.level3.triangular import Leaf, Update, on_left, schedule, split
from pyblasgpu.routines.level3.trmm_by_levels import blocks
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.reference import exact_triangular, integers, read_part, triangle
from pyblasgpu.types import DTYPES, Diag, Side, Uplo

trmm, trsm = routine("trmm"), routine("trsm")
orders, stops = st.integers(1, 5000), st.integers(1, 600)


@given(st.integers(2, 1 << 40))
def test_split_is_the_largest_power_of_two_below(n):
    half = split(n)
    assert half & (half - 1) == 0
    assert half < n <= 2 * half


@given(orders, stops)
def test_leaves_cover_the_rows_once_and_in_order(n, stop):
    leaves = [step for step in schedule(n, stop) if isinstance(step, Leaf)]
    assert leaves[0].first == 0 and leaves[-1].last == n
    assert all(before.last == after.first for before, after in pairwise(leaves))
    assert all(0 < leaf.last - leaf.first <= stop for leaf in leaves)


@given(orders, stops)
def test_updates_cover_the_blocks_below_the_leaves_once(n, stop):
    covered = np.zeros((n, n), np.int8) if n <= 600 else None
    area = 0
    for step in schedule(n, stop):
        first, last = step.first, step.last
        if isinstance(step, Leaf):
            area += (last - first) ** 2
        else:
            depth = step.middle - first
            assert depth & (depth - 1) == 0, "T21 begins at a power of two"
            area += 2 * (last - step.middle) * depth
            if covered is not None:
                covered[step.middle : last, first : step.middle] += 1
    assert area == n * n
    if covered is not None:
        assert covered.max(initial=0) <= 1 and not np.triu(covered).any()


@given(orders, stops)
def test_an_update_reads_solved_rows_and_writes_unsolved_ones(n, stop):
    solved = 0
    for step in schedule(n, stop):
        if isinstance(step, Leaf):
            assert step.first == solved
            solved = step.last
        else:
            assert step.first < step.middle == solved < step.last


@given(st.integers(1, 60), st.integers(1, 20), st.booleans())
def test_the_schedule_solves_and_in_reverse_multiplies(n, stop, in_reverse):
    rng = np.random.default_rng(n)
    t, x = np.tril(rng.integers(-1, 2, (n, n))), rng.integers(-3, 4, (n, 2))
    np.fill_diagonal(t, 1)
    b = x.copy() if in_reverse else t @ x
    expected = t @ x if in_reverse else x
    steps = list(schedule(n, stop))
    for step in reversed(steps) if in_reverse else steps:
        if isinstance(step, Update):
            change = t[step.middle : step.last, step.first : step.middle] @ b[step.first : step.middle]
            b[step.middle : step.last] += change if in_reverse else -change
            continue
        rows = slice(step.first, step.last)
        if in_reverse:
            b[rows] = t[rows, rows] @ b[rows]
        else:
            for row in range(step.first, step.last):
                b[row] -= t[row, step.first : row] @ b[step.first : row]
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("side, uplo", list(product(Side, Uplo)))
def test_every_variant_is_a_lower_triangle_on_the_left(side, uplo):
    case = TriangularCase(DTYPES["d"], 5, 4, side, uplo)
    rng = np.random.default_rng(1)
    a, b = read_part(triangle(rng, case), uplo, Diag.NON_UNIT), integers(rng, (5, 4), case.dtype)
    product_ = a @ b if side is Side.LEFT else b @ a
    t, x, *_ = on_left(
        fake_kernels.operand(a, case.dtype), fake_kernels.operand(b, case.dtype), side, uplo
    ).lower
    (lower,), (start,) = elements(t), elements(x)
    np.testing.assert_array_equal(lower, np.tril(lower))
    expected = lower @ start
    start[...] = expected  # through the view
    np.testing.assert_array_equal(b, product_)


@pytest.mark.parametrize("routine", [trmm, trsm])
@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("side, uplo, diag", list(product(Side, Uplo, Diag)))
def test_a_large_triangle(routine, letter, side, uplo, diag, monkeypatch):
    kernels = fake_kernels.install(monkeypatch)
    case = TriangularCase(DTYPES[letter], 170, 90, side, uplo, diag=diag, alpha=2)
    rng = np.random.default_rng(2)
    a, x = triangle(rng, case), integers(rng, (170, 90), case.dtype)
    # few entries off the diagonal, so that sums stay small enough to be exact
    a[rng.random(a.shape) < 0.9] *= 0
    diagonal = np.arange(case.order)
    a[diagonal, diagonal] = np.nan if diag is Diag.UNIT else 1
    given_, expected = x, exact_triangular(case, a, x)
    if routine is trsm:
        given_, expected = exact_triangular(case, a, x, alpha=1), 2 * x
    b = np.asfortranarray(given_)
    t = fake_kernels.operand(np.asfortranarray(a), case.dtype)
    with override(routine.__name__, 16):
        routine(2, t, fake_kernels.operand(b, case.dtype), 5, side=side, uplo=uplo, diag=diag)
    np.testing.assert_array_equal(b, expected)
    names = [name for name, _, _ in kernels.launches]
    leaves, products = (
        sum(name.startswith(stem) for name in names) for stem in (f"{routine.__name__}_", "gemm")
    )
    blocks = -(-case.order // 16)
    if routine is trsm:
        assert max(kernels.sizes, default=0) < 1 << 20, "substitution needs none, partial tiles little"
        assert (leaves, products) == (blocks, blocks - 1)
    else:
        # of 170 rows: ten whole leaves and a part of one; then five blocks of 16 rows, two of 32 and a part,
        # one of 64, a part of 128. Of 90: two blocks of 16 and a part, one of 32, a part of 64
        assert (leaves, names.count("copy_scaled")) == (2, 1)
        assert products == {170: 5, 90: 4}[case.order]
    assert {stream for *_, stream in kernels.launches} == {5}


@pytest.mark.parametrize(
    "config",
    [family(letter, ORDER=64, BLK=16, WARPS=1) for family in (TrsmMma, TrsmFma) for letter in "dz"],
    ids=lambda config: f"{config.STEM}-{config.dtype}",
)
def test_leaves_are_no_larger_than_their_kernel_takes(monkeypatch, config):
    kernels = fake_kernels.install(monkeypatch)
    case = TriangularCase(config.dtype_facts, 170, 9, Side.LEFT, Uplo.LOWER)
    rng = np.random.default_rng(0)
    a, x = triangle(rng, case), integers(rng, (170, 9), case.dtype)
    b, t = np.array(exact_triangular(case, a, x, alpha=1)), fake_kernels.operand(a, case.dtype)
    with override("trsm", 512), override(config.STEM, config):
        trsm(
            1, t, fake_kernels.operand(b, case.dtype), 0, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT
        )
    np.testing.assert_array_equal(b, x)
    names = [name for name, _, _ in kernels.launches]
    assert names.count(config.STEM) == 3 and len(names) == 5


@pytest.mark.parametrize(
    "letter, case",
    by_precision(
        [
            (1, 1, 1, 1),
            (32, 500, 1, 1),
            (33, 500, 1, 0),
            (31, 9, 7, 1),
            (64, 64, 65, 0),
            (64, 64, 66, 1),
            (64, 65, 33, 1),
            (100, 3, 150, 2),
            (256, 10, 150, 4),
            (300, 640, 7, 5),
            (513, 640, 7, 0),
        ]
    ),
)
def test_what_is_small_or_many_goes_to_the_kernel_of_small_triangles(monkeypatch, letter, case):
    """Where no file says which was faster."""
    n, rhs, batch, leaves = case
    monkeypatch.setattr("pyblasgpu.dispatch.algorithms.nearest_small_points", lambda *_: [])
    monkeypatch.setattr("pyblasgpu.dispatch.algorithms.nearest_points", lambda *_: [])
    kernels, dtype = fake_kernels.install(monkeypatch), DTYPES[letter]
    problem = TriangularCase(dtype, n, rhs)
    rng = np.random.default_rng(n)
    a, x = triangle(rng, problem), integers(rng, (batch, n, rhs), dtype)
    lower = np.tril(rng.random((n, n)) < 3 / n, -1)
    a = np.where(lower, a, 0) + np.where(np.eye(n), 1, 0)  # few entries, so that sums stay exact
    t = np.broadcast_to(a.astype(dtype.name), (batch, n, n)).copy()
    b = exact_triangular(problem, t, x, alpha=1)
    start, out = b.copy("K"), b  # of one alignment, on which copies depend
    options = {"side": Side.LEFT, "uplo": Uplo.LOWER, "diag": Diag.NON_UNIT}
    right = fake_kernels.operand(b, dtype)
    trsm(1, fake_kernels.operand(t, dtype), right, 0, **options)
    np.testing.assert_array_equal(b, x)
    names = [name for name, _, _ in kernels.launches]
    if leaves and n > 32 and letter in "cz":
        leaves *= 2
    assert names.count("trsm_small") == leaves
    is_copied = "trsm_small" not in names and names not in (["trsm_mma"], ["trsm_fma"])
    other = np.empty((batch, rhs, n), dtype.name).swapaxes(1, 2)
    for target in (out, other)[: 1 if n > 300 else 2]:
        kernels.launches.clear()
        target[...] = np.nan
        operands = [fake_kernels.operand(each, dtype) for each in (t, start, target)]
        launches = launch_list_of("trsm")(1, *operands, **options)
        launches.run([each.pointer for each in operands], 1, stream=0)
        np.testing.assert_array_equal(target, x)
        if target is out:
            done = [name for name, _, _ in kernels.launches]
            assert done == ["copy_scaled"] * is_copied + names
    if dtype.is_complex:  # a lazily conjugated right-hand side
        operands[1] = operands[1]._replace(conj=True)
        launch_list_of("trsm")(1, *operands, **options).run([each.pointer for each in operands], 1, stream=0)
        np.testing.assert_array_equal(target, np.linalg.solve(t, start.conj()).round())
    kernels.launches.clear()
    with override("trsm", 128):
        trsm(1, fake_kernels.operand(t, dtype), right, 0, **options)
    assert "trsm_small" not in [name for name, _, _ in kernels.launches]


# ------------------------------------------------------------------------------------------ TRMM by levels


@given(st.integers(1, 3000), st.integers(1, 300))
def test_levels_cover_what_is_below_the_leaves_once(n, stop):
    area, height = 0, stop
    for first, rows, count in blocks(n, stop, stop):
        area += count * rows * rows
        assert first + (count - 1) * stop + rows <= n
    while height < n:
        for first, rows, count in blocks(n, height, 2 * height):
            assert first % height == 0 and rows <= height and count >= 1
            assert first + (count - 1) * 2 * height + rows <= n
            area += 2 * count * rows * height
        height *= 2
    assert area == n * n


def multiplied(monkeypatch, letter="d", n=70, side=Side.LEFT, uplo=Uplo.LOWER, order="F", conj=False):
    """TRMM of 150 right-hand sides by fake kernels and leaves of 8, compared bit for bit; the kernels."""
    kernels = fake_kernels.install(monkeypatch)
    shape = (n, 150) if side is Side.LEFT else (150, n)
    case, rng = TriangularCase(DTYPES[letter], *shape, side, uplo, alpha=2), np.random.default_rng(n)
    a, x = triangle(rng, case), integers(rng, shape, case.dtype)
    b, t = np.array(x, order=order), fake_kernels.operand(np.asfortranarray(a), case.dtype, conj)
    with override("trmm", 8):
        trmm(2, t, fake_kernels.operand(b, case.dtype), 5, side=side, uplo=uplo, diag=Diag.NON_UNIT)
    np.testing.assert_array_equal(b, exact_triangular(case, a.conj() if conj else a, x))
    return kernels


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("side, uplo", list(product(Side, Uplo)))
def test_levels_work_on_panels_of_columns(monkeypatch, side, uplo, order):
    monkeypatch.setattr(copies, "MOST_COPIED", 64 * 70 * 8)
    kernels = multiplied(monkeypatch, side=side, uplo=uplo, order=order)
    names = [name for name, _, _ in kernels.launches]
    assert names.count("copy_scaled") == 3, "panels of 64, 64 and 22 columns"
    assert kernels.sizes == [64 * 70 * 8]


@pytest.mark.parametrize("order, batch", [("CF", 1), ("FC", 1), ("CC", 3)])
@pytest.mark.parametrize("side, uplo", list(product(Side, Uplo)))
def test_levels_into_another_matrix_copy_nothing(monkeypatch, side, uplo, order, batch):
    """Triangles have any order, and B and the result either order in memory."""
    kernels, dtype = fake_kernels.install(monkeypatch), DTYPES["z"]
    monkeypatch.setattr(trmm_by_levels, "LARGEST", 32)
    shape, rng = (70, 15) if side is Side.LEFT else (15, 70), np.random.default_rng(7)
    case = TriangularCase(dtype, *shape, side, uplo, alpha=2)
    t, x = triangle(rng, case, batch_shape=(batch,)), integers(rng, (batch, *shape), dtype)
    b, out = (
        np.array(each, order=which) for each, which in zip((x, np.full_like(x, np.nan)), order, strict=True)
    )
    operands = [fake_kernels.operand(each, dtype) for each in (t, b, out)]
    with override("trmm", 8):
        launches = launch_list_of("trmm")(2, *operands, side=side, uplo=uplo, diag=Diag.NON_UNIT)
        launches.run([each.pointer for each in operands], 2, stream=0)
    np.testing.assert_array_equal(out, exact_triangular(case, t, x))
    assert np.array_equal(b, x) and "copy_scaled" not in [name for name, _, _ in kernels.launches]


@pytest.mark.parametrize("uplo", Uplo)
def test_beyond_the_largest_the_recursion_leads_to_levels(monkeypatch, uplo):
    monkeypatch.setattr(trmm_by_levels, "LARGEST", 32)
    kernels = multiplied(monkeypatch, uplo=uplo, n=75)
    assert [name for name, _, _ in kernels.launches].count("copy_scaled") == 3, "32, 32 and 11 rows"
    assert kernels.sizes == [32 * 150 * 8]


def test_levels_of_a_conjugated_triangle(monkeypatch):
    multiplied(monkeypatch, "z", conj=True, order="C")


def test_a_single_leaf_copies_nothing(monkeypatch):
    kernels = multiplied(monkeypatch, n=8)
    assert [name for name, _, _ in kernels.launches] == ["trmm_leaf"] and not kernels.sizes


@pytest.mark.parametrize("side, uplo", list(product(Side, Uplo)))
def test_the_recursion_needs_no_copy(monkeypatch, side, uplo):
    """KBLAS's own, which levels replace: in place, and slower."""
    with override("workspace", 0):
        kernels = multiplied(monkeypatch, side=side, uplo=uplo)
    names = [name for name, _, _ in kernels.launches]
    assert names.count("trmm_leaf") == 9 and "copy_scaled" not in names and not kernels.sizes


def test_the_copy_stays_small(monkeypatch):
    """Whatever B is, no more than 32 MB of it are copied at a time, and not less than 64 columns."""
    for n, r in ((4096, 50_000), (300, 10**6), (4096, 64), (1 << 20, 64)):
        b = Operand(0, n, r, 1, n, DTYPES["z"])
        rows = min(n, trmm_by_levels.LARGEST)
        assert rows * trmm_by_levels.panel_columns(b, rows) * 16 <= copies.MOST_COPIED


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("routine", ["trsm", "trmm"])
def test_the_workspace_is_bounded(monkeypatch, routine, letter):
    """32 MiB, or a twentieth of B; wherever columns begin, though products would rather be packed there."""
    fake_kernels.install(monkeypatch)
    dtype, largest = DTYPES[letter], 0

    def dense(rows, cols, lead, batch):
        return Operand(0, rows, cols, 1, lead, dtype, False, batch, lead * cols)

    sizes = (
        (4096, 4096, 0, 1),
        (4097, 4096, 0, 1),
        (8192, 8192, 1, 1),
        (8192, 512, 1, 1),
        (20000, 20000, 0, 1),
    )
    for n, rhs, apart, batch in (*sizes, (1000, 1000, 1, 9)):
        operands = dense(n, n, n + apart, batch), dense(n, rhs, n + apart, batch)
        launches = launch_list_of(routine)(1, *operands, **LEFT)
        assert launches.workspace_bytes <= max(32 << 20, batch * n * rhs * dtype.itemsize // 20), (n, rhs)
        largest = max(largest, launches.workspace_bytes)
        with override("workspace", 0):
            launches = launch_list_of(routine)(1, *operands, **LEFT)
            assert launches.workspace_bytes == 0, (n, rhs)
    assert largest > 0


LEFT = {"side": Side.LEFT, "uplo": Uplo.LOWER, "diag": Diag.NON_UNIT}
#: Routines of stacks: scalars (numbers), info (an int32 a matrix) and square matrices, and flags.
OF_STACKS = {
    "trmm": ((2, "a", "b"), LEFT),
    "trsm": ((2, "a", "b"), LEFT),
    "syrk": ((2, "a", 3, "b"), {"uplo": Uplo.LOWER, "hermitian": False, "is_new_output": False}),
    "potrf": (("info", "a"), {"uplo": Uplo.LOWER, "clean": True}),
    "potrs": (("a", "b"), {"uplo": Uplo.LOWER}),
    "potri": (("info", "a"), {"uplo": Uplo.LOWER}),
}


@pytest.mark.parametrize("n", [32, 512])
@pytest.mark.parametrize("stem", OF_STACKS)
def test_the_launches_of_a_stack_do_not_count_its_matrices(monkeypatch, stem, n):
    fake_kernels.install(monkeypatch)
    monkeypatch.setattr(copies, "MOST_COPIED", 1 << 40)  # else scratch is for a portion at a time
    arguments, flags = OF_STACKS[stem]

    def launches(batch: int) -> int:
        square = Operand(1 << 20, n, n, 1, n, DTYPES["d"], False, batch, n * n)
        info = square._replace(rows=1, cols=1, col_stride=1, batch_stride=1)
        operands = [x if isinstance(x, int) else info if x == "info" else square for x in arguments]
        return len(launch_list_of(stem)(*operands, **flags).entries)

    assert launches(64) == launches(1000)
