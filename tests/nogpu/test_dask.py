"""pyblasgpu.dask on ragged chunks beside SciPy, its graphs, and what it refuses."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from weakref import WeakSet

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from qr_cases import matrix_of
from tile_leaves import op, triangle

from pyblasgpu.types import Side, Trans, Uplo

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
from dask.callbacks import Callback  # noqa: E402
from dask.utils import key_split  # noqa: E402

import pyblasgpu.dask as ours  # noqa: E402
from pyblasgpu.dask import leaves  # noqa: E402

CUTS = st.lists(st.integers(0, 5), min_size=1, max_size=5).map(tuple)  # also empty chunks
LETTERS, SEEDS = st.sampled_from("fdFD"), st.integers(0, 2**16)
OPS, UPLOS, SIDES = (st.sampled_from(list(flag)) for flag in (Trans, Uplo, Side))


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="sync"), warnings.catch_warnings():
        warnings.simplefilter("error", da.PerformanceWarning)
        yield


def random(seed: int, letter: str, rows: int, cols: int) -> np.ndarray:
    rng = np.random.default_rng((seed, rows, cols))
    a = rng.uniform(-1, 1, (rows, cols)) + (1j * rng.uniform(-1, 1, (rows, cols)) if letter in "FD" else 0)
    return a.astype(letter)


def definite(seed: int, letter: str, order: int) -> np.ndarray:
    root = random(seed, letter, order, order)
    return root @ root.conj().T + order * np.eye(order, dtype=letter)


def chunked(a: np.ndarray, rows, cols):
    """`a` in these chunks, or in as many equal ones as fit where they are of another extent."""
    whole = sum(rows) == a.shape[0], sum(cols) == a.shape[1]
    return da.from_array(a, chunks=(rows if whole[0] else 4, cols if whole[1] else 3))


def close(got, expected):
    value = got.compute()
    assert value.dtype == expected.dtype
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert all(map(sum, got.chunks)) or 0 in got.shape
    scale = max(abs(expected).max(initial=1), 1)
    np.testing.assert_allclose(value, expected, atol=1e3 * np.finfo(expected.dtype).eps * scale, rtol=0)


@given(CUTS, UPLOS, OPS, LETTERS, SEEDS)
@settings(max_examples=15)
def test_factors_and_solutions(n, uplo, trans, letter, seed):
    a, lower = definite(seed, letter, sum(n)), uplo is Uplo.LOWER
    b = random(seed, letter, sum(n), 3)
    half = np.where(triangle(np.ones(a.shape), uplo) != 0, a, np.nan).astype(letter)
    tiles = chunked(half, n, (sum(n),))
    close(ours.cholesky(tiles, lower), scipy.linalg.cholesky(a, lower=lower))
    close(ours.solve(tiles, b[:, 0], assume_a="pos", lower=uplo), np.linalg.solve(a, b[:, 0]))
    solved = ours.solve_triangular(chunked(a, n, n), chunked(b, n, (2, 1)), trans=trans.value, lower=lower)
    t = op(triangle(a, uplo), trans)
    close(ours.gemm(t, solved), b)


@given(CUTS, LETTERS, SEEDS)
@settings(max_examples=15)
def test_lu(n, letter, seed):
    a = random(seed, letter, sum(n), sum(n))
    p, l, u = ours.lu(chunked(a, n, n))
    for got, expected in zip((p, l, u), scipy.linalg.lu(a)):
        assert got.chunks == (n, n)
        close(got, expected if got is not p else expected.real.copy())  # SciPy's is complex for order 1
    indices, l, u = dask.compute(*ours.lu(chunked(a, n, (sum(n),)), p_indices=True))
    np.testing.assert_allclose(l[indices] @ u, a, atol=1e-4 if letter in "fF" else 1e-12)
    safe = a + 2 * sum(n) * np.eye(sum(n), dtype=letter)[::-1]
    b = random(seed, letter, sum(n), 2)
    close(ours.gemm(safe, ours.solve(chunked(safe, n, n), chunked(b, n, (1, 1)))), b)


@pytest.mark.parametrize("order", [0, 1])
def test_the_smallest(order):
    a, b = np.full((order, order), 4.0), np.full((order, 2), 8.0)
    close(ours.cholesky(da.from_array(a)), np.full_like(a, 2))
    close(ours.solve(da.from_array(a), da.from_array(b)), np.full_like(b, 2))
    close(ours.gemm(da.from_array(b.T), da.from_array(b)), b.T @ b)


def test_integers_become_double():
    a = da.from_array(np.arange(12).reshape(3, 4), chunks=2)
    close(ours.gemm(a, a, trans_b="T"), (np.arange(12.0).reshape(3, 4) @ np.arange(12.0).reshape(3, 4).T))
    close(ours.gemm(a.astype("i1"), a.T), (a @ a.T).compute().astype("f8"))
    close(ours.gemm(a.astype("f2"), a.astype("f2").T), (a @ a.T).compute().astype("f4"))


@pytest.mark.parametrize("uplo", list(Uplo))
def test_with_beta_zero_c_is_not_read(uplo):
    a, c = random(0, "f", 6, 6), random(1, "D", 6, 6)
    x, nowhere = da.from_array(a, chunks=4), da.full((6, 6), np.nan, chunks=3, dtype="D")
    close(ours.gemm(x, x, beta=[0], c=nowhere), a @ a)
    inside = triangle(np.ones(c.shape), uplo) != 0
    y = da.from_array(np.where(inside, np.nan, c), chunks=3)
    for routine in (ours.syrk, ours.herk):
        close(routine(x, beta=0, c=y, lower=uplo), np.where(inside, a.astype("D") @ a.T, c))


def test_the_other_triangle_is_not_computed():
    calls = []

    def chunk(block_info=None):
        row, col = block_info[None]["chunk-location"]
        calls.append((row, col))
        return 9.0 * np.eye(3) if row == col else np.ones((3, 3)) / 9

    a = da.map_blocks(chunk, chunks=((3,) * 4,) * 2, dtype=float, meta=np.empty((0, 0)))
    ours.cholesky(a, lower=True).compute()
    assert sorted(calls) == [(i, j) for i in range(4) for j in range(i + 1)]


def test_inputs_stay_as_they_are():
    a = definite(0, "d", 12)
    kept = a.copy()
    x = da.from_array(a, chunks=5)
    dask.compute(ours.cholesky(x), ours.trsm(x, x), ours.lu(x), ours.gemm(x, x, beta=1, c=x))
    np.testing.assert_array_equal(a, kept)


def test_a_graph_is_described_until_it_is_run():
    x = da.ones((400, 400), chunks=4)
    for result in (ours.cholesky(x), ours.gemm(x, x), ours.trsm(x, x)):
        layer = result.dask.layers[result.name]
        assert not layer.is_materialized()
        assert len(pickle.dumps(layer)) < 5000
        assert len(layer.get_output_keys()) == 100**2
        assert not layer.is_materialized()


def test_no_task_changes_its_inputs():
    """So it may run again, and others may read them: every value is read-only here."""
    tasks = []

    def lock(key, value, *_):
        tasks.append(key)
        for array in value if isinstance(value, tuple) else [value]:
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    x = da.from_array(definite(0, "d", 60), chunks=9)
    results = ours.cholesky(x), ours.trsm(x, x), ours.trmm(x, x), ours.gemm(x, x, beta=1, c=x), *ours.lu(x)
    with Callback(posttask=lock):
        dask.compute(*results, ours.solve(x, x[:, :2]), optimize_graph=False)
    names = {key_split(key) for key in tasks}
    assert {"cholesky-update", "trsm-update", "trmm", "lu-update", "lu-pivots"} <= names


@pytest.mark.parametrize("count", [1, 2, 5, 9, 20])
def test_few_tasks_for_a_chunk(count):
    """Sums of products are not kept; states of a chunk are a few, however many products it adds."""
    x = da.ones((2 * count, 2 * count), chunks=2)
    few, more = -(-count // 8), 2 + count // 8 + 2
    for routine, result, most in (
        ("gemm", ours.gemm(x, x), few),
        ("trmm", ours.trmm(x, x, lower=True), few),
        ("cholesky", ours.cholesky(x), more),
    ):
        keys = [key for key in result.dask.layers[result.name] if key[1:3] == (count - 1, count - 1)]
        assert len(keys) <= most
        assert {key_split(key) for key in keys} <= {routine, f"{routine}-update"}


def test_part_of_a_factor_needs_part_of_the_graph():
    x = da.from_array(definite(0, "d", 40), chunks=4)
    factor = ours.cholesky(x, lower=True)
    (part,) = dask.optimize(factor.blocks[1, 0])
    assert len(dict(part.dask)) < 12
    close(factor.blocks[1, 0], scipy.linalg.cholesky(x.compute(), lower=True)[4:8, :4])


def test_not_definite():
    a = np.eye(9)
    a[5, 5] = -1
    with pytest.raises(np.linalg.LinAlgError, match="6-th leading minor"):
        ours.cholesky(da.from_array(a, chunks=4)).compute()


X = da.ones((6, 6), chunks=3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ours.gemm(X, X[:4]), ValueError, "gemm: op.a. is 6 by 6 and op.b. 4 by 6"),
        (lambda: ours.gemm(X, X, beta=1), ValueError, "gemm: beta=1.0 needs c"),
        (lambda: ours.gemm(X, X, beta=1, c=X[:3]), ValueError, r"gemm: c has shape \(3, 6\)"),
        (lambda: ours.gemm(X, X, c=X[:3]), ValueError, r"gemm: c has shape \(3, 6\)"),
        (lambda: ours.gemm(X, X, alpha="x"), TypeError, "gemm: alpha must be a number, not 'x'"),
        (lambda: ours.trsm(X, X, alpha=1j), TypeError, "trsm: alpha=1j"),
        (lambda: ours.herk(X.astype("D"), alpha=1j), TypeError, "herk: alpha=1j and beta=0.0 must be real"),
        (lambda: ours.gemm(X, X, trans_a="Q"), ValueError, "gemm: trans_a='Q'"),
        (lambda: ours.gemm(X, X[0]), ValueError, r"gemm: b has shape \(6,\); a matrix"),
        (lambda: ours.gemm(X, X[X[0] > 0]), ValueError, "gemm: b has chunks of unknown size"),
        (lambda: ours.gemm(X, X.astype("U3")), TypeError, "gemm: "),
        (lambda: ours.gemm(X, X.astype("g")), TypeError, "gemm: a is float64, b is float128"),
        (lambda: ours.herk(X.astype("D"), trans="T"), ValueError, "herk: trans=T is neither N nor C"),
        (lambda: ours.syrk(X, c=X[:3]), ValueError, r"syrk: c has shape \(3, 6\)"),
        (lambda: ours.syrk(X, beta=1), ValueError, "syrk: beta=1.0 needs c"),
        (lambda: ours.cholesky(X[:3]), ValueError, r"cholesky: a has shape \(3, 6\); a square"),
        (lambda: ours.lu(X[:3]), ValueError, r"lu: a has shape \(3, 6\); a square"),
        (lambda: ours.trsm(X, X[:3]), ValueError, r"trsm: a has shape \(6, 6\) and b \(3, 6\), for side L"),
        (lambda: ours.solve(X, X[:3]), ValueError, r"solve: a has shape \(6, 6\) and b \(3, 6\)"),
        (lambda: ours.solve(X, X, assume_a="her"), ValueError, "solve: assume_a='her' is none of"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_the_module_needs_no_import_of_its_own():
    program = "import pyblasgpu as pb; print(pb.dask.cholesky.__name__, 'dask' in dir(pb))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == ["cholesky", "True"]


@pytest.mark.parametrize("use", ["import pyblasgpu.dask", "from pyblasgpu import dask", "pyblasgpu.dask.lu"])
def test_without_dask_the_error_says_what_to_install(use):
    without = "import sys, pyblasgpu; sys.modules['dask'] = None; assert 'dask' not in dir(pyblasgpu)"
    program = f"{without}; from pyblasgpu import *; {use}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ImportError: pyblasgpu.dask: " in run.stderr
    assert "pip install 'pyblasgpu[dask]'" in run.stderr


def test_copies_of_operands_go_after_their_last_use(monkeypatch):
    """And come at the first one."""
    held, seen = WeakSet(), []

    class Copy:
        def __init__(self, array):
            self.array = array
            held.add(self)

        def __getitem__(self, rows):
            return self.array[rows]

    def run(call, reads, out):
        seen.append(len(held))
        out += sum(reads)

    monkeypatch.setattr(leaves, "on_current_card", Copy)
    monkeypatch.setattr(leaves, "run_call", run)
    numbers = [(0, 1), (1, 2), (1, 3)]
    calls = tuple(
        leaves.LeafCall(None, tuple((n, slice(None)) for n in pair), slice(None), 0) for pair in numbers
    )
    operands = [np.full((2, 2), 10.0**n) for n in range(4)]
    actual = leaves.Accumulate(calls)(np.zeros((2, 2)), operands)
    assert seen == [2, 2, 2] and not held
    np.testing.assert_array_equal(actual, np.full((2, 2), 1 + 3 * 10 + 100 + 1000.0))


TALL = [
    ((5, 3, 4, 4, 2, 9, 1, 0, 6), (2, 1)),
    ((1,) * 21, (3,)),
    ((3,), (3,)),
    ((2, 2, 2), (4, 1)),
    ((4, 4), (1, 0)),
    ((0,), (0,)),
    ((3, 3), (0,)),
]


@pytest.mark.parametrize("letter", "fdFD")
@pytest.mark.parametrize(("rows", "cols"), TALL)
def test_qr(letter, rows, cols):
    a = random(3, letter, sum(rows), sum(cols))
    q, r = ours.qr(da.from_array(a, chunks=(rows, cols)))
    (m, n), eps = a.shape, np.finfo(letter).eps
    k, (one, two) = min(m, n), dask.compute(q, r)
    assert one.shape == q.shape == (m, k) and two.shape == r.shape == (k, n)
    assert one.dtype == two.dtype == q.dtype == r.dtype == a.dtype and q.chunks[0] == rows
    np.testing.assert_allclose(one @ two, a, atol=50 * eps)
    np.testing.assert_allclose(one.conj().T @ one, np.eye(k), atol=50 * eps)
    assert not np.tril(two, -1).any()


@pytest.mark.parametrize("letter", "fdFD")
@pytest.mark.parametrize("condition", [1, 1e-3, 0])
def test_qr_is_orthogonal_whatever_the_matrix(letter, condition):
    """Nearly dependent and equal columns, and huge ones."""
    a = random(5, letter, 60, 5)
    a[:, 1:] = a[:, :1] + condition * np.finfo(letter).eps * a[:, 1:]
    a[:, 2] *= np.finfo(letter).max / 100
    q, r = dask.compute(*ours.tsqr(da.from_array(a, chunks=(7, 5))))
    eps = np.finfo(letter).eps
    np.testing.assert_allclose(q.conj().T @ q, np.eye(5), atol=100 * eps)
    scale = np.abs(a).max(axis=0)
    np.testing.assert_allclose(q @ (r / scale), a / scale, atol=100 * eps)


@pytest.mark.parametrize("letter", "fdFD")
@pytest.mark.parametrize(("rows", "cols"), [each for each in TALL if sum(each[0]) and sum(each[1])])
@pytest.mark.parametrize("columns", [0, 3])
def test_lstsq(letter, rows, cols, columns):
    """Matrices have full rank, rank one, and more columns than rows."""
    b = random(4, letter, sum(rows), max(columns, 1))
    b = b if columns else b[:, 0]
    for rank in (0, 1):
        a = random(6, letter, sum(rows), sum(cols))
        a = np.tile(a[:, :1], a.shape[1]) if rank else a
        found = ours.lstsq(da.from_array(a, chunks=(rows, cols)), da.from_array(b, chunks=4))
        x, residues, ranks, s = dask.compute(*found)
        cond = max(a.shape) * float(np.finfo(letter).eps)
        theirs, _, their_rank, their_s = scipy.linalg.lstsq(a, b, cond)
        assert [each.shape for each in found] == [np.shape(each) for each in (x, residues, ranks, s)]
        assert ranks == their_rank and [each.dtype for each in found[:2]] == [a.dtype, a.real.dtype]
        tolerance = 5e3 * np.finfo(letter).eps * max(their_s[0] / their_s[their_rank - 1], 1)
        np.testing.assert_allclose(x, theirs, atol=tolerance * np.abs(theirs).max())
        np.testing.assert_allclose(s, their_s, atol=tolerance * their_s[0])
        squares = (np.abs(b - a @ theirs) ** 2).sum(axis=0)
        np.testing.assert_allclose(residues, squares, atol=tolerance * (np.abs(b) ** 2).sum())


def test_tall_refusals():
    a = da.ones((6, 3), chunks=2)
    for wrong, message in (
        (lambda: ours.tsqr(a.T), r"tsqr: a has shape \(3, 6\); at least as many rows"),
        (lambda: ours.lstsq(a, da.ones((5, 1))), r"lstsq: a has shape \(6, 3\) and b \(5, 1\)"),
        (lambda: ours.qr(a[0]), r"qr: a has shape \(3,\)"),
        (lambda: ours.qr(a[a[:, 0] > 0]), "qr: a has chunks of unknown size"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_tall_graphs_are_small_and_can_be_sent():
    """Tasks grow with the number of blocks."""
    for count in (16, 64):
        q, r = ours.qr(da.ones((2 * count, 2), chunks=(2, 2)))
        assert len(dict(q.__dask_graph__())) < 5 * count
        assert pickle.loads(pickle.dumps(r)).name == r.name  # noqa: S301


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("shape", [(20, 6), (6, 20), (7, 7), (5, 1)])
@pytest.mark.parametrize("coerce", [True, False])
def test_singular_values(letter, shape, coerce):
    a = matrix_of("random", letter, *shape)
    u, s, v = dask.compute(*ours.svd(da.from_array(a, chunks=(3, 3)), coerce))
    eps = np.finfo(a.dtype).eps
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), atol=100 * eps)
    np.testing.assert_allclose((u * s) @ v, a, atol=100 * eps)
    for gram in (u.conj().T @ u, v @ v.conj().T):
        np.testing.assert_allclose(gram, np.eye(min(shape)), atol=100 * eps)
    assert not coerce or (v.sum(axis=1).real >= -100 * eps).all()


@pytest.mark.parametrize(("iterator", "steps"), [("power", 0), ("power", 2), ("QR", 1)])
@pytest.mark.parametrize("compute", [False, True])
def test_largest_singular_values(iterator, steps, compute):
    """The matrix's other values are small; the same seed gives the same ones."""
    q, p = (np.linalg.qr(matrix_of("random", "d", m, 20, seed=m))[0] for m in (60, 40))
    a = (q * 0.5 ** (2 * np.arange(20))) @ p.T
    options = {"n_power_iter": steps, "seed": 3, "compute": compute}
    first, again = (
        dask.compute(*ours.svd_compressed(da.from_array(a, chunks=(13, 17)), 4, iterator, **options))
        for _ in range(2)
    )
    u, s, v = first
    assert u.shape == (60, 4) and s.shape == (4,) and v.shape == (4, 40)
    np.testing.assert_allclose(s, 0.25 ** np.arange(4), rtol=1e-6)
    np.testing.assert_allclose((u * s) @ v, a, atol=1.1 * 0.25**4)
    np.testing.assert_array_equal(s, again[1])


def test_singular_values_of_other_shapes_are_refused():
    a = da.ones((6, 3), chunks=2)
    for wrong, message in (
        (lambda: ours.svd(a[0]), r"svd: a has shape \(3,\)"),
        (lambda: ours.svd_compressed(a, 4), r"svd_compressed: k=4 is not in 1 ... 3"),
        (lambda: ours.svd_compressed(a, 2, "lanczos"), "svd_compressed: iterator='lanczos' is none"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
