"""LU factors on a device: backward errors, LAPACK's pivots, layouts, batches, what stays the same."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.linalg.lapack

from pyblasgpu import lapack, linalg
from pyblasgpu.database import FIXED
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES

from .lu_checks import check_factors, moved
from .precompile import sources_of
from .running import Placed

cupy = pytest.importorskip("cupy")


def random(letter, *shape, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if letter in "cz" else 0)
    return a.astype(DTYPES[letter].name)


def factor(letter, a, **options):
    """The factors of a CuPy array, on the host."""
    lu, piv, info = getattr(lapack, f"{letter}getrf")(a, **options)
    return lu.get(), cupy.asnumpy(piv), cupy.asnumpy(info)


SHAPES = [(1, 1), (5, 5), (64, 64), (65, 65), (100, 37), (37, 100), (257, 257), (512, 512), (513, 40),
          (1000, 1000), (2049, 300), (300, 2049), (20000, 33)]  # fmt: skip


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("m, n", SHAPES)
def test_factors(letter, m, n):
    for order in "FC":
        a = random(letter, m, n)
        lu, piv, info = factor(letter, cupy.array(a, order=order))
        assert info == 0
        check_factors(a, lu, piv)
        if letter in "dz" and m * n < 10**6:
            expected = getattr(scipy.linalg.lapack, f"{letter}getrf")(a)
            np.testing.assert_array_equal(piv, expected[1])


#: Shapes, and fields of panels: labels, rows, clusters of blocks, and other numbers of threads.
SEARCHED = [(200, 40), (700, 90), (4096, 32), (5000, 64), (9000, 64), (16000, 40)]
SEARCHES: tuple[dict[str, int], ...] = (
    {"CLUSTER": 0, "DIRECT": 4},
    {"CLUSTER": 0, "DIRECT": 16},
    {"CLUSTER": 16, "DIRECT": 0},
    {"CLUSTER": 8},
    {"ROWS": 256, "PER_THREAD": 2},
    {"CLUSTER": 0, "DIRECT": 0},
)


def searched(letter: str, a, fields: dict[str, int]) -> tuple[np.ndarray, ...]:
    """The factors with panels of these fields."""
    panel = FIXED["getrf_panel"].fixed_config(letter)
    if letter == "d" and len(a) > 4096:  # of which clusters of eight blocks have panels of 16 columns
        panel = replace(panel, COLS=16)
    with override("getrf_panel", replace(panel, **fields)):
        return factor(letter, a)


@pytest.fixture(scope="module")
def compiled(compile_once) -> None:
    calls = (
        partial(searched, letter, cupy.zeros(shape, DTYPES[letter].name), fields)
        for letter, shape, fields in product(DTYPES, SEARCHED, SEARCHES)
    )
    compile_once("getrf_panels", lambda: sources_of(calls))


@pytest.mark.slow
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("m, n", SEARCHED)
def test_the_searches_for_pivots_agree(compiled, letter, m, n):
    """Bits are the same by labels, by rows and in a cluster, on any number of blocks."""
    a = cupy.asarray(random(letter, m, n))
    first, *others = (searched(letter, a, fields) for fields in SEARCHES)
    for other in others:
        for one, two in zip(first, other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("m, n", [(1300, 1000), (900, 1000), (16000, 600), (29000, 300)])
def test_rows_move_by_whole_columns_or_by_groups(letter, m, n):
    """Bits are the same; columns fit shared memory, from some block on, or not."""
    a = cupy.asfortranarray(cupy.asarray(random(letter, m, n)))
    results = []
    for least in (0, 10**6):
        with override("lookahead", 256), deciding_by(getrf_permuted_min_order=least):
            results.append(factor(letter, a))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("letter", DTYPES)
def test_more_rows_than_threads(letter):
    """Beyond what is resident panels go by columns."""
    a = random(letter, 150_000, 40)
    lu, piv, info = factor(letter, cupy.asarray(a))
    assert info == 0
    check_factors(a, lu, piv)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", "CF")
def test_in_place_between_fences(letter, order):
    a = random(letter, 700, 90)
    placed = Placed(a.copy(), order, aligned=False)
    _, piv, _ = getattr(lapack, f"{letter}getrf")(placed.array, overwrite_a=1)
    check_factors(a, placed.fetch().copy(), cupy.asnumpy(piv))
    assert placed.unharmed()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [4, 8, 13, 32, 64, 100, 256])
def test_batches(letter, n):
    stack = random(letter, 9, n, n)
    stack[3, :, n // 2] = 0
    lu, piv, info = factor(letter, cupy.asarray(stack))
    assert list(info) == [n // 2 + 1 if z == 3 else 0 for z in range(9)]
    for z in (0, 1, 8):
        check_factors(stack[z], lu[z], piv[z])


def test_a_batch_of_matrices_of_several_blocks():
    stack = random("d", 3, 1100, 50)
    lu, piv, _ = factor("d", cupy.asarray(stack))
    for z in range(3):
        check_factors(stack[z], lu[z], piv[z])


@pytest.mark.parametrize("letter", "dc")
@pytest.mark.parametrize("n", [50, 1500])
def test_singular(letter, n):
    a = random(letter, n, n)
    a[:, n // 3] = a[:, n // 2] = 0
    lu, piv, info = factor(letter, cupy.asarray(a))
    assert info == n // 3 + 1
    check_factors(a, lu, piv)
    zero = np.zeros((n, n), a.dtype)
    lu, piv, info = factor(letter, cupy.asarray(zero))
    assert info == 1 and not lu.any() and np.array_equal(piv, np.arange(n))


def test_ties_go_to_the_uppermost_row():
    a = np.ones((3000, 3))
    a[1::2, 1], a[::3, 2] = -1, -1
    lu, piv, _ = factor("d", cupy.asarray(a))
    expected, pivots, _ = scipy.linalg.lapack.dgetrf(a)
    np.testing.assert_array_equal(piv, pivots)
    np.testing.assert_array_equal(lu, expected)


@pytest.mark.parametrize("n", [60, 1500])
def test_the_same_bits(n):
    a = cupy.asarray(random("d", n, n))
    first = factor("d", a)
    for _ in range(5):
        for one, other in zip(first, factor("d", a), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n, columns", [(1, 1), (60, 1), (300, 7), (1000, 200)])
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_solutions(letter, n, columns, trans):
    a, b = random(letter, n, n), random(letter, n, columns, seed=3)
    lu, piv, _ = getattr(lapack, f"{letter}getrf")(cupy.asarray(a))
    op = (a, a.T, a.conj().T)[trans]
    scale = 3 * n * np.finfo(a.dtype).eps * np.sqrt(8)
    for pivots in (piv, cupy.asnumpy(piv), cupy.asarray(piv), cupy.asarray(piv).astype(np.int64)):
        x, _ = getattr(lapack, f"{letter}getrs")(lu, pivots, cupy.array(b, order="FC"[trans % 2]), trans)
        x = x.get()
        lower, upper = abs(np.tril(lu.get(), -1)) + np.eye(n), abs(np.triu(lu.get()))
        size = (lower @ upper)[np.argsort(moved(cupy.asnumpy(piv), n))]
        size = (size if trans == 0 else size.T) @ abs(x)
        assert (abs(op @ x - b) <= scale * size + 1e-30).all()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    "n, columns, count",
    [
        (3, 1, 70000),
        (8, 4, 37),
        (12, 2, 33),
        (16, 5, 9),
        (32, 16, 3),
        (27, 1, 100),
        (40, 3, 600),
        (64, 1, 530),
    ],
)
@pytest.mark.parametrize("order", "CF")
def test_small_matrices(letter, n, columns, count, order):
    """Factors, pivots and solutions of stacks, several matrices a warp, in both orders."""
    a, b = random(letter, count, n, n), random(letter, count, n, columns, seed=3)
    matrices = cupy.asarray(a) if order == "C" else cupy.asarray(a.swapaxes(1, 2).copy()).swapaxes(1, 2)
    lu, piv, info = getattr(lapack, f"{letter}getrf")(matrices)
    pivots, factors = cupy.asnumpy(piv), lu.get()
    assert not cupy.asnumpy(info).any()
    for z in {0, count // 2, count - 1}:
        check_factors(a[z], factors[z], pivots[z])
    for trans, op in enumerate((a, a.swapaxes(1, 2), a.conj().swapaxes(1, 2))):
        x = getattr(lapack, f"{letter}getrs")(lu, piv, cupy.asarray(b), trans)[0].get()
        residual = abs(op @ x - b).max(axis=(1, 2))
        size = abs(a).max(axis=(1, 2)) * abs(x).max(axis=(1, 2))
        assert (residual <= 100 * n * n * np.finfo(a.dtype).eps * size).all()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    "n, columns, count",
    [
        (1, 3, 9),
        (4, 4, 20_000),
        (7, 2, 33),
        (8, 40, 500),
        (13, 1, 300),
        (16, 16, 77),
        (27, 5, 40),
        (32, 70, 9),
    ],
)
@pytest.mark.parametrize("order", "CF")
def test_small_systems_at_once(letter, n, columns, count, order):
    """Solutions and inverses of stacks in one launch, which leave A and B as they are."""
    a, b = random(letter, count, n, n), random(letter, count, n, columns, seed=3)
    matrices, right = (
        cupy.asarray(x) if order == "C" else cupy.asarray(x.swapaxes(1, 2).copy()).swapaxes(1, 2)
        for x in (a, b)
    )
    solution, inverse = linalg.solve(matrices, right).get(), linalg.inv(matrices).get()
    assert (matrices.get() == a).all() and (right.get() == b).all()
    for x, expected in ((solution, b), (inverse, np.broadcast_to(np.eye(n), a.shape))):
        residual = abs(a @ x - expected).max(axis=(1, 2))
        size = abs(a).max(axis=(1, 2)) * abs(x).max(axis=(1, 2))
        assert (residual <= 100 * n * n * np.finfo(a.dtype).eps * size).all()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [1, 60, 300, 1000])
def test_inverses(letter, n):
    a = random(letter, n, n) + np.eye(n, dtype=DTYPES[letter].name) * 4
    lu, piv, _ = getattr(lapack, f"{letter}getrf")(cupy.asarray(a))
    inverse, info = getattr(lapack, f"{letter}getri")(lu, piv)
    assert int(info) == 0
    inverse = inverse.get()
    error = abs(a @ inverse - np.eye(n)).max()
    assert error <= 100 * n * np.finfo(a.dtype).eps * abs(a).max() * abs(inverse).max()


@pytest.mark.parametrize("letter", DTYPES)
def test_gesv_of_a_batch(letter):
    a, b = random(letter, 7, 50, 50) + 4 * np.eye(50), random(letter, 7, 50, 3)
    a = a.astype(b.dtype)
    _, _, x, info = getattr(lapack, f"{letter}gesv")(cupy.asarray(a), cupy.asarray(b))
    assert not cupy.asnumpy(info).any()
    np.testing.assert_allclose(a @ x.get(), b, atol=1e-3 if letter in "sc" else 1e-11)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n, columns", [(20, 3), (300, 40)])
def test_right_hand_sides_of_singular_systems_stay(letter, n, columns):
    a, b = random(letter, 3, n, n), random(letter, 3, n, columns)
    a[1, :, 2] = 0
    _, _, x, info = getattr(lapack, f"{letter}gesv")(cupy.asarray(a), cupy.asarray(b))
    assert list(cupy.asnumpy(info)) == [0, 3, 0]
    np.testing.assert_array_equal(x.get()[1], b[1])
    definite = (a @ a.conj().swapaxes(1, 2) + n * np.eye(n)).astype(a.dtype)
    definite[1, 4, 4] = -5
    rhs = cupy.asarray(b)
    _, x, info = getattr(lapack, f"{letter}posv")(cupy.asarray(definite), rhs, 1, overwrite_b=1)
    assert list(cupy.asnumpy(info)) == [0, 5, 0]
    np.testing.assert_array_equal(x.get()[1], b[1])
    assert abs(definite[0] @ x.get()[0] - b[0]).max() < 1e-2


@pytest.mark.parametrize("routine", ["posv", "dposv", "gesv", "dgesv"])
def test_factors_are_not_written_over_the_right_hand_sides(routine):
    start = np.eye(40) * 40 + 1
    a = cupy.array(start, order="F")
    for _ in range(2):  # checked, then repeated
        *_, x, info = getattr(lapack, routine)(a, a[:, 10:30], overwrite_a=1)
        assert int(info) == 0
        np.testing.assert_allclose(x.get(), np.eye(40)[:, 10:30], atol=1e-14)
        np.testing.assert_array_equal(a.get(), start)


def test_interchanges():
    a, piv = random("d", 500, 300), np.random.default_rng(0).integers(0, 500, 200)
    for order in "CF":
        swapped = lapack.dlaswp(cupy.array(a, order=order), piv)
        np.testing.assert_array_equal(swapped.get(), a[moved(piv, 500)])
        np.testing.assert_array_equal(lapack.dlaswp(swapped, cupy.asarray(piv), inc=-1).get(), a)


def test_streams_side_by_side():
    """Panels of several streams, whose blocks wait for one another, at the same time."""
    stacks = [random("d", 6000, 64, seed=seed) for seed in range(8)]
    arrays = [cupy.asarray(a) for a in stacks]
    alone = [lapack.dgetrf(a) for a in arrays]
    cupy.cuda.Device().synchronize()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in arrays]
    actual = []
    for _ in range(3):
        for stream, a in zip(streams, arrays, strict=True):
            with stream:
                actual.append(lapack.dgetrf(a))
    cupy.cuda.Device().synchronize()
    for number, (lu, piv, _) in enumerate(actual):
        expected = alone[number % 8]
        assert (lu == expected[0]).all() and np.array_equal(cupy.asnumpy(piv), cupy.asnumpy(expected[1]))
