"""Cholesky, LU and solves against SciPy's: results, classes of errors and their words."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import scipy
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from pyblasgpu import linalg

LETTERS = "fdFD"
RELEASE = tuple(map(int, scipy.__version__.split(".")[:2]))


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def matrix(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def definite(shape, dtype, seed=0):
    a = matrix(shape, dtype, seed)
    return (a @ a.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def close(actual, expected, strict=True):
    """Equal in class, dtype and shape, and near, as the matrices are well-conditioned."""
    assert type(actual) is type(expected)
    tolerance = 1e4 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(actual, expected, tolerance, tolerance, strict=strict)


NAMES = ["cholesky", "cho_factor", "cho_solve", "lu_factor", "lu_solve", "lu", "ldl", "solve", "inv", "det"]


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_scipys(name):
    ours, theirs = (
        list(inspect.signature(getattr(m, name)).parameters.values()) for m in (linalg, scipy.linalg)
    )
    ours = [p for p in ours if p.name != "method"]  # which SciPy lacks
    if len(theirs) == len(ours):  # older ones lack the last
        assert [(p.name, p.kind) for p in ours] == [(p.name, p.kind) for p in theirs]
    defaults = {p.name: p.default for p in theirs}
    for parameter in ours:
        if parameter.name in defaults and parameter.name not in ("check_finite", "assume_a"):
            assert parameter.default == defaults[parameter.name]


# ----------------------------------------------------------------------------------------------- Cholesky


@pytest.mark.parametrize("lower", [False, True])
@settings(max_examples=50)
@given(data=st.data())
def test_cholesky_and_its_solves(lower, data):
    dtype = data.draw(st.sampled_from(LETTERS))
    n, batch = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([(), (2,), (2, 3)]))
    a = definite((*batch, n, n), dtype)
    other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
    poisoned = a.copy(data.draw(st.sampled_from("CF")))
    poisoned[..., other[0], other[1]] = np.nan
    factor = linalg.cholesky(poisoned, lower=lower, check_finite=False)
    close(factor, scipy.linalg.cholesky(a, lower=lower))
    c, low = linalg.cho_factor(poisoned, lower, check_finite=False)
    assert low is lower
    kept = np.tril if lower else np.triu
    close(kept(c), factor)
    b = matrix(data.draw(st.sampled_from([(n,), (n, 1), (n, 4), (2, n, 2), (2, 3, n, 1)])), dtype, 1)
    if batch == (2,) or (batch and b.ndim == 3):
        b = b.reshape(-1, *b.shape[-2:])[0] if b.ndim > 1 else b
    expected = scipy.linalg.cho_solve((factor, lower), b)
    close(linalg.cho_solve((factor, low), b), expected)
    close(linalg.solve(a, b, lower=lower, assume_a="pos"), expected)


@pytest.mark.parametrize(
    "a", [4.0, [[4]], np.eye(2, dtype=int), np.eye(2, dtype="f2"), np.zeros((0, 0)), np.zeros((2, 0, 0))]
)
def test_what_cholesky_takes(a):
    np.testing.assert_array_equal(linalg.cholesky(a), scipy.linalg.cholesky(a), strict=True)


@pytest.mark.parametrize("upper", [True, False, 1, np.False_])
def test_the_triangle_of_cholesky_by_the_array_api(upper):
    a = definite((2, 3, 3), "D")
    np.testing.assert_allclose(linalg.cholesky(a, upper=upper), np.linalg.cholesky(a, upper=bool(upper)))
    np.testing.assert_array_equal(linalg.cholesky(a, upper=False), linalg.cholesky(a, lower=True))


def test_flags_of_cholesky_that_contradict_each_other():
    a = definite((3, 3), "d")
    for lower in (True, "L", 1):
        with pytest.raises(ValueError, match=r"cholesky: lower=.* and upper=True contradict"):
            linalg.cholesky(a, lower, upper=True)
    with pytest.raises(ValueError, match="cholesky: upper="):
        linalg.cholesky(a, upper="no")


def test_overwrite_a_of_cholesky():
    a = np.asfortranarray(definite((5, 5), "d"))
    expected = scipy.linalg.cholesky(a)
    assert np.shares_memory(linalg.cholesky(a, overwrite_a=True), a)
    np.testing.assert_allclose(a, expected, atol=1e-15)
    kept = definite((5, 5), "d")
    before = kept.copy()
    linalg.cholesky(kept)
    np.testing.assert_array_equal(kept, before)


@pytest.mark.parametrize("name", ["cholesky", "cho_factor", "lu_factor", "lu", "inv", "det", "solve"])
def test_host_stacks_that_are_overwritten(name):
    """By rows alone, and where SciPy does."""
    for order in "CF":
        a = np.asarray(np.stack([definite((5, 5), "d")] * 2), order=order)
        before, kept = a.copy(), a.copy("K")
        arguments = (np.ones(5),) if name == "solve" else ()
        getattr(linalg, name)(a, *arguments, overwrite_a=True)
        scipys = name in ("det", "lu") and order == "C"
        assert np.array_equal(a, before) != scipys
        getattr(linalg, name)(kept, *arguments)
        np.testing.assert_array_equal(kept, before)


def test_overwrite_b_of_cho_solve():
    factor = linalg.cho_factor(definite((5, 5), "d"))
    b = np.asfortranarray(matrix((5, 3), "d"))
    expected = linalg.cho_solve(factor, b)
    assert np.shares_memory(linalg.cho_solve(factor, b, overwrite_b=True), b)
    np.testing.assert_array_equal(b, expected)


# ----------------------------------------------------------------------------------------------------- LU


@given(st.data())
def test_lu_and_its_solves(data):
    dtype, batch = data.draw(st.sampled_from(LETTERS)), data.draw(st.sampled_from([(), (2,), (1, 3)]))
    m, n = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    a = matrix((*batch, m, n), dtype)
    for actual, expected in zip(linalg.lu_factor(a), scipy.linalg.lu_factor(a), strict=True):
        close(actual, expected)
    options = {name: data.draw(st.booleans()) for name in ("permute_l", "p_indices")}
    for actual, expected in zip(linalg.lu(a, **options), scipy.linalg.lu(a, **options), strict=True):
        close(actual, expected, strict=(m, n) != (1, 1))  # SciPy's dtype of the permutation is another then


@settings(max_examples=50)
@given(st.data())
def test_solves_of_lu(data):
    dtype, batch = data.draw(st.sampled_from(LETTERS)), data.draw(st.sampled_from([(), (2,), (2, 3)]))
    n = data.draw(st.integers(2, 6))  # of order 1 SciPy takes no stacks
    a = matrix((*batch, n, n), dtype) + 2 * n * np.eye(n, dtype=dtype)
    factors = linalg.lu_factor(a)
    b = matrix(
        data.draw(st.sampled_from([(n,), (n, 2), (3, n, 2)] if len(batch) != 1 else [(n,), (n, 2)])), dtype, 1
    )
    trans = data.draw(st.sampled_from([0, 1, 2]))
    close(linalg.lu_solve(factors, b, trans), scipy.linalg.lu_solve(factors, b, trans))
    close(linalg.solve(a, b), scipy.linalg.solve(a, b, assume_a="gen"))
    close(linalg.inv(a), scipy.linalg.inv(a))
    np.testing.assert_allclose(linalg.det(a), scipy.linalg.det(a), 1e-4, strict=True)
    for actual, expected in zip(linalg.slogdet(a), np.linalg.slogdet(a), strict=True):
        close(np.asarray(actual), np.asarray(expected))


def test_determinants_are_scalars():
    for dtype in LETTERS:
        assert type(linalg.det(np.eye(2, dtype=dtype))) is type(scipy.linalg.det(np.eye(2, dtype=dtype)))
        actual, expected = linalg.slogdet(np.eye(2, dtype=dtype)), np.linalg.slogdet(np.eye(2, dtype=dtype))
        assert list(map(type, actual)) == list(map(type, expected)) and actual._fields == expected._fields


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize(
    "a", [np.ones((2, 2)), np.zeros((3, 3)), np.ones((0, 0)), np.stack([np.eye(2), np.ones((2, 2))])]
)
def test_determinants_of_singular_matrices(a, dtype):
    a = a.astype(dtype)
    close(np.asarray(linalg.det(a)), np.asarray(scipy.linalg.det(a)))
    for actual, expected in zip(linalg.slogdet(a), np.linalg.slogdet(a), strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)


def test_determinants_of_single_precision_do_not_overflow():
    a = np.diag(np.full(3, 1e30, "f4"))
    assert np.isfinite(linalg.det(a)) and linalg.det(np.stack([a, a])).dtype == "f8"


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 0)])
def test_empty_factors(shape):
    for options in ({}, {"permute_l": True}, {"p_indices": True}):
        for actual, expected in zip(
            linalg.lu(np.ones(shape), **options), scipy.linalg.lu(np.ones(shape), **options), strict=True
        ):
            np.testing.assert_array_equal(actual, expected, strict="p_indices" not in options)
    lu, piv = linalg.lu_factor(np.ones(shape))
    assert lu.shape == shape and piv.shape == (*shape[:-2], 0)


def test_matrix_power_of_an_inverse():
    a = matrix((2, 3, 3), "d") + 4 * np.eye(3)
    close(linalg.matrix_power(a, -2), np.linalg.matrix_power(a, -2))


# ---------------------------------------------------------------------------------------------- structures


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    "structure",
    [
        "gen",
        "general",
        "pos",
        "positive definite",
        "sym",
        "symmetric",
        "her",
        "hermitian",
        "upper triangular",
        "lower triangular",
        "diagonal",
    ],
)
def test_structures(structure, lower, dtype):
    a = definite((5, 5), dtype)
    if structure[:3] == "sym":
        a = a + a.T
    read = a.copy()
    if structure not in ("gen", "general"):
        other = np.triu_indices(5, 1) if lower else np.tril_indices(5, -1)
        if structure.endswith("triangular"):
            keep = np.tril if structure.startswith("lower") else np.triu
            a, other = keep(a), np.nonzero(keep(np.ones((5, 5))) == 0)
        if structure == "diagonal":
            a, other = np.diag(np.diag(a)), np.nonzero(~np.eye(5, dtype=bool))
        read[other] = np.nan
    for b in (matrix(5, dtype, 1), matrix((5, 2), dtype, 1)):
        actual = linalg.solve(read, b, lower=lower, assume_a=structure, check_finite=False)
        close(actual, scipy.linalg.solve(a, b, lower=lower, assume_a=structure))
        stacks = linalg.solve(np.stack([read, read]), b, lower=lower, assume_a=structure, check_finite=False)
        close(stacks, np.stack([actual, actual]))
    close(
        linalg.inv(read, assume_a=structure, lower=lower, check_finite=False),
        np.linalg.inv(a).astype(dtype),
    )


@pytest.mark.parametrize("structure", ["banded", "tridiagonal"])
def test_banded_host_matrices_are_scipys(structure):
    a, b = 4 * np.eye(6) + np.eye(6, k=1) + np.eye(6, k=-1), np.ones(6)
    close(linalg.solve(a, b, assume_a=structure), scipy.linalg.solve(a, b, assume_a=structure))


@pytest.mark.parametrize(
    "keep",
    [np.triu, np.tril, lambda a: a, lambda a: a + a.T, lambda a: a - a.T, lambda a: np.diag(np.diag(a))],
)
def test_a_structure_that_is_looked_for(keep):
    a, b = keep(matrix((6, 6), "d")), matrix((6, 2), "d", 1)
    for options in ({}, {"transposed": True}):
        np.testing.assert_allclose(
            a.T @ linalg.solve(a, b, **options) if options else a @ linalg.solve(a, b), b, atol=1e-10
        )


def test_an_indefinite_matrix_is_solved_without_being_asked():
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    close(linalg.solve(a, np.ones(2)), scipy.linalg.solve(a, np.ones(2)))


@pytest.mark.skipif(RELEASE < (1, 17), reason="which took LU factors of them")
@pytest.mark.parametrize("structure", [None, "sym", "her"])
@pytest.mark.parametrize("dtype", LETTERS)
def test_indefinite_matrices_have_scipys_factors(structure, dtype):
    """To the last bit, where LU factors have other roundings."""
    a = matrix((7, 7), dtype)
    a, b = a + (a.T if structure == "sym" else a.conj().T), matrix((7, 2), dtype, 1)
    for lower in (False, True):
        expected = scipy.linalg.solve(a, b, lower=lower, assume_a=structure)
        np.testing.assert_array_equal(linalg.solve(a, b, lower=lower, assume_a=structure), expected)
        if structure is not None:
            inverse = scipy.linalg.inv(a, lower=lower, assume_a=structure)
            np.testing.assert_array_equal(linalg.inv(a, lower=lower, assume_a=structure), inverse)
    if dtype in "FD" and structure == "sym":
        np.testing.assert_array_equal(linalg.solve(a, b), scipy.linalg.solve(a, b))


# ------------------------------------------------------------------------------------------------- errors

EYE, NAN = np.eye(2), np.full((2, 2), np.nan)
FAILURES = [
    ("cholesky", (-EYE,), {}),
    ("cholesky", (np.diag([1.0, 2, -1, 3]),), {"lower": True}),
    ("cholesky", (np.stack([EYE, -EYE]),), {}),
    ("cholesky", (np.ones((2, 3)),), {}),
    ("cholesky", (NAN,), {}),
    ("cho_factor", (-EYE,), {}),
    ("cho_solve", ((EYE, True), np.ones(3)), {}),
    ("cho_solve", ((np.ones((2, 3)), True), np.ones(2)), {}),
    ("cho_solve", ((NAN, True), np.ones(2)), {}),
    ("cho_solve", ((EYE, True), np.full(2, np.inf)), {}),
    ("lu_factor", (NAN,), {}),
    ("lu_solve", ((EYE, np.arange(2)), np.ones(3)), {}),
    ("lu_solve", ((EYE, np.arange(2)), np.full(2, np.nan)), {}),
    ("lu", (np.ones(3),), {}),
    ("solve", (np.ones((2, 2)), np.ones(2)), {}),
    ("solve", (-EYE, np.ones(2)), {"assume_a": "pos"}),
    ("solve", (np.diag([1.0, 0]), np.ones(2)), {"assume_a": "upper triangular"}),
    ("solve", (np.diag([1.0, 0]), np.ones(2)), {"assume_a": "diagonal"}),
    ("solve", (0.0, np.ones(2)), {}),
    ("solve", (EYE, np.ones(2)), {"assume_a": "foo"}),
    ("solve", (1j * EYE, np.ones(2)), {"transposed": True}),
    ("solve", (NAN, np.ones(2)), {}),
    ("inv", (np.ones((2, 2)),), {}),
    ("inv", (-EYE,), {"assume_a": "pos"}),
    ("inv", (NAN,), {}),
    ("det", (np.ones((2, 3)),), {}),
    ("det", (np.ones(2),), {}),
    ("det", (NAN,), {}),
]


@pytest.mark.parametrize(("name", "arguments", "options"), FAILURES)
def test_errors_are_scipys(name, arguments, options):
    with pytest.raises(Exception) as scipys:
        getattr(scipy.linalg, name)(*arguments, **options)
    with pytest.raises(scipys.type) as ours:
        getattr(linalg, name)(*arguments, **options)
    if tuple(map(int, scipy.__version__.split(".")[:2])) == (1, 17):  # other releases have other words
        assert str(scipys.value) in str(ours.value)
    if ours.type is ValueError:
        assert str(ours.value).startswith(f"{name}: ")


#: SciPy counts the slices that fail and not those that came in, and shows one matrix of a stack.
STACK = np.stack([EYE, np.ones((2, 2)), np.zeros((2, 2))])


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("cholesky", (np.ones((4, 2, 3)),), {}, r"square but has the shape: \(4, 2, 3\)"),
        ("solve", (STACK, np.ones(2)), {}, r"slice\(s\) \[1, 2\] are singular"),
        ("inv", (STACK,), {}, r"slice\(s\) \[1, 2\] are singular"),
        ("solve", (EYE, np.ones(3)), {}, r"incompatible shapes: a has shape \(2, 2\) and b \(3,\)"),
        ("solve", (np.ones((2, 3)), np.ones(3)), {}, r"Expected square matrix, got a of shape \(2, 3\)"),
        ("inv", (np.ones((2, 3)),), {}, r"Expected square matrix, got a of shape \(2, 3\)"),
        ("inv", (np.ones(3),), {}, "Expected at least ndim=2"),
        ("inv", (EYE,), {"assume_a": "banded"}, "banded is not a recognized matrix structure"),
        ("lu_factor", (np.ones(2),), {}, "lu_factor: a has shape"),
        ("lu_solve", ((EYE, [0, 5]), np.ones(2)), {}, r"piv holds 0 ... 5; rows are 0 ... 1"),
        ("lu_solve", ((EYE, [0]), np.ones(2)), {}, r"piv has shape \(1,\)"),
        ("lu_solve", ((np.ones((2, 3)), [0, 1]), np.ones(2)), {}, "lu has shape"),
        ("lu_solve", ((EYE, [0, 1]), np.ones(2)), {"trans": 3}, "trans=3"),
    ],
)
def test_errors_of_our_own_words(name, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(linalg, name)(*arguments, **options)


def test_pivots_are_integers():
    with pytest.raises(TypeError, match="piv has dtype float64"):
        linalg.lu_solve((EYE, [0.0, 1.0]), np.ones(2))


def test_a_zero_pivot_warns():
    with pytest.warns(scipy.linalg.LinAlgWarning, match="Diagonal number 2 is exactly zero"):
        linalg.lu_factor(np.ones((2, 2)))
    with pytest.warns(scipy.linalg.LinAlgWarning, match="Diagonal number 2 is exactly zero"):
        linalg.lu_factor(np.ones((2, 2)), check_finite=False)


def test_slogdet_and_shapes():
    for a in (np.ones((2, 3)), np.ones(3)):
        with pytest.raises(np.linalg.LinAlgError) as numpys:
            np.linalg.slogdet(a)
        with pytest.raises(np.linalg.LinAlgError, match=re.escape(str(numpys.value))):
            linalg.slogdet(a)


@pytest.mark.parametrize(
    "shapes", [((0, 0), (0,)), ((0, 0), (0, 2)), ((3, 3), (3, 0)), ((0, 2, 2), (2, 1)), ((2, 0, 0), (0, 1))]
)
def test_empty_systems(shapes):
    a, b = map(np.ones, shapes)
    np.testing.assert_array_equal(linalg.solve(a, b), scipy.linalg.solve(a, b), strict=True)


@pytest.mark.parametrize(
    ("a", "b"), [(2.0, [1.0, 2]), ([[2.0]], [[1.0, 2], [3, 4]]), ([[2.0]], [1.0]), ([[1, 2], [3, 4]], [1, 2])]
)
def test_numbers_and_lists(a, b):
    np.testing.assert_allclose(linalg.solve(a, b), scipy.linalg.solve(a, b), strict=True)


@pytest.mark.parametrize("library", ["torch", "array_api_strict", "jax.numpy"])
def test_other_libraries_on_the_host(library):
    xp = pytest.importorskip(library)
    a, b = definite((2, 4, 4), "f"), matrix((4, 2), "f")
    x, y = xp.asarray(a), xp.asarray(b)
    for actual, expected in [
        (linalg.cholesky(x), scipy.linalg.cholesky(a)),
        (linalg.cho_solve(linalg.cho_factor(x), y), np.linalg.solve(a, b)),
        (linalg.solve(x, y), np.linalg.solve(a, b)),
        (linalg.inv(x), np.linalg.inv(a)),
        (linalg.lu_solve(linalg.lu_factor(x), y), np.linalg.solve(a, b)),
        (linalg.lu(x)[1], scipy.linalg.lu(a)[1]),
        (linalg.slogdet(x)[1], np.linalg.slogdet(a)[1]),
    ]:
        assert type(actual) is type(x)
        np.testing.assert_allclose(np.from_dlpack(actual), expected, 1e-3, 1e-4)
