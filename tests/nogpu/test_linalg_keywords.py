"""Keywords of matmul and solve_triangular: NumPy and SciPy take and refuse the same."""

from __future__ import annotations

from itertools import product

import fake_device
import numpy as np
import pytest
import scipy.linalg

from pyblasgpu.linalg import matmul, solve_triangular

A, B = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
UPPER = np.array([[2.0, 3.0], [1.0, 4.0]])  # both triangles are solvable, and differ


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


# ------------------------------------------------------------------------------------------------- matmul


def outcome(function, *arguments, **options):
    """The result, or the class of the error: TypeError or ValueError."""
    try:
        return function(*arguments, **options)
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


def compare(*arguments, **options):
    actual, expected = outcome(matmul, *arguments, **options), outcome(np.matmul, *arguments, **options)
    if isinstance(expected, type) or isinstance(actual, type):
        assert actual is expected, options
        return
    np.testing.assert_array_equal(actual, expected, strict=True)
    assert type(actual) is type(expected)


SHAPES = [
    ((2, 3), (3, 4)),
    ((3,), (2, 3, 4)),
    ((2, 2, 3), (3,)),
    ((2, 2, 3), (2, 3, 4)),
    ((5, 1, 2, 3), (2, 3, 4)),
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((3,), (5, 2, 3, 4)),
    ((0, 3), (3, 2)),
    ((2, 0, 3), (3, 2)),
    ((3,), (0, 3, 2)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["F", "C", "A", "f", "c", "a"])
def test_the_order_is_numpys(shapes, order):
    for orders in product("CF", repeat=2):
        x1, x2 = (
            np.asarray(np.arange(float(np.prod(shape))).reshape(shape), order=each)
            for shape, each in zip(shapes, orders)
        )
        actual, expected = matmul(x1, x2, order=order), np.matmul(x1, x2, order=order)
        np.testing.assert_array_equal(actual, expected, strict=True)
        for flag in ("c_contiguous", "f_contiguous"):
            assert getattr(actual.flags, flag) == getattr(expected.flags, flag), orders


@pytest.mark.parametrize("shapes", SHAPES[:5], ids=str)
def test_the_order_of_device_arrays(fake, shapes):
    x1, x2 = (np.arange(float(np.prod(shape))).reshape(shape) for shape in shapes)
    actual = matmul(fake_device.Array(x1), fake_device.Array(x2), order="F")
    np.testing.assert_array_equal(actual.host, x1 @ x2)
    assert actual.host.flags.f_contiguous


CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe", np.str_("safe")]


@pytest.mark.parametrize("casting", [*CASTINGS, "x", None, 1, "SAFE", "s", "", ["safe"], "same_value"])
def test_casting(casting):
    compare(A, B, casting=casting)
    for one, two in product("fdFD", repeat=2):
        compare(A.astype(one), B.astype(two), casting=casting)
        compare(A.astype(one), B.astype(one), casting=casting, out=np.ones((2, 2), two))
    if casting != "unsafe":  # NumPy warns of imaginary parts that are dropped
        for one, two in product("fdFD", repeat=2):
            compare(A.astype(one), B, casting=casting, dtype=two)


@pytest.mark.parametrize("order", ["X", "x", 1, "KA", "", True, ["C"], "Keep", np.str_("F"), None, "k"])
def test_orders_that_are_none(order):
    compare(A, B, order=order)
    compare(A, B, order=order, out=np.ones((2, 2)))


@pytest.mark.parametrize(
    "dtype",
    [
        float,
        complex,
        np.float32,
        np.complex64,
        np.dtype("D"),
        "f4",
        "d",
        "complex64",
        "<f8",
        None,
        ">f8",
        np.dtype(">c8"),
        "x",
        1,
        "S",
        "M8[s]",
        (np.float64,),
    ],
    ids=repr,
)
def test_dtypes(dtype):
    compare(A, B, dtype=dtype)
    compare(A, B, dtype=dtype, casting="safe")


@pytest.mark.parametrize("dtype", [int, bool, "i8", object, np.float16, np.longdouble])
def test_dtypes_that_numpy_alone_computes_in(dtype):
    with pytest.raises(TypeError):
        matmul(A, B, dtype=dtype, casting="unsafe")


@pytest.mark.parametrize("subok", [True, False, None, 1, 0, "x", np.True_, []])
def test_subok(subok):
    compare(A, B, subok=subok)


@pytest.mark.parametrize(
    "out",
    [
        (),
        (np.ones((2, 2)),) * 2,
        (None,),
        [[1.0, 2], [3, 4]],
        1.0,
        "x",
        np.ones((2, 3)),
        np.ones(2),
        np.ones((3, 2, 2)),
        np.ones((2, 2), "i"),
        np.ones((2, 2), "D"),
        np.broadcast_to(1.0, (2, 2)),
    ],
    ids=repr,
)
def test_outputs(out):
    compare(A, B, out=out)


@pytest.mark.parametrize("option", ["axis", "where", "foo", "keepdims", "axes", "signature"])
def test_other_keywords_are_refused(option):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        matmul(A, B, **{option: [(0, 1)] * 3})


@pytest.mark.parametrize(
    "arguments", [([[1, 2], [3]], A), (A, None), ("ab", A), (A, {}), ([], []), ([[]], [[]])]
)
def test_what_is_no_array(arguments):
    assert isinstance(outcome(matmul, *arguments), type) == isinstance(outcome(np.matmul, *arguments), type)


# --------------------------------------------------------------------------------------- solve_triangular


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"lower": "U"}, {}),
        ({"lower": "u"}, {}),
        ({"lower": "L"}, {"lower": True}),
        ({"lower": 0}, {}),
        ({"lower": np.True_}, {"lower": True}),
        ({"lower": np.int64(1)}, {"lower": True}),
        ({"lower": np.array(False)}, {}),
        ({"lower": np.str_("L")}, {"lower": True}),
        ({"unit_diagonal": "N"}, {}),
        ({"unit_diagonal": "U"}, {"unit_diagonal": True}),
        ({"unit_diagonal": np.False_}, {}),
        ({"unit_diagonal": 1}, {"unit_diagonal": True}),
        ({"trans": np.int8(1)}, {"trans": 1}),
        ({"trans": np.str_("t")}, {"trans": 1}),
        ({"trans": np.True_}, {"trans": 1}),
        ({"check_finite": np.True_, "overwrite_b": np.False_}, {}),
    ],
)
def test_every_spelling_of_a_flag(ours, theirs):
    b = np.array([[1.0], [2.0]])
    expected = scipy.linalg.solve_triangular(UPPER, b, **theirs)
    np.testing.assert_array_equal(solve_triangular(UPPER, b, **ours), expected)


@pytest.mark.parametrize("flag", ["lower", "unit_diagonal", "trans"])
@pytest.mark.parametrize(
    "value", ["False", "X", "", 0.5, 1.0, None, 3, -1, [1], np.array([0, 1]), b"L"], ids=repr
)
def test_what_is_no_flag(flag, value):
    with pytest.raises(ValueError, match=f"solve_triangular: {flag}="):
        solve_triangular(UPPER, np.ones(2), **{flag: value})


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 3), (3, 0)),
        ((0, 0), (0, 0)),
        ((0, 0), (0,)),
        ((0, 0), (0, 4)),
        ((2, 3, 3), (3, 0)),
        ((2, 3, 3), (2, 3, 0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", "fdFDi")
def test_nothing_to_solve(shapes, dtype):
    """Not even where the matrix is singular."""
    a, b = (np.zeros(shape, dtype) for shape in shapes)
    expected = scipy.linalg.solve_triangular(a, b)
    np.testing.assert_array_equal(solve_triangular(a, b), expected, strict=True)
    np.testing.assert_array_equal(solve_triangular(a, b, check_finite=False), expected, strict=True)


def test_nothing_to_solve_is_looked_at_for_nan():
    a = np.full((3, 3), np.nan)
    for solve in (solve_triangular, scipy.linalg.solve_triangular):
        with pytest.raises(ValueError, match="infs or NaNs"):
            solve(a, np.ones((3, 0)))


def test_errors_name_the_routine():
    for arguments in [(UPPER, np.ones(3)), (A, np.ones(2)), (UPPER, 1.0), ([[1, 2], [3]], [1, 2])]:
        with pytest.raises(ValueError, match=r"^solve_triangular: "):
            solve_triangular(*arguments)
    with pytest.raises(ValueError, match="solve_triangular: the leading dimensions of a"):
        solve_triangular(np.ones((2, 3, 3)), np.ones((4, 3, 1)))


# ------------------------------------------------------------------------------------------- overwriting


def test_what_is_read_too_is_not_overwritten():
    a = UPPER.copy()
    np.testing.assert_array_equal(solve_triangular(a, a, overwrite_b=True), solve_triangular(a, UPPER))
    np.testing.assert_array_equal(a, UPPER)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_an_array_of_another_library_is_overwritten_or_copied(library):
    module = pytest.importorskip("jax.numpy" if library == "jax" else "torch")
    make = module.asarray if library == "jax" else module.tensor
    a, b = make([[2.0, 1.0], [0.0, 4.0]]), make([[2.0], [4.0]])
    expected = scipy.linalg.solve_triangular(np.asarray(a), np.asarray(b))
    actual = solve_triangular(a, b, overwrite_b=True)
    assert type(actual) is type(b)
    np.testing.assert_array_equal(np.asarray(actual), expected)
    np.testing.assert_array_equal(np.asarray(b), [[2.0], [4.0]] if library == "jax" else expected)


def test_lazy_views_of_torch_are_copied():
    torch = pytest.importorskip("torch")
    a, b = torch.tensor([[2.0, 1], [0, 4]], dtype=torch.complex128), torch.tensor([[2 + 1j], [4.0]])
    b = b.to(torch.complex128)
    for lazy in (b.conj(), b.expand(2, 3)):
        before = lazy.clone().resolve_conj()
        actual = solve_triangular(a, lazy, overwrite_b=True)
        expected = scipy.linalg.solve_triangular(a.numpy(), before.numpy())
        np.testing.assert_array_equal(actual.numpy(), expected)
        assert torch.equal(lazy.resolve_conj(), before)
