"""matmul against NumPy's, solve_triangular against SciPy's."""

from __future__ import annotations

import inspect

import fake_device
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from pyblasgpu.linalg import matmul, solve_triangular
from pyblasgpu.testing import reference
from pyblasgpu.types import DTYPES

D = DTYPES["d"]


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


# ------------------------------------------------------------------------------------------------- matmul


def test_signatures():
    signature = inspect.signature(matmul)
    bare = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    assert str(signature.replace(parameters=bare, return_annotation=signature.empty)) == (
        "(x1, x2, /, out=None, *, casting='same_kind', order='K', dtype=None, subok=True, method=None)"
    )
    ours, theirs = (
        inspect.signature(f).parameters for f in (solve_triangular, scipy.linalg.solve_triangular)
    )
    assert list(ours) == list(theirs)
    assert [x.default for x in ours.values()][:-1] == [x.default for x in theirs.values()][:-1]


@given(
    mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=3, max_side=3),
    st.sampled_from("sdcz"),
)
def test_matmul_is_numpys(shapes, letter):
    rng = np.random.default_rng(1)
    x1, x2 = (reference.integers(rng, shape, DTYPES[letter]) for shape in shapes.input_shapes)
    actual, expected = matmul(x1, x2), np.matmul(x1, x2)
    np.testing.assert_array_equal(actual, expected, strict=True)
    assert type(actual) is type(expected)


@pytest.mark.parametrize(("one", "two"), [("f4", "f8"), ("f8", "F"), ("f2", "f4"), ("i4", "f4")])
def test_matmul_promotes(one, two):
    x1, x2 = np.eye(2, dtype=one), np.eye(2, dtype=two)
    np.testing.assert_array_equal(matmul(x1, x2), np.matmul(x1, x2), strict=True)


def test_products_of_integers_are_float64():
    np.testing.assert_array_equal(matmul([[1, 2]], [3, 4]), np.array([11.0]), strict=True)


A, B = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "f4"},
        {"dtype": "D"},
        {"order": "F"},
        {"order": "C"},
        {"order": "A"},
        {"out": np.ones((2, 2))},
        {"out": np.ones((2, 2), "f4")},
        {"out": (np.ones((2, 2), order="F"),)},
        {"out": np.ones((3, 2, 2))},
        {"out": np.ones((2, 2), int), "casting": "unsafe"},
    ],
)
def test_options_are_numpys(options):
    actual, expected = matmul(A, B, **options), np.matmul(A, B, **options)
    np.testing.assert_array_equal(actual, expected, strict=True)
    assert actual.flags.f_contiguous == expected.flags.f_contiguous
    if "out" in options:
        assert actual is (options["out"][0] if isinstance(options["out"], tuple) else options["out"])


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((A, A), {}),
        ((2, 3), {}),
        ((A, 3.0), {}),
        ((A, B), {"out": np.ones((2, 3))}),
        ((A, B), {"out": np.ones((2, 2), int)}),
        ((A, B), {"dtype": "f4", "casting": "no"}),
        ((A, B), {"order": "X"}),
        ((A, np.ones(2)), {}),
        ((A, np.ones(3)), {"out": np.ones(3)}),
    ],
)
def test_errors_are_of_numpys_kind(arguments, options):
    with pytest.raises((ValueError, TypeError)) as numpys:
        np.matmul(*arguments, **options)
    with pytest.raises(ValueError if numpys.type is ValueError else TypeError):
        matmul(*arguments, **options)


def test_out_may_be_an_input():
    for which in range(2):
        pair = [np.arange(9.0).reshape(3, 3), np.ones((3, 3))]
        expected = pair[0] @ pair[1]
        assert matmul(*pair, out=pair[which]) is pair[which]
        np.testing.assert_array_equal(pair[which], expected)


def test_out_of_a_product_with_a_vector():
    out = np.ones(2)
    assert matmul(A, np.ones(3), out=out) is out
    np.testing.assert_array_equal(out, A.sum(1))


def test_matmul_on_device_arrays(fake):
    put = fake_device.Array
    np.testing.assert_array_equal(matmul(put(A), put(B)).host, A @ B)
    np.testing.assert_array_equal(matmul(put(A), put(B[:, 0])).host, A @ B[:, 0])
    square = np.arange(9.0).reshape(3, 3)
    out = put(square.copy())
    assert matmul(out, put(square), out=out) is out
    np.testing.assert_array_equal(out.host, square @ square)
    with pytest.raises(TypeError, match="one library"):
        matmul(put(A), B)


# --------------------------------------------------------------------------------------- solve_triangular


@given(st.data(), st.sampled_from("sdcz"))
def test_solve_triangular_is_scipys(data, letter):
    n = data.draw(st.integers(1, 5))
    batch_shape = data.draw(st.sampled_from([(), (2,), (3, 1)]))
    shape = data.draw(st.sampled_from([(n,), (n, 2), (2, n, 1), (1, n, 2)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = (reference.integers(rng, size, DTYPES[letter]) for size in ((*batch_shape, n, n), shape))
    a[..., np.arange(n), np.arange(n)] = 1
    options = {name: data.draw(st.booleans()) for name in ("lower", "unit_diagonal")}
    options["trans"] = data.draw(st.sampled_from([0, 1, 2, "N", "T", "C"]))
    expected = scipy.linalg.solve_triangular(a, b, **options)
    np.testing.assert_array_equal(solve_triangular(a, b, **options), expected, strict=True)


@pytest.mark.parametrize(("one", "two"), [("i8", "i8"), ("f2", "f4"), ("f4", "D"), ("f8", "F")])
def test_solve_triangular_promotes(one, two):
    a, b = 2 * np.eye(2, dtype=one), np.ones(2, dtype=two)
    np.testing.assert_array_equal(solve_triangular(a, b), scipy.linalg.solve_triangular(a, b), strict=True)


def test_overwrite_b():
    """Right-hand sides are by columns, as SciPy has them."""
    a, b = 2 * np.eye(2), np.ones((2, 3), order="F")
    assert np.shares_memory(solve_triangular(a, b, overwrite_b=True), b) and (b == 0.5).all()
    read_only = np.ones((2, 3), order="F")
    read_only.flags.writeable = False
    for matrices, kept in ((a, np.ones((2, 3))), (np.stack([a, a]), b / b), (a, read_only)):
        solve_triangular(matrices, kept, overwrite_b=True)
        assert (kept == 1).all()


SINGULAR = np.diag([1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.eye(3), np.ones(4)), {}, r"shapes of a \(3, 3\) and b \(4,\) are incompatible"),
        ((np.eye(3), 1.0), {}, "incompatible"),
        ((np.ones((2, 3)), np.ones(2)), {}, "expected square matrix"),
        ((np.ones(3), np.ones(3)), {}, "expected square matrix"),
        ((np.eye(3), np.full(3, np.nan)), {}, "infs or NaNs"),
        ((np.diag([1, np.inf, 1]), np.ones(3)), {}, "infs or NaNs"),
        ((np.eye(3), np.ones(3)), {"trans": 3}, "trans=3"),
        ((np.eye(3), np.ones(3)), {"trans": "X"}, "trans='X'"),
    ],
)
def test_errors(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        solve_triangular(*arguments, **options)


@pytest.mark.parametrize("check_finite", [None, True, False])
@pytest.mark.parametrize("a", [SINGULAR, np.stack([np.eye(3), SINGULAR])], ids=["one", "stack"])
def test_a_singular_matrix(a, check_finite):
    with pytest.raises(np.linalg.LinAlgError, match="singular matrix: resolution failed at diagonal 1"):
        solve_triangular(a, np.ones(3), check_finite=check_finite)
    assert np.isfinite(solve_triangular(a, np.ones(3), unit_diagonal=True)).all()


def test_without_check_finite_nan_goes_through():
    assert np.isnan(solve_triangular(np.eye(2), np.full(2, np.nan), check_finite=False)).all()


@pytest.mark.parametrize("shapes", [((0, 0), (0,)), ((0, 0), (0, 2)), ((3, 3), (3, 0)), ((2, 0, 0), (0, 1))])
def test_empty_systems(shapes):
    a, b = map(np.ones, shapes)
    expected = scipy.linalg.solve_triangular(a, b)
    np.testing.assert_array_equal(solve_triangular(a, b), expected, strict=True)


def test_device_arrays_are_not_looked_at(fake):
    put = fake_device.Array
    with np.errstate(all="ignore"):
        result = solve_triangular(put(SINGULAR), put(np.ones((3, 1))))
    assert not np.isfinite(result.host).all()


def test_device_arrays_are_looked_at_when_asked(fake, monkeypatch):
    class Namespace:
        def __getattr__(self, name):
            return lambda *args, **options: getattr(np, name)(
                *(getattr(x, "host", x) for x in args), **options
            )

    monkeypatch.setattr("array_api_compat.array_namespace", lambda *arrays: Namespace())
    put = fake_device.Array
    with pytest.raises(np.linalg.LinAlgError, match="at diagonal 1"):
        solve_triangular(put(SINGULAR), put(np.ones((3, 1))), check_finite=True)
    with pytest.raises(ValueError, match="infs or NaNs"):
        solve_triangular(put(np.eye(3)), put(np.full((3, 1), np.inf)), check_finite=True)
