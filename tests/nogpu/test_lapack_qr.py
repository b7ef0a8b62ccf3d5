"""`pyblasgpu.lapack` on QR factors compared with scipy.linalg.lapack: flags, layouts, workspaces, stacks."""

from __future__ import annotations

from itertools import product
from unittest.mock import Mock

import fake_device
import numpy as np
import pytest
import scipy.linalg.lapack as scipys
from covering import by_turns
from qr_cases import SETS, SHAPES, check_factors, matrix_of

from pyblasgpu import lapack
from pyblasgpu.api.lapack import qr_calls as qr_functions
from pyblasgpu.routine_table import ROUTINES
from pyblasgpu.types import DTYPES

STEMS = ["geqrf", "geqp3", "orgqr", "ormqr"]


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def named(module, letter: str, stem: str):
    return getattr(module, ROUTINES[stem].scipys(letter)[0] if stem in ROUTINES else letter + stem)


def laid(array: np.ndarray, layout: str) -> np.ndarray:
    """`array` by rows, by columns, with gaps, or backwards."""
    if layout in "CF":
        return np.array(array, order=layout)
    if layout == "backwards":
        return np.array(array[::-1, ::-1])[::-1, ::-1]
    view = np.zeros([2 * extent for extent in array.shape], array.dtype)[tuple([np.s_[::2]] * array.ndim)]
    view[...] = array
    return view


def same(ours, theirs) -> None:
    """Results are SciPy's, but for the numbers in the workspace."""
    assert len(ours) == len(theirs)
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        assert one.shape == other.shape and one.dtype.kind == other.dtype.kind
        if index != len(ours) - 2:
            scale = np.abs(other).max() if other.size else 1
            eps = 1 if one.dtype.kind == "i" else np.finfo(one.dtype).eps
            np.testing.assert_allclose(one, other, rtol=0, atol=500 * eps * scale)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", ["C", "F", "gaps", "backwards"])
@pytest.mark.parametrize("overwrite", [0, 1])
def test_factors(letter, shape, layout, overwrite):
    a, (m, n) = matrix_of("random", letter, *shape), shape
    for stem in ("geqrf", "geqp3"):
        start = laid(a, layout)
        ours = named(lapack, letter, stem)(start, overwrite_a=overwrite)
        same(ours, named(scipys, letter, stem)(a))
        assert ours[0].flags.f_contiguous or ours[0] is start
        assert overwrite or np.array_equal(start, a)
    qr, tau, _, _ = named(lapack, letter, "geqrf")(a)
    k = min(m, n)
    reflectors = laid(qr[:, :k], layout)
    ours = named(lapack, letter, "orgqr")(reflectors, tau, overwrite_a=overwrite)
    same(ours, named(scipys, letter, "orgqr")(qr[:, :k], tau))
    check_factors(a, ours[0], np.triu(qr[:k]))


@pytest.mark.parametrize(
    ("flags", "shape", "layout"),
    by_turns(product(DTYPES, ["L", b"R", 0], ["N", "C", b"N"]), SHAPES, ["C", "F", "gaps"]),
    ids=str,
)
def test_products(flags, shape, layout):
    letter, side, trans = flags
    (m, n), is_left = shape, side in ("L", 0)
    qr, tau, _, _ = named(lapack, letter, "geqrf")(matrix_of("random", letter, m, n))
    c = matrix_of("random", letter, *((m, 3) if is_left else (3, m)), seed=9)
    reflectors = qr[:, : min(m, n)]
    ours = named(lapack, letter, "ormqr")(side, trans, laid(reflectors, layout), tau, laid(c, layout))
    op = {"N": "N", b"N": "N", "C": "C" if letter in "cz" else "T"}[trans]
    where = "L" if is_left else "R"
    theirs = named(scipys, letter, "ormqr")(where, op, reflectors, tau, c, 9)
    same(ours, (theirs[0], ours[1], theirs[2]))


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("letter", DTYPES)
def test_bounds(kind, letter):
    for shape in [*SHAPES, (3, 20, 9), (3, 9, 20)]:
        a = matrix_of(kind, letter, *shape)
        k = min(shape[-2:])
        qr, tau, _, info = lapack.geqrf(a)
        q, _, _ = lapack.orgqr(qr[..., :k], tau)
        check_factors(a, q, np.triu(qr[..., :k, :]))
        assert info == 0 and not np.diagonal(qr, axis1=-2, axis2=-1).imag.any()
        qr, jpvt, tau, _, _ = lapack.geqp3(a)
        q, _, _ = lapack.orgqr(qr[..., :k], tau)
        check_factors(np.take_along_axis(a, jpvt[..., None, :] - 1, -1), q, np.triu(qr[..., :k, :]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (1, 1)])
def test_special_values_are_those_of_scipy(value, shape):
    """And stay in their matrix of a stack."""
    a = matrix_of("random", "d", 3, *shape)
    a[1, -1, 0] = value
    for stem in ("geqrf", "geqp3"):
        ours, theirs = named(lapack, "d", stem)(a), [named(scipys, "d", stem)(each) for each in a]
        for index in range(len(ours) - 2):
            np.testing.assert_allclose(ours[index], [each[index] for each in theirs], rtol=1e-12, atol=1e-13)


def test_stacks():
    a, c = matrix_of("random", "z", 6, 5, 3).reshape(2, 3, 5, 3), matrix_of("random", "z", 3, 5, 2, seed=3)
    qr, tau, work, info = lapack.geqrf(a)
    assert tau.shape == (2, 3, 3) and work.ndim == 1 and info == 0
    q, _, _ = lapack.orgqr(qr, tau)
    np.testing.assert_allclose(q @ np.triu(qr[..., :3, :]), a, atol=1e-14)
    product, _, _ = lapack.ormqr("L", "C", qr, tau, c)
    assert product.shape == (2, 3, 5, 2)
    np.testing.assert_allclose(product[..., :3, :], q.swapaxes(-1, -2).conj() @ c, atol=1e-14)
    product, _, _ = lapack.ormqr("R", "N", qr[0, 0], tau[0, 0], c.swapaxes(-1, -2))  # one Q for all
    np.testing.assert_allclose(product[..., :3], c.swapaxes(-1, -2) @ q[0, 0], atol=1e-14)
    assert lapack.geqp3(a)[1].shape == (2, 3, 3)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (2, 3, 0), (0, 2, 2)])
def test_empty_ones(shape):
    *batch, m, n = shape
    k = min(m, n)
    qr, tau, _, info = lapack.geqrf(np.ones(shape))
    assert qr.shape == shape and tau.shape == (*batch, k) and info == 0
    assert lapack.orgqr(qr[..., :k], tau)[0].shape == (*batch, m, k)
    assert lapack.ormqr("L", "N", qr[..., :k], tau, np.ones((*batch, m, 2)))[0].shape == (*batch, m, 2)
    np.testing.assert_array_equal(
        lapack.geqp3(np.ones(shape))[1], np.broadcast_to(range(1, n + 1), (*batch, n))
    )


def test_without_reflectors():
    """Q is the identity then."""
    np.testing.assert_array_equal(lapack.orgqr(np.full((4, 3), np.nan), np.ones(0))[0], np.eye(4, 3))
    c = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(lapack.ormqr("L", "T", np.ones((3, 0)), np.ones(0), c)[0], c)


@pytest.mark.parametrize("stem", STEMS)
def test_queries_of_the_workspace(stem):
    a, tau, c = np.ones((50, 30)), np.zeros(30), np.ones((50, 4))
    arguments = {"orgqr": (a, tau), "ormqr": ("L", "N", a, tau, c)}.get(stem, (a,))
    *_, work, info = named(lapack, "d", stem)(*arguments, lwork=-1)
    theirs = named(scipys, "d", stem)(*arguments, lwork=-1)[-2]
    assert work.shape == (1,) and work[0] == theirs[0] and info == 0
    longer = named(lapack, "d", stem)(*arguments, lwork=int(work[0]) + 7)
    assert longer[-2].shape == (int(work[0]) + 7,)
    assert (a == 1).all() and (c == 1).all()


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("stem", STEMS)
def test_functions_by_arrays(stem, dtype):
    arrays = (np.ones((2, 2), dtype),)
    name = lapack.get_lapack_funcs(stem, arrays).__name__
    assert f"= {name}(" in scipys.get_lapack_funcs(stem, arrays).__doc__


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (0, 3), (3, 0)])
@pytest.mark.parametrize("trans", "NC")
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_least_squares(letter, shape, trans, columns):
    """Right-hand sides are one, as a vector, and several."""
    a, longest = matrix_of("random", letter, *shape), max(shape)
    b = matrix_of("random", letter, longest, max(columns, 1), seed=7)
    b = b if columns else b[:, 0]
    ours = named(lapack, letter, "gels")(laid(a, "gaps"), b, trans)
    if a.size:
        theirs = named(scipys, letter, "gels")(a, b, trans if letter in "cz" or trans == "N" else "T")
        assert ours[2] == theirs[2] and ours[1].shape == theirs[1].shape
        eps = np.finfo(a.dtype).eps
        for one, other in zip(ours[:2], theirs[:2], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1000 * eps * np.abs(other).max())
    else:
        assert not ours[1].any() and ours[1].shape == b.shape and ours[2] == 0


def test_least_squares_of_stacks():
    """A matrix without full rank leaves the others as they are."""
    a, b = matrix_of("random", "d", 3, 5, 2), matrix_of("random", "d", 5, 4, seed=3)
    a[1, :, 1] = 0
    lqr, x, info = lapack.gels(a, b)
    assert lqr.shape == (3, 5, 2) and x.shape == (3, 5, 4) and list(info) == [0, 2, 0]
    assert info.dtype == np.int32
    for index in (0, 2):
        np.testing.assert_allclose(x[index, :2], np.linalg.lstsq(a[index], b)[0], rtol=1e-10)
    for stack in (a[:0], np.zeros((0, 2, 5))):
        lqr, x, info = lapack.gels(stack, b)
        assert lqr.shape == stack.shape and x.shape == (0, 5, 4) and info.shape == (0,)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(("m", "n", "nb"), [(5, 3, 2), (3, 5, 3), (1, 1, 1), (40, 33, 8)])
@pytest.mark.parametrize("trans", "NC")
def test_blocks_of_reflectors(letter, m, n, nb, trans):
    a = matrix_of("random", letter, m, n)
    ours, theirs = named(lapack, letter, "geqrt")(nb, a), named(scipys, letter, "geqrt")(nb, a)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    k, op = min(m, n), trans if letter in "cz" or trans == "N" else "T"
    v, t = theirs[0][:, :k], theirs[1]
    for side, c in (("L", matrix_of("random", letter, m, 2)), ("R", matrix_of("random", letter, 2, m))):
        one, _ = named(lapack, letter, "gemqrt")(v, t, c, side, trans)
        other, _ = named(scipys, letter, "gemqrt")(v, t, c, side, op)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(("l", "m", "n", "nb"), [(0, 4, 3, 2), (2, 4, 3, 3), (3, 3, 3, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("trans", "NC")
def test_triangles_above_matrices(letter, l, m, n, nb, trans):
    a = np.triu(matrix_of("random", letter, n, n))
    b = matrix_of("random", letter, m, n, seed=2)
    b[m - l :] = np.triu(b[m - l :])
    ours, theirs = named(lapack, letter, "tpqrt")(l, nb, a, b), named(scipys, letter, "tpqrt")(l, nb, a, b)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    op = trans if letter in "cz" or trans == "N" else "T"
    _, v, t, _ = theirs
    parts = {
        "L": (matrix_of("random", letter, n, 2), matrix_of("random", letter, m, 2, seed=1)),
        "R": (matrix_of("random", letter, 2, n), matrix_of("random", letter, 2, m, seed=1)),
    }
    for side, each in parts.items():
        ours = named(lapack, letter, "tpmqrt")(l, v, t, *each, side, trans)
        theirs = named(scipys, letter, "tpmqrt")(l, v, t, *each, side, op)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
    stacked = lapack.tpqrt(l, nb, np.stack([a, 2 * a]), b)
    np.testing.assert_array_equal(stacked[0][0], lapack.tpqrt(l, nb, a, b)[0])
    assert stacked[2].shape == (2, nb, n)


@pytest.mark.parametrize("letter", DTYPES)
def test_workspaces(letter):
    for stem, extents in (
        ("geqrf_lwork", (50, 30)),
        ("gels_lwork", (50, 30, 2)),
        ("gels_lwork", (30, 50, 2)),
    ):
        assert named(lapack, letter, stem)(*extents) == named(scipys, letter, stem)(*extents)
        assert named(lapack, letter, stem)(0, *extents[1:]) == (1, 0)


def test_refusals():
    a, tau, c = np.ones((5, 3)), np.zeros(3), np.ones((5, 2))
    for wrong, message in (
        (lambda: lapack.dgeqrf(a, lwork=2), "dgeqrf: lwork=2 is less than 3"),
        (lambda: lapack.dgeqp3(a, lwork=3), "dgeqp3: lwork=3 is less than 4"),
        (lambda: lapack.dgeqrf(a, lwork=1.5), r"dgeqrf: lwork=1\.5 is no integer"),
        (lambda: lapack.dorgqr(a.T, tau), r"dorgqr: a has shape \(3, 5\) and tau \(3,\); rows >= columns"),
        (lambda: lapack.dorgqr(a, np.zeros(4)), r"tau \(4,\); rows >= columns >= reflectors"),
        (lambda: lapack.dorgqr(a, 1.0), "dorgqr: tau has no dimensions"),
        (
            lambda: lapack.dormqr("L", "N", a, tau, c[:4]),
            r"dormqr: a has shape \(5, 3\), tau \(3,\) and c \(4, 2\)",
        ),
        (lambda: lapack.dormqr("R", "N", a, tau, c), "from the right a has 2 rows"),
        (lambda: lapack.dormqr("L", "N", a, tau[:2], c), "as many columns as tau has factors"),
        (lambda: lapack.dormqr("L", "N", a.T, np.zeros(5), c[:3]), "no more columns than rows"),
        (lambda: lapack.dormqr("X", "N", a, tau, c), "dormqr: side='X'"),
        (lambda: lapack.dormqr("L", "Q", a, tau, c), "dormqr: trans='Q'"),
        (lambda: lapack.zunmqr("L", "T", a, tau, c), "zunmqr: trans='T' is for real matrices"),
        (lambda: lapack.dorglq(a, tau), r"dorglq: a has shape \(5, 3\) and tau \(3,\); columns >= rows"),
        (lambda: lapack.dormlq("R", "N", a.T, tau, c), "dormlq: .* from the right a has 2 columns"),
        (lambda: lapack.dgelqf(a, lwork=4), "dgelqf: lwork=4 is less than 5"),
        (
            lambda: lapack.ormqr("L", "N", np.ones((4, 5, 3)), np.zeros((4, 3)), np.ones((2, 5, 2))),
            "broadcast",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    for wrong in (
        lambda: lapack.dgeqrf(a * 1j),
        lambda: lapack.dorgqr(a, tau * 1j),
        lambda: lapack.dormqr("L", "N", a, tau, c * 1j),
    ):
        with pytest.raises(TypeError, match="complex"):
            wrong()


def test_refusals_of_least_squares_and_blocks():
    a, b, t, one = np.ones((5, 3)), np.ones((5, 2)), np.ones((2, 3)), np.eye(3)
    for wrong, message in (
        (lambda: lapack.dgels(a, b[:4]), r"dgels: a has shape \(5, 3\) and b \(4, 2\); b needs 5 rows"),
        (lambda: lapack.dgels(a, b, lwork=3), "dgels: lwork=3 is less than 6"),
        (lambda: lapack.dgels(a, b, trans="Q"), "dgels: trans='Q'"),
        (lambda: lapack.zgels(a, b, trans="T"), "zgels: trans='T' is for real matrices"),
        (lambda: lapack.gels(np.ones((4, 5, 3)), np.ones((2, 5, 1))), "do not broadcast"),
        (lambda: lapack.dgeqrt(0, a), r"dgeqrt: nb=0 is not in 1 \.\.\. 3, for a of shape \(5, 3\)"),
        (lambda: lapack.dgeqrt(4, a), "dgeqrt: nb=4"),
        (lambda: lapack.dgemqrt(a, t, b[:4]), "dgemqrt: v has shape"),
        (lambda: lapack.dgemqrt(a, t[:, :2], b), "dgemqrt: v has shape"),
        (lambda: lapack.dtpqrt(4, 1, one, a), "dtpqrt: l=4, nb=1"),
        (lambda: lapack.dtpqrt(0, 4, one, a), "dtpqrt: l=0, nb=4"),
        (lambda: lapack.dtpqrt(0, 1, one[:2], a), "dtpqrt: l=0, nb=1"),
        (lambda: lapack.dtpmqrt(0, a, t, b[:3], b[:4]), "dtpmqrt: l=0 and the shapes v"),
        (lambda: lapack.dtpmqrt(0, a, t, b[:2], b), "dtpmqrt: l=0 and the shapes v"),
        (lambda: lapack.dgeqrf_lwork(-1, 2), "dgeqrf_lwork: m=-1 is negative"),
        (lambda: lapack.dgels_lwork(1, 2, 0.5), "dgels_lwork: nrhs=0.5 is no integer"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="complex"):
        lapack.dgels(a, b * 1j)


def on_device(array) -> fake_device.Array:
    return fake_device.Array(np.array(array, order="K"))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (1, 1), (2, 5, 3), (2, 1, 3, 3)])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("overwrite", [0, 1])
@pytest.mark.parametrize("is_generic", [False, True])
def test_arrays_on_a_device(fake, monkeypatch, letter, shape, order, overwrite, is_generic):
    """Three times: the calls that follow the first one are kept, and not checked again."""
    checked = Mock(wraps=qr_functions.factor_call)

    def routine(stem):
        return getattr(lapack, stem) if is_generic else named(lapack, letter, stem)

    *batch, m, n = shape
    a = matrix_of("random", letter, int(np.prod(batch)), m, n).reshape(shape) if batch else None
    a = matrix_of("random", letter, m, n) if a is None else a
    c, k = matrix_of("random", letter, m, 2, seed=5), min(m, n)
    start = np.array(a if order == "C" else a.swapaxes(-1, -2), order="C")
    host_qr, host_tau, _, _ = lapack.geqrf(a)
    bound = 200 * DTYPES[letter].unit_roundoff
    for _ in range(3):
        monkeypatch.setattr(qr_functions, "factor_call", checked)
        put = on_device(start)
        put = put if order == "C" else put.swapaxes(-1, -2)
        qr, tau, work, info = routine("geqrf")(put, overwrite_a=overwrite)
        assert (qr is put) == bool(overwrite) and info == 0 and work.shape == (1,) and work[0] == n
        assert overwrite or np.array_equal(put.host, a)
        np.testing.assert_allclose(qr.host, host_qr, rtol=0, atol=bound)
        np.testing.assert_allclose(tau.host, host_tau, rtol=0, atol=bound)
        assert tau.shape == (*batch, k) and tau.dtype == a.dtype
        pivoted, jpvt, scalars, *_ = routine("geqp3")(on_device(a), overwrite_a=overwrite)
        for one, other in zip((pivoted.host, jpvt.host, scalars.host), lapack.geqp3(a), strict=False):
            np.testing.assert_allclose(one, other, rtol=0, atol=bound)
        reflectors, right = on_device(qr.host[..., :k]), on_device(np.broadcast_to(c, (*batch, m, 2)))
        for side, trans, other in (("L", "C", right), ("R", "N", right.swapaxes(-1, -2))):
            before = other.host.copy()
            product, _, _ = routine("ormqr")(side, trans, reflectors, tau, other, overwrite_c=overwrite)
            expected, _, _ = lapack.ormqr(side, trans, reflectors.host, tau.host, before)
            np.testing.assert_allclose(product.host, expected, rtol=0, atol=bound)
            assert (product is other) == bool(overwrite)
        q, _, _ = routine("orgqr")(reflectors, tau, overwrite_a=overwrite)
        check_factors(a, q.host, np.triu(qr.host[..., :k, :]))
        assert (q is reflectors) == bool(overwrite)
        assert sum(not isinstance(call.args[4], np.ndarray) for call in checked.call_args_list) == 5


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3), (2, 3, 5), (0, 3), (3, 0)])
@pytest.mark.parametrize("trans", "NC")
@pytest.mark.parametrize("overwrite", [0, 1])
def test_least_squares_on_a_device(fake, letter, shape, trans, overwrite):
    """LAPACK's factors and solutions, of one right-hand side of all matrices too, again and again."""
    a = matrix_of("random", letter, *shape)
    b = matrix_of("random", letter, max(shape[-2:]), 2, seed=6)
    expected = lapack.gels(a, b, trans)
    for name in ("gels", f"{letter}gels", f"{letter}gels"):
        put, right = on_device(a), on_device(np.broadcast_to(b, (*shape[:-2], *b.shape)) if overwrite else b)
        lqr, x, info = getattr(lapack, name)(put, right, trans, None, overwrite, overwrite)
        for one, other in zip((lqr, x), expected, strict=False):
            np.testing.assert_allclose(one.host, other, rtol=0, atol=2000 * np.finfo(a.dtype).eps)
        assert (lqr is put) == (x is right) == bool(overwrite) and not info.host.any()
        assert overwrite or (np.array_equal(put.host, a) and np.array_equal(right.host, b))


def test_least_squares_without_full_rank_on_a_device(fake):
    a = np.stack([np.eye(3, 2), np.eye(3, 2) * [1, 0]])
    for matrix in (a, a.swapaxes(-1, -2)):
        _, x, info = lapack.gels(on_device(matrix), on_device(np.ones((3, 1))))
        assert list(info) == [0, 2] and np.isfinite(x.host).all()
    a, b = on_device(np.ones((5, 3))), on_device(np.ones((5, 2)))
    for wrong, message in (
        (lambda: lapack.dgels(a, on_device(np.ones((4, 1)))), r"dgels: a has shape \(5, 3\) and b \(4, 1\)"),
        (lambda: lapack.dgels(a, b, lwork=3), "dgels: lwork=3 is less than 6"),
        (lambda: lapack.zgels(a, b, trans="T", overwrite_a=1), "zgels: trans='T' is for real matrices"),
        (
            lambda: lapack.gels(on_device(np.ones((4, 5, 3))), on_device(np.ones((2, 5, 1))), "N", None, 1),
            "4",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="b a NumPy array"):
        lapack.gels(a, np.ones((5, 2)), overwrite_a=1)
    assert (a.host == 1).all() and (b.host == 1).all()


def test_queries_and_empty_arrays_on_a_device(fake):
    a = on_device(np.ones((5, 3)))
    qr, tau, work, info = lapack.dgeqrf(a, lwork=-1)
    assert qr is a and tau.shape == (3,) and work.tolist() == [3] and info == 0
    qr, jpvt, tau, work, info = lapack.dgeqp3(a, lwork=-1)
    assert qr is a and jpvt.shape == tau.shape == (3,) and work.tolist() == [4] and info == 0
    assert lapack.dorgqr(a, tau, lwork=-1)[1].tolist() == [3]
    assert lapack.dormqr("L", "T", a, tau, a, -1)[1].tolist() == [3]
    for shape in ((0, 3), (3, 0), (2, 0, 3), (0, 2, 2)):
        qr, tau, _, _ = lapack.dgeqrf(on_device(np.ones(shape)))
        assert qr.shape == shape and tau.shape == (*shape[:-2], min(shape[-2:]))
        qr, jpvt, tau, _, _ = lapack.dgeqp3(on_device(np.ones(shape)))
        assert qr.shape == shape and tau.shape == (*shape[:-2], min(shape[-2:]))
        np.testing.assert_array_equal(jpvt.host, lapack.dgeqp3(np.ones(shape))[1])


@pytest.mark.parametrize("shape", [(40, 30), (3, 6, 4)])
def test_host_arrays_on_a_device(fake, monkeypatch, shape):
    """Named, or in a stack; the factors of the reflectors return with the matrix."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    a = matrix_of("random", "z", *shape)
    start = a.copy()
    qr, tau, work, _ = lapack.geqrf(a)
    assert (
        isinstance(tau, np.ndarray) and tau.shape == (*shape[:-2], shape[-1]) and len(work) == 3 * shape[-1]
    )
    q, _, _ = lapack.orgqr(qr, tau)
    check_factors(a, q, np.triu(qr[..., : shape[-1], :]))
    product, _, _ = lapack.ormqr("L", "C", qr, tau, a)
    np.testing.assert_allclose(product[..., : shape[-1], :], np.triu(qr[..., : shape[-1], :]), atol=1e-13)
    np.testing.assert_array_equal(a, start)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape, nb", [((5, 3), 2), ((3, 5), 3), ((2, 4, 4), 1), ((3, 1, 6, 5), 2)])
def test_blocks_of_reflectors_on_a_device(fake, letter, shape, nb):
    """They are the processor's; one reflector is the identity."""
    a = matrix_of("random", letter, 6, *shape[-2:]).reshape(-1, *shape[-2:])[: int(np.prod(shape[:-2]))]
    a, (m, n), atol = a.reshape(shape), shape[-2:], 200 * DTYPES[letter].unit_roundoff
    a[..., 2:, 2] = 0
    a[..., 2, 0] = 0
    ours, theirs = named(lapack, letter, "geqrt")(nb, on_device(a)), lapack.geqrt(nb, a)
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        np.testing.assert_allclose(one.host, other, rtol=0, atol=atol)
    v, t = np.array(theirs[0][..., : min(m, n)]), theirs[1]
    v[..., np.triu(np.ones(v.shape[-2:], bool))] = np.nan  # is not read
    for side, c in (("L", matrix_of("random", letter, m, 2)), ("R", matrix_of("random", letter, 2, m))):
        for trans in "NC":
            one, _ = lapack.gemqrt(on_device(v), on_device(t), on_device(c), side, trans)
            other, _ = lapack.gemqrt(v, t, c, side, trans)
            np.testing.assert_allclose(one.host, other, rtol=0, atol=atol)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(("l", "m", "n", "nb"), [(0, 4, 3, 2), (2, 4, 3, 3), (3, 3, 3, 1), (0, 1, 5, 2)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_triangles_above_matrices_on_a_device(fake, letter, l, m, n, nb, batch):
    """They are the processor's; what is not read may be NaN, and stays."""
    a = matrix_of("random", letter, *batch, n, n)
    b = matrix_of("random", letter, *batch, m, n, seed=20)
    a[..., np.tril(np.ones((n, n), bool), -1)] = np.nan
    b[..., np.tril(np.ones((m, n), bool), l - m - 1)] = np.nan
    atol = 200 * DTYPES[letter].unit_roundoff
    ours, theirs = lapack.tpqrt(l, nb, on_device(a), on_device(b)), lapack.tpqrt(l, nb, a, b)
    for one, other in zip(ours[:3], theirs[:3], strict=True):
        np.testing.assert_allclose(one.host, other, rtol=0, atol=atol)
    _, v, t, _ = theirs
    for side, first, second in (("L", (n, 2), (m, 2)), ("R", (2, n), (2, m))):
        each = matrix_of("random", letter, *batch, *first), matrix_of("random", letter, *second, seed=1)
        for trans in "NC":
            found = lapack.tpmqrt(l, *map(on_device, (v, t, *each)), side, trans)
            expected = lapack.tpmqrt(l, v, t, *each, side, trans)
            for one, other in zip(found[:2], expected[:2], strict=True):
                np.testing.assert_allclose(one.host, other, rtol=0, atol=atol)


def test_blocks_of_reflectors_of_two_libraries(fake):
    a = on_device(np.ones((3, 3)))
    with pytest.raises(TypeError, match="tpqrt: "):
        lapack.tpqrt(0, 1, a.host, a)
    with pytest.raises(ValueError, match="do not broadcast"):
        lapack.tpqrt(0, 1, on_device(np.ones((2, 3, 3))), on_device(np.ones((3, 3, 3))))
    with pytest.raises(ValueError, match="trans='T' is for real matrices"):
        lapack.zgemqrt(a, a, a, trans="T")
