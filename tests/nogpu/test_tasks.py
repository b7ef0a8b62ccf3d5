"""Tile algorithms as lists of tasks: results in random valid orders, what is finished, the cost."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from tile_leaves import mirrored, op, random_order, run_in_random_order, triangle

from pyblasgpu import tasks
from pyblasgpu.tasks import Grid, Tile, TileLeaf, cut
from pyblasgpu.types import Diag, Side, Trans, Uplo

CUTS = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
SEEDS = st.integers(0, 2**16)
SIDES, UPLOS, OPS, DIAGS = (st.sampled_from(list(flag)) for flag in (Side, Uplo, Trans, Diag))
SCALARS = st.sampled_from([0, 1, -2, 0.5 + 1j])


def random(seed: int, rows: int, cols: int) -> np.ndarray:
    rng = np.random.default_rng((seed, rows, cols))
    return rng.uniform(-1, 1, (rows, cols)) + 1j * rng.uniform(-1, 1, (rows, cols))


def dominant(seed: int, order: int) -> np.ndarray:
    """A matrix both triangles of which are well conditioned, and the unit ones too."""
    return random(seed, order, order) / order + 2 * np.eye(order)


def hidden(a: np.ndarray, uplo: Uplo, diag: Diag = Diag.NON_UNIT) -> np.ndarray:
    """`a` with NaN in what is not read of its triangle."""
    unread = triangle(np.ones(a.shape), uplo) == 0
    if diag is Diag.UNIT:
        unread |= np.eye(len(a), dtype=bool)
    return np.where(unread, np.nan, a)


def outside_tiles(grid: Grid, uplo: Uplo) -> np.ndarray:
    """Where the tiles of the other triangle are."""
    offsets = grid.row_offsets
    blocks = np.searchsorted(offsets[1:], np.arange(offsets[-1]), side="right")
    return blocks[:, None] < blocks if uplo is Uplo.LOWER else blocks[:, None] > blocks


@given(CUTS, CUTS, CUTS, OPS, OPS, SCALARS, SCALARS, SEEDS)
def test_gemm(m, n, k, trans_a, trans_b, alpha, beta, seed):
    what = tasks.gemm(m, n, k, trans_a, trans_b, alpha, beta)
    a, b = (random(seed, *what.grids[name].shape) for name in "ab")
    c = random(seed, sum(m), sum(n))
    expected = alpha * op(a, trans_a) @ op(b, trans_b) + beta * c
    got = c if beta else np.full_like(c, np.nan)
    run_in_random_order(what, {"a": a, "b": b, "c": got}, seed)
    np.testing.assert_allclose(got, expected, atol=1e-12)


@given(CUTS, CUTS, UPLOS, st.booleans(), st.booleans(), SEEDS)
def test_syrk(n, k, uplo, transposed, hermitian, seed):
    other = Trans.CONJ if hermitian else Trans.TRANS
    what = tasks.syrk(n, k, uplo, other if transposed else Trans.NO, 2, -1, hermitian)
    a = random(seed, *what.grids["a"].shape)
    c = mirrored(random(seed, sum(n), sum(n)), uplo, hermitian)
    np.fill_diagonal(c, c.diagonal().real)
    expected = 2 * (op(a, other) @ a if transposed else a @ op(a, other)) - c
    got = np.array(hidden(c, uplo))
    run_in_random_order(what, {"a": a, "c": got}, seed)
    inside = triangle(np.ones(c.shape), uplo) != 0
    np.testing.assert_allclose(got[inside], expected[inside], atol=1e-12)
    assert np.isnan(got[~inside]).all()


@given(CUTS, CUTS, SIDES, UPLOS, st.booleans(), SEEDS)
def test_symm(m, n, side, uplo, hermitian, seed):
    what = tasks.symm(m, n, side, uplo, 0.5 + 1j, 2, hermitian)
    order = sum(m if side is Side.LEFT else n)
    a, b, c = random(seed, order, order), random(seed, sum(m), sum(n)), random(seed + 1, sum(m), sum(n))
    whole = mirrored(a, uplo, hermitian)
    expected = (0.5 + 1j) * (whole @ b if side is Side.LEFT else b @ whole) + 2 * c
    a[outside_tiles(what.grids["a"], uplo)] = np.nan
    run_in_random_order(what, {"a": a, "b": b, "c": c}, seed)
    np.testing.assert_allclose(c, expected, atol=1e-12)


@given(CUTS, CUTS, SIDES, UPLOS, OPS, DIAGS, SCALARS, SEEDS)
def test_trmm(m, n, side, uplo, trans, diag, alpha, seed):
    what = tasks.trmm(m, n, side, uplo, trans, diag, alpha)
    a, b = dominant(seed, what.grids["a"].shape[0]), random(seed, sum(m), sum(n))
    t = op(triangle(a, uplo, diag), trans)
    expected = alpha * (t @ b if side is Side.LEFT else b @ t)
    a[outside_tiles(what.grids["a"], uplo)] = np.nan
    run_in_random_order(what, {"a": a, "b": b}, seed)
    np.testing.assert_allclose(b, expected, atol=1e-12)


@given(CUTS, CUTS, SIDES, UPLOS, OPS, DIAGS, SCALARS, SEEDS)
def test_trsm(m, n, side, uplo, trans, diag, alpha, seed):
    what = tasks.trsm(m, n, side, uplo, trans, diag, alpha)
    a, b = dominant(seed, what.grids["a"].shape[0]), random(seed, sum(m), sum(n))
    t, x = op(triangle(a, uplo, diag), trans), b.copy()
    a[outside_tiles(what.grids["a"], uplo)] = np.nan
    run_in_random_order(what, {"a": a, "b": x}, seed)
    np.testing.assert_allclose(t @ x if side is Side.LEFT else x @ t, alpha * b, atol=1e-12)


@given(CUTS, UPLOS, SEEDS)
def test_potrf(n, uplo, seed):
    what = tasks.potrf(n, uplo)
    root = dominant(seed, sum(n))
    a = root @ root.conj().T
    got = hidden(a, uplo)
    run_in_random_order(what, {"a": got}, seed)
    factor = scipy.linalg.cholesky(a, lower=uplo is Uplo.LOWER)
    np.testing.assert_allclose(triangle(got, uplo), factor, atol=1e-12)
    assert np.isnan(got[triangle(np.ones(a.shape), uplo) == 0]).all()


@given(CUTS, st.integers(0, 7), st.booleans(), SEEDS)
def test_getrf(n, more, tall, seed):
    shorter, longer = n, (*n, *cut(more, 3)) if more else n
    rows, cols = (longer, shorter) if tall else (shorter, longer)
    what = tasks.getrf(rows, cols)
    a = random(seed, sum(rows), sum(cols))
    piv = np.zeros((sum(n), 1))
    got = a.copy()
    run_in_random_order(what, {"a": got, "piv": piv}, seed)
    factors, pivots, _ = scipy.linalg.lapack.zgetrf(a)
    firsts = np.repeat(what.grids["piv"].row_offsets[:-1], n)
    np.testing.assert_array_equal(piv[:, 0] + firsts, pivots)
    np.testing.assert_allclose(got, factors, atol=1e-10)


def test_getrf_needs_square_tiles_on_the_diagonal():
    with pytest.raises(ValueError, match=r"getrf: .* rows are cut into \(2, 3\), columns \(3, 2\)"):
        tasks.getrf((2, 3), (3, 2))


def all_lists(n=(3, 2, 4), m=(2, 3)):
    """One of each routine and set of flags."""
    yield tasks.gemm(m, n, n)
    for uplo in Uplo:
        yield tasks.potrf(n, uplo)
        yield tasks.syrk(n, m, uplo)
        yield tasks.syrk(n, m, uplo, Trans.CONJ, hermitian=True)
        for side in Side:
            yield tasks.symm(m, n, side, uplo)
            for trans in Trans:
                yield tasks.trsm(m, n, side, uplo, trans)
                yield tasks.trmm(m, n, side, uplo, trans)
    yield tasks.getrf(n, n)
    yield tasks.getrf((*n, 2, 1), n)
    yield tasks.getrf(n, (*n, 2))


LISTS = list(all_lists())


@pytest.mark.parametrize("what", LISTS, ids=lambda what: what.routine)
def test_each_output_tile_is_finished_once(what):
    finished = [tile for task in what.tasks for tile in task.finishes]
    written = {tile for task in what.tasks for operand in task.writes for tile in operand.each()}
    assert len(finished) == len(set(finished))
    assert set(finished) == written
    done = set()
    for task in what.tasks:
        assert not done & {tile for operand in task.writes for tile in operand.each()}
        done |= set(task.finishes)


@pytest.mark.parametrize("what", LISTS, ids=lambda what: what.routine)
def test_the_order_is_valid_and_dependencies_are_acyclic(what):
    assert sorted(random_order(what, np.random.default_rng(0))) == list(range(len(what.tasks)))
    assert all(other < task for task, need in enumerate(tasks.dependencies(what.tasks)) for other in need)


@pytest.mark.parametrize("uplo, side", list(product(Uplo, Side)))
def test_the_critical_path_comes_first(uplo, side):
    """The tasks that a diagonal tile needs come before any later one is begun."""
    diagonals = [
        number
        for number, task in enumerate(tasks.potrf((2,) * 6, uplo).tasks)
        if task.leaf.routine == "potrf"
    ]
    for k, number in enumerate(diagonals):
        assert number == sum(1 + j + (5 - j) * (j + 1) for j in range(k)) + k  # earlier lines, own updates
    blocks = [
        tile.row if side is Side.LEFT else tile.col
        for task in tasks.trsm((2,) * 5, (2,) * 5, side, uplo).tasks
        for tile in task.finishes
    ]
    assert blocks in (sorted(blocks), sorted(blocks, reverse=True))


def test_flops():
    """Sums over tiles are what the whole matrix costs."""

    def total(what):
        return sum(tasks.flops(what, task) for task in what.tasks)

    m, n, k = (5, 3, 4), (4, 4, 2), (3, 6)
    assert total(tasks.gemm(m, n, k, Trans.CONJ)) == 2 * 12 * 10 * 9
    assert total(tasks.syrk(n, k, Uplo.LOWER, Trans.TRANS)) == 10 * 11 * 9
    assert total(tasks.symm(m, n, Side.RIGHT, Uplo.UPPER)) == 2 * 12 * 10 * 10
    assert total(tasks.trsm(m, n, Side.LEFT, Uplo.UPPER, diag=Diag.UNIT)) == 12 * 11 * 10
    for routine in (tasks.trsm, tasks.trmm):
        assert total(routine(m, n, Side.LEFT, Uplo.UPPER)) == 12 * 12 * 10
    for n in ((1,) * 9, (4, 3, 2), (9,)):
        assert total(tasks.potrf(n, Uplo.UPPER)) == 9 * 10 * 19 // 6
        assert total(tasks.getrf(n, n)) == sum(2 * j * j + j for j in range(9))
        steps = sum(2 * (11 - j) * (8 - j) + 11 - j for j in range(9))
        assert total(tasks.getrf((*n, 3), n)) == steps
    with pytest.raises(ValueError, match="no count for 'unknown'"):
        what = tasks.gemm(m, n, k)
        tasks.flops(what, what.tasks[0]._replace(leaf=TileLeaf("unknown")))


def test_cut():
    assert cut(10, 4) == (4, 4, 2)
    assert cut(8, 4) == (4, 4)
    assert cut(3, 4) == (3,)
    assert cut(0, 4) == (0,)


def test_the_first_product_ignores_what_was_there():
    first, then = tasks.gemm((2,), (2,), (2, 2)).tasks
    assert first.leaf.ignores_output
    assert not then.leaf.ignores_output
    assert not tasks.potrf((2,), Uplo.LOWER).tasks[0].leaf.ignores_output


def test_a_tile_of_several():
    assert list(Tile("a", 1, 2, 2).each()) == [Tile("a", 1, 2), Tile("a", 2, 2)]
    grid = Grid((3, 2, 4), (5, 6))
    assert grid.tile_shape(Tile("a", 1, 1, 2)) == (6, 6)
    assert grid.shape == (9, 11)
