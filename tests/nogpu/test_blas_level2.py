"""The Level 2 of `pyblasgpu.blas` beside SciPy's: signatures, offsets, increments, outputs, errors."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import blas as scipy_blas

from pyblasgpu import blas
from pyblasgpu.types import DTYPES

PRODUCTS = ["sgemv", "dgemv", "cgemv", "zgemv", "ssymv", "dsymv", "chemv", "zhemv"]
TRIANGULAR = [letter + stem for stem in ("trmv", "trsv") for letter in DTYPES]
OUTER = ["sger", "dger", "cgeru", "zgeru", "cgerc", "zgerc"]
UPDATES = [
    "ssyr",
    "dsyr",
    "csyr",
    "zsyr",
    "cher",
    "zher",
    "ssyr2",
    "dsyr2",
    "cher2",
    "zher2",
]
STEPS = st.sampled_from((1, 2, 3, -1, -2))
SEEDS = st.integers(0, 999)
QUICK = settings(max_examples=25, deadline=None)


def reals(rng: np.random.Generator, name: str, *shape: int) -> np.ndarray:
    """Numbers of the routine's dtype, column-major."""
    dtype = DTYPES[name[0]]
    values = rng.uniform(-1, 1, shape).astype(dtype.name)
    return np.asfortranarray(values + 1j * rng.uniform(-1, 1, shape) if dtype.is_complex else values).astype(
        dtype.name
    )


def both(name: str, *arguments, **options) -> tuple[np.ndarray, np.ndarray]:
    """Ours and SciPy's, each with arrays of its own."""
    results = []
    for module in (blas, scipy_blas):
        own = [np.array(a, order="K") if isinstance(a, np.ndarray) else a for a in arguments]
        keywords = {k: np.array(v, order="K") if isinstance(v, np.ndarray) else v for k, v in options.items()}
        results.append(getattr(module, name)(*own, **keywords))
        for key in ("x", "y", "a"):  # what SciPy writes into is written, what it leaves is left
            if key in keywords:
                results[-1] = (
                    (*results[-1], keywords[key])
                    if isinstance(results[-1], tuple)
                    else (
                        results[-1],
                        keywords[key],
                    )
                )
    return tuple(results)


def same(actual, expected, name: str, terms: int = 60) -> None:
    actual, expected = (x if isinstance(x, tuple) else (x,) for x in (actual, expected))
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=64 * terms * DTYPES[name[0]].unit_roundoff)


@pytest.mark.parametrize("name", PRODUCTS + TRIANGULAR + OUTER + UPDATES)
def test_the_signature_is_scipys(name):
    """Its order and names are told by the first line of SciPy's docstring."""
    line = getattr(scipy_blas, name).__doc__.splitlines()[0]
    inside = line.partition("(")[2].rpartition(")")[0]
    names = [part.strip(" []") for part in inside.replace("[", "").split(",")]
    assert list(inspect.signature(getattr(blas, name)).parameters) == names
    doc = getattr(blas, name).__doc__
    assert f"``{line}``" in doc.replace(", ", ",") and "%(" not in doc
    assert getattr(blas, name).typecode == name[0] and name in blas.__all__


@pytest.mark.parametrize("name", PRODUCTS)
@given(
    SEEDS,
    st.integers(1, 9),
    st.integers(1, 9),
    STEPS,
    STEPS,
    st.integers(0, 2),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
@QUICK
def test_products(name, seed, m, n, incx, incy, offx, offy, has_y, overwrite, is_f):
    rng = np.random.default_rng(seed)
    trans = int(rng.integers(0, 3))
    n = m if name[1:] != "gemv" else n
    rows, cols = (n, m) if trans and name[1:] == "gemv" else (m, n)
    a = reals(rng, name, rows, cols)
    a = a if is_f else np.ascontiguousarray(a)
    x = reals(rng, name, 1 + offx + (n - 1) * abs(incx) + seed % 2)
    options = {"offx": offx, "incx": incx, "offy": offy, "incy": incy}
    options |= {"trans": trans} if name[1:] == "gemv" else {"lower": trans % 2}
    if has_y:
        y = reals(rng, name, 1 + offy + (m - 1) * abs(incy) + seed % 3)
        options |= {"y": y, "beta": 0.5, "overwrite_y": overwrite}
    same(*both(name, 1.5, a, x, **options), name)


@pytest.mark.parametrize("name", TRIANGULAR)
@given(SEEDS, st.integers(1, 9), STEPS, st.integers(0, 2), st.booleans(), st.booleans(), st.booleans())
@QUICK
def test_triangles(name, seed, n, incx, offx, lower, unit, overwrite):
    rng = np.random.default_rng(seed)
    a = reals(rng, name, n, n) / 8 + np.eye(n, dtype=DTYPES[name[0]].name)
    a[np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)] = np.nan
    if unit:
        np.fill_diagonal(a, np.nan)
    x = reals(rng, name, 1 + offx + (n - 1) * abs(incx) + seed % 2)
    flags = {"lower": lower, "trans": seed % 3, "diag": unit, "offx": offx, "incx": incx}
    actual, expected = both(name, a, x=x, overwrite_x=overwrite, **flags)
    if np.isnan(expected[0]).any():  # OpenBLAS reads the other triangle of some small ones
        clean = np.where(np.isnan(a), 1, a)
        actual, expected = both(name, clean, x=x, overwrite_x=overwrite, **flags)
    same(actual, expected, name)


@pytest.mark.parametrize("name", OUTER)
@given(SEEDS, st.integers(1, 9), st.integers(1, 9), st.booleans(), st.booleans(), st.booleans())
@QUICK
def test_outer_products(name, seed, m, n, has_a, overwrite, is_f):
    rng = np.random.default_rng(seed)
    x, y, a = reals(rng, name, m), reals(rng, name, n), reals(rng, name, m, n)
    options = {"a": a if is_f else np.ascontiguousarray(a), "overwrite_a": overwrite} if has_a else {}
    same(*both(name, 1.5, x, y, **options), name)
    reversed_ = getattr(blas, name)(1.5, x, y, incx=-1)
    np.testing.assert_array_equal(reversed_, getattr(blas, name)(1.5, x[::-1].copy(), y))


@pytest.mark.parametrize("name", UPDATES)
@given(SEEDS, st.integers(1, 9), STEPS, STEPS, st.integers(0, 2), st.booleans(), st.booleans(), st.booleans())
@QUICK
def test_updates_of_a_triangle(name, seed, n, incx, incy, offx, has_a, overwrite, lower):
    rng = np.random.default_rng(seed)
    length = 1 + offx + (n - 1) * abs(incx)
    options = {"incx": incx, "offx": offx, "lower": lower}
    arguments = [1.5, reals(rng, name, length + seed % 2)]
    if name.endswith("2"):
        arguments.append(reals(rng, name, 1 + (n - 1) * abs(incy)))
        options |= {"incy": incy}
    if seed % 3 == 0 or has_a:
        options |= {"n": n}
    if has_a:
        a = reals(rng, name, n, n)
        if name[1:].startswith("her"):
            a.imag[np.diag_indices(n)] = 0
        options |= {"a": a, "overwrite_a": overwrite}
    same(*both(name, *arguments, **options), name)


def test_what_is_not_read():
    """With beta 0 y may hold NaN; of a triangle the other one, and of a Hermitian one imaginary parts."""
    y = np.full(5, np.nan)
    assert np.isfinite(blas.dgemv(1, np.ones((5, 3)), np.ones(3), 0, y)).all()
    a = np.full((4, 4), np.nan + 1j * np.nan)
    a[np.tril_indices(4)] = 1
    a.imag[np.diag_indices(4)] = np.nan
    np.testing.assert_array_equal(blas.zhemv(1, a, np.ones(4), lower=1), np.full(4, 4.0))
    assert np.isnan(blas.dgemv(0, np.full((2, 2), np.nan), np.ones(2), 1, np.ones(2))).sum() == 0


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("dgemv", (1, np.ones((3, 2)), np.ones(3)), {"trans": 0, "offx": 2}, "dgemv: x has 3 elements"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(1)), {}, "dgemv: x has 1 elements"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(2)), {"incx": 0}, "dgemv: incx is 0"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(2)), {"incy": 0}, "incy is 0"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(2)), {"y": np.ones(2)}, "dgemv: y has 2 elements"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(2)), {"trans": 3}, "trans=3"),
        ("dsymv", (1, np.ones((3, 2)), np.ones(2)), {}, "dsymv: a has shape (3, 2)"),
        ("dtrmv", (np.ones((3, 3)), np.ones(2)), {}, "dtrmv: x has 2 elements"),
        ("dger", (1, np.ones(3), np.ones(2)), {"incx": 2}, "dger: incx=2"),
        ("dger", (1, np.ones(3), np.ones(2)), {"a": np.ones((2, 3))}, "dger: a has shape (2, 3)"),
        ("dsyr", (1, np.ones(3)), {"n": 5}, "dsyr: x has 3 elements"),
        ("dsyr", (1, np.ones(3)), {"n": -1}, "dsyr: n=-1 is negative"),
        ("dsyr2", (1, np.ones(3), np.ones(3)), {"a": np.ones((2, 2))}, "dsyr2: a has shape (2, 2)"),
    ],
)
def test_bad_arguments_are_named(name, arguments, options, message):
    kept = {key: np.array(value) for key, value in options.items()}
    with pytest.raises(ValueError) as error:
        getattr(blas, name)(*arguments, **options)
    assert message in str(error.value)
    assert all(np.array_equal(value, options[key]) for key, value in kept.items())


def test_complex_arguments_of_real_routines():
    with pytest.raises(TypeError, match="dgemv: x is complex"):
        blas.dgemv(1, np.ones((2, 2)), np.ones(2) * 1j)
    with pytest.raises(TypeError, match="dgemv: alpha=1j is complex"):
        blas.dgemv(1j, np.ones((2, 2)), np.ones(2))
    with pytest.raises(TypeError, match="zher: alpha=1j is complex"):
        blas.zher(1j, np.ones(2))


def test_a_result_in_y_that_x_shares():
    """x is copied where it shares memory with what is written."""
    y = np.arange(4.0)
    expected = scipy_blas.dgemv(2, np.ones((4, 4)), y.copy(), 1, y.copy())
    np.testing.assert_allclose(blas.dgemv(2, np.ones((4, 4), order="F"), y, 1, y, overwrite_y=1), expected)


def test_functions_by_name():
    gemv, ger = blas.get_blas_funcs(("gemv", "ger"), dtype="complex128")
    assert (gemv, ger) == (blas.zgemv, blas.zgerc)
    with pytest.raises(ValueError, match="zsymv could not be found"):
        blas.get_blas_funcs("symv", dtype="complex128")
