"""Every routine of pyblasgpu.dask on empty chunks, and on chunks that are not what their array declares."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.linalg
from covering import pairs

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

import pyblasgpu.dask as ours  # noqa: E402

#: Routines on a square matrix a and on b with as many rows, and their results by NumPy and SciPy.
CALLS = {
    "gemm": (ours.gemm, np.matmul),
    "gemm with c": (lambda a, b: ours.gemm(a, b, beta=2, c=b, trans_a="T"), lambda a, b: a.T @ b + 2 * b),
    "syrk": (lambda a, b: ours.syrk(a), lambda a, b: np.triu(a @ a.T)),
    "herk with c": (lambda a, b: ours.herk(b, beta=1, c=a, lower=1), lambda a, b: a + np.tril(b @ b.T)),
    "trmm": (ours.trmm, lambda a, b: np.triu(a) @ b),
    "trmm from the right": (lambda a, b: ours.trmm(a, b.T, side="R"), lambda a, b: b.T @ np.triu(a)),
    "trsm": (lambda a, b: ours.trsm(a, b, trans="T"), lambda a, b: np.linalg.solve(np.triu(a).T, b)),
    "trsm from the right": (
        lambda a, b: ours.trsm(a, b.T, side="R"),
        lambda a, b: np.linalg.solve(np.triu(a).T, b).T,
    ),
    "solve_triangular": (
        lambda a, b: ours.solve_triangular(a, b, lower=True),
        lambda a, b: np.linalg.solve(np.tril(a), b),
    ),
    "cholesky": (lambda a, b: ours.cholesky(a, lower=True), lambda a, b: np.linalg.cholesky(a)),
    "lu": (lambda a, b: ours.lu(a)[2], lambda a, b: scipy.linalg.lu(a)[2]),
    "solve": (ours.solve, np.linalg.solve),
    "solve positive definite": (lambda a, b: ours.solve(a, b, assume_a="pos"), np.linalg.solve),
}
#: Further results of the same routines, which need other arrays than CALLS.
MORE = {
    "permutation": (
        lambda a, b: ours.lu(1 / (1 + a * a))[0],  # small on the diagonal
        lambda a, b: scipy.linalg.lu(1 / (1 + a * a))[0],
    ),
    "rows": (
        lambda a, b: ours.lu(a, p_indices=True)[0],
        lambda a, b: scipy.linalg.lu(a, p_indices=True)[0].astype(int),
    ),
    "solve of a vector": (
        lambda a, b: ours.solve(a, a.sum(0)),
        lambda a, b: np.linalg.solve(a, a.sum(0)),
    ),
    "solve_triangular of a vector": (
        lambda a, b: ours.solve_triangular(a, a.sum(0)),
        lambda a, b: np.linalg.solve(np.triu(a), a.sum(0)),
    ),
}
OF_ALL = CALLS | MORE


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


def matrices(order: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """A positive definite matrix with a dominant diagonal, and another of as many rows."""
    rng = np.random.default_rng(order)
    root, b = rng.uniform(-1, 1, (order, order)), rng.uniform(-1, 1, (order, columns))
    return root @ root.T + order * np.eye(order), b


def cut_into(a: np.ndarray, rows, cols):
    """`a` in chunks; Dask's `rechunk` leaves an array without any extent as it is."""
    return da.from_array(a).rechunk((rows, cols)) if any(a.shape) else da.zeros(a.shape, chunks=(rows, cols))


def close(got, expected):
    value = got.compute()
    assert got.shape == value.shape == expected.shape
    assert got.dtype == value.dtype == expected.dtype
    parts = dask.compute(*got.to_delayed().ravel())
    assert [part.shape for part in parts] == list(product(*got.chunks))
    for part in (got.blocks[(place,) * got.ndim] for place in (0, -1)):  # a part needs part of the graph
        assert part.compute().shape == part.shape
    scale = 1e3 * np.finfo(expected.dtype).eps if expected.dtype.kind == "f" else 0
    np.testing.assert_allclose(value, expected, atol=scale * max(abs(expected).max(initial=1), 1), rtol=0)


@pytest.mark.parametrize(
    ("call", "rows", "cols"),
    pairs(OF_ALL, [(3, 3), (0, 3, 3), (3, 0, 3), (0, 6, 0)], [(3, 3), (3, 0, 3), (6, 0, 0)]),
    ids=str,
)
def test_empty_chunks_in_every_place(call, rows, cols):
    routine, expected = OF_ALL[call]
    a, b = matrices(6, 4)
    for places in ((4,), (0, 2, 2), (2, 0, 2), (4, 0)):
        close(routine(cut_into(a, rows, cols), cut_into(b, cols, places)), expected(a, b))


@pytest.mark.parametrize("call", OF_ALL)
@pytest.mark.parametrize(("order", "columns"), [(0, 0), (0, 3), (3, 0)])
@pytest.mark.parametrize("cut", [lambda n: (n,), lambda n: (0, n, 0)], ids=["whole", "among empty chunks"])
def test_zero_extents(call, order, columns, cut):
    routine, expected = OF_ALL[call]
    a, b = matrices(order, columns)
    for rows in ((order,), (0, order, 0)):
        got = routine(cut_into(a, rows, cut(order)), cut_into(b, cut(order), cut(columns)))
        close(got, expected(a, b))
        if call in ("cholesky", "lu", "permutation"):
            assert got.chunks == (rows, rows)


def declaring(dtype: str, array: np.ndarray, chunks, made=lambda chunk: chunk):
    """A Dask array of this dtype and of the shape of `array`; its chunks are what `made` makes of them."""
    meta = np.empty((0,) * array.ndim, dtype)
    return da.from_array(array, chunks=chunks).map_blocks(made, dtype=dtype, meta=meta)


CHUNKS = [6, (6, 3), 2]
DTYPES_OF_CHUNKS = [("d", "i8"), ("d", "f"), ("f", "d"), ("i8", "d"), ("d", "?")]


@pytest.mark.parametrize(("call", "dtypes", "chunks"), pairs(CALLS, DTYPES_OF_CHUNKS, CHUNKS), ids=str)
def test_chunks_of_another_dtype_than_declared(call, dtypes, chunks):
    """The computation is in the dtype that was declared, and on the values that are there."""
    routine, expected = CALLS[call]
    declared, real = dtypes
    a, b = (np.rint(8 * x) / 4 for x in matrices(6, 4))
    if real == "?":
        a, b = np.eye(6), b > 0
    a, b = a.astype(real), b.astype(real)
    computed = "f" if declared == "f" else "d"
    got = routine(declaring(declared, a, chunks), declaring(declared, b, 2))
    close(got, expected(a.astype("d"), b.astype("d")).astype(computed))


@pytest.mark.parametrize("solve", [ours.solve, ours.solve_triangular])
def test_vectors_of_another_dtype_than_declared(solve):
    a, _ = matrices(6, 1)
    right = declaring("d", np.arange(6), 4)
    close(solve(np.triu(a), right), np.linalg.solve(np.triu(a), np.arange(6.0)))
    with pytest.raises(ValueError, match=rf"{solve.__name__}: chunk \(0, 0\) of b has shape \(3, 1\);"):
        solve(a, declaring("d", np.arange(6.0), 4, lambda chunk: chunk[:3])).compute()


#: What is made of chunks: a function, the error, and its text.
WRONG = {
    "shorter": (lambda chunk: chunk[:-1], ValueError, r"has shape .*; its array declares "),
    "larger": (lambda chunk: np.ones((9, 9)), ValueError, r"has shape \(9, 9\); its array declares "),
    "flat": (lambda chunk: chunk[0], ValueError, r"has shape \(\d,\); its array declares "),
    "complex": (lambda chunk: chunk + 1j, TypeError, "has dtype complex128; the computation is in float64"),
    "list": (lambda chunk: chunk.tolist(), TypeError, "is a list; an array of NumPy or CuPy is needed"),
}


@pytest.mark.parametrize(("call", "wrong", "chunks"), pairs(CALLS, WRONG, CHUNKS), ids=str)
def test_chunks_that_do_not_fit_what_was_declared(call, wrong, chunks):
    made, error, text = WRONG[wrong]
    routine, _ = CALLS[call]
    a, b = matrices(6, 4)
    name = call.partition(" ")[0]
    wrong_first, wrong_second = (
        (declaring("d", a, chunks, made), da.from_array(b)),
        (da.from_array(a), declaring("d", b, 2, made)),
    )
    with pytest.raises(error, match=rf"^{name}: chunk \(\d, \d\) of [ac] {text}"):
        routine(*wrong_first).compute()
    if call not in ("syrk", "cholesky", "lu") and "right" not in call:
        with pytest.raises(error, match=rf"^{name}: chunk \(\d, \d\) of [abc] {text}"):
            routine(*wrong_second).compute()


def test_complex_chunks_where_integers_are_declared():
    a = declaring("i8", np.eye(4), 2, lambda chunk: chunk + 1j)
    with pytest.raises(
        TypeError, match=r"gemm: chunk \(\d, \d\) of [ab] has dtype complex128; the comp.*float64"
    ):
        ours.gemm(a, a).compute()


def test_a_chunk_that_is_only_passed_on_is_checked():
    """The other triangle of c in a rank-k update is such a chunk."""
    c = declaring("d", np.arange(36).reshape(6, 6), 3)
    got = ours.syrk(da.zeros((6, 2), chunks=3), beta=1, c=c).blocks[1, 0].compute()
    assert got.dtype == "d"
    np.testing.assert_array_equal(got, c.compute()[3:, :3])
    with pytest.raises(ValueError, match=r"syrk: chunk \(1, 0\) of c has shape \(2, 3\)"):
        ours.syrk(da.zeros((6, 2), chunks=3), c=declaring("d", np.ones((6, 6)), 3, lambda x: x[:2])).blocks[
            1, 0
        ].compute()
