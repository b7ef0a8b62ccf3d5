"""patch_scipy(numpy=True): NumPy's functions give NumPy's results, errors and warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from patched import NUMPYS, nothing_is_left_behind, taken  # noqa: F401 - the fixture

A = np.random.default_rng(3).standard_normal((6, 6))
A = A @ A.T + 6 * np.eye(6)
B = np.arange(12.0).reshape(6, 2)


def test_numpys_functions():
    with taken(numpy=True) as patch:
        for upper in (False, True):
            np.testing.assert_allclose(np.linalg.cholesky(A, upper=upper), NUMPYS["cholesky"](A, upper=upper))
        np.testing.assert_allclose(np.linalg.solve(A, B), NUMPYS["solve"](A, B))
        np.testing.assert_allclose(np.linalg.inv(A), NUMPYS["inv"](A))
        np.testing.assert_allclose(np.linalg.det(A), NUMPYS["det"](A))
        np.testing.assert_allclose(np.linalg.slogdet(A), NUMPYS["slogdet"](A))
        for mode in ("reduced", "complete", "r", "raw"):
            for a in (A, A[:, :4], A[:4], np.stack([A, 2 * A])):
                ours, theirs = np.linalg.qr(a, mode=mode), NUMPYS["qr"](a, mode=mode)
                assert type(ours) is type(theirs)
                for one, other in zip(ours, theirs) if isinstance(theirs, tuple) else [(ours, theirs)]:
                    np.testing.assert_allclose(one, other, atol=1e-14)
        assert patch.calls["qr"] == 16
        assert type(np.linalg.slogdet(A)) is type(NUMPYS["slogdet"](A))
        assert np.linalg.det(A.astype("f")).dtype == "f"
        assert patch.calls["cholesky"] == 2 and patch.calls["slogdet"] == 2
        with taken():
            assert np.linalg.inv is not NUMPYS["inv"]
    with taken():
        assert np.linalg.inv is NUMPYS["inv"]


STACK = np.stack([A, A @ A, -A])
NARROW = np.stack([A[:, :4], 2 * A[:, :4]])


@pytest.mark.parametrize(
    ("name", "a", "options"),
    [
        ("eigvalsh", STACK, {}),
        ("eigvalsh", STACK.astype("F"), {"UPLO": "U"}),
        ("eigh", STACK, {}),
        ("eigh", STACK, {"UPLO": "U"}),
        ("svd", STACK, {"compute_uv": False}),
        ("svd", NARROW, {}),
        ("svd", NARROW.astype("f"), {"full_matrices": False}),
    ],
)
def test_stacks_of_small_matrices(name, a, options):
    """Single matrices, and large ones, stay with NumPy."""
    with taken(numpy=True) as patch:
        ours = getattr(np.linalg, name)(a, **options)
        assert patch.calls[name] == 1
        getattr(np.linalg, name)(a[0], **options)
        beyond = 81 if name == "svd" else 513
        getattr(np.linalg, name)(np.zeros((2, beyond, beyond)), **options)
        assert patch.calls[name] == 1
        with pytest.raises(np.linalg.LinAlgError, match=r"Last 2 dimensions|at least two"):
            getattr(np.linalg, name)(np.ones(3), **options)
    theirs = NUMPYS[name](a, **options)
    assert type(ours) is type(theirs)
    tolerance = 1e-3 if a.dtype.char in "fF" else 1e-9
    for one, other in zip(ours, theirs) if isinstance(theirs, tuple) else [(ours, theirs)]:
        assert one.dtype == other.dtype and one.flags.c_contiguous
        np.testing.assert_allclose(np.abs(one), np.abs(other), tolerance, tolerance)


def singular(*arguments, **options):
    raise np.linalg.LinAlgError("as of a singular matrix")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cholesky", (-A,)),
        ("inv", (np.zeros((2, 2)),)),
        ("inv", (np.stack([A, 0 * A]),)),
        ("solve", (np.ones((2, 2)), np.ones(2))),
        ("solve", (A, np.ones(3))),
        ("solve", (np.ones((1, 1)), np.ones(3))),
        ("solve", (A,)),
        *((name, (a,)) for name in ("cholesky", "inv", "det", "slogdet") for a in (np.ones((2, 3)), A[0])),
    ],
)
def test_errors_are_numpys(name, arguments, monkeypatch):
    for function in ("matrix_solution", "determinant_of"):  # which check no shapes
        monkeypatch.setattr(f"pyblasgpu.scipy_patch.numpy_functions.{function}", singular)
    with pytest.raises(Exception) as expected:
        NUMPYS[name](*arguments)
    with pytest.raises(expected.type) as actual, taken(numpy=True):
        getattr(np.linalg, name)(*arguments)
    assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize(
    "a",
    [np.diag([1, 1e-30]), np.diag([1e200, 1e200]), np.diag([1, np.nan]), np.diag([1e-200, 1e200])],
    ids=str,
)
@pytest.mark.parametrize("name", ["solve", "inv", "det", "slogdet"])
def test_numpys_functions_warn_as_numpys(name, a):
    """Warnings are of overflow and of what is no number, not of a condition."""
    arguments = (a, np.ones(2)) if name == "solve" else (a,)

    def texts(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(*arguments)
        assert function is NUMPYS[name] or all(each.filename == __file__ for each in caught)
        return [(each.category, str(each.message)) for each in caught]

    with taken(numpy=True) as patch:
        assert texts(getattr(np.linalg, name)) == texts(NUMPYS[name])
        assert patch.calls[name] == 1
