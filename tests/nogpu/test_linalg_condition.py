"""Conditions of matrices, and the warnings of `solve` and `inv`, beside SciPy's."""

from __future__ import annotations

import re
import warnings

import fake_device
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from pyblasgpu import linalg
from pyblasgpu.api.linalg.condition import estimate_inverse_norms, one_norms
from pyblasgpu.types import DTYPES, Trans, Uplo

put = fake_device.Array
STRUCTURES = [None, "gen", "sym", "her", "pos", "upper triangular", "lower triangular", "diagonal"]


def random(dtype, *shape, seed=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype in "FD" else 0)
    return a.astype(dtype)


def definite(dtype, n, smallest) -> np.ndarray:
    """Eigenvalues from 1 down to `smallest`."""
    q, _ = np.linalg.qr(random(dtype, n, n).astype("D"))
    a = (q * np.geomspace(1, smallest, n)) @ q.conj().T
    a = (a if dtype in "FD" else a.real).astype(dtype)
    return (a + a.conj().T) / 2


def conditions_told(function, *arguments, **options) -> list[float]:
    """The reciprocal condition numbers of its warning, if it gives one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments, **options)
    warned = [each for each in caught if each.category is scipy.linalg.LinAlgWarning]
    assert all(each.filename == __file__ for each in warned) or function.__module__.startswith("scipy")
    return [
        float(rcond)
        for each in warned
        for rcond in re.findall(r"rcond = ([^,]*?)\.?(?:,|$)", str(each.message))
    ]


@given(st.integers(1, 30), st.sampled_from("fdFD"), st.integers(0, 1000))
def test_estimates(n, dtype, seed):
    """No more than the norm, and hardly ever less than a third of it; LAPACK's as a rule."""
    a = random(dtype, 2, n, n, seed=seed).astype("d" if dtype in "fd" else "D")

    def solve(x, trans):
        return np.linalg.solve(a if trans is Trans.NO else a.conj().swapaxes(-1, -2), x)

    actual = estimate_inverse_norms(solve, 2, n, a.dtype)
    exact = np.linalg.norm(np.linalg.inv(a), 1, axis=(-2, -1))
    assert (actual <= exact * (1 + 1e-6)).all() and (actual >= exact / 10).all()
    gecon = scipy.linalg.get_lapack_funcs("gecon", (a,))
    for each, estimate in zip(a, actual, strict=True):
        lu, _ = scipy.linalg.lu_factor(each)
        assert 1 / gecon(lu, 1.0)[0] <= estimate * (1 + 1e-6)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 150])
def test_norms(letter, n):
    a = random({"s": "f", "d": "d", "c": "F", "z": "D"}[letter], 2, n, n)
    expected = np.linalg.norm(a, 1, axis=(-2, -1))
    for stack in (a, np.asfortranarray(a), a.swapaxes(1, 2).copy().swapaxes(1, 2)):
        np.testing.assert_allclose(one_norms(stack), expected, 1e-5)
    whole = a + a.conj().swapaxes(-1, -2)
    expected = np.linalg.norm(whole, 1, axis=(-2, -1))
    for uplo, part in ((Uplo.LOWER, np.tril), (Uplo.UPPER, np.triu)):
        np.testing.assert_allclose(one_norms(part(whole), uplo), expected, 1e-5)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("structure", STRUCTURES)
def test_warnings_are_scipys(dtype, structure):
    """Ill-conditioned matrices warn, and no others."""
    eps = np.finfo(dtype).eps
    for smallest, warns in ((eps / 100, True), (eps * 1000, False)):
        n, a = 6, definite(dtype if structure != "sym" else dtype.lower(), 6, smallest).astype(dtype)
        if structure in ("upper triangular", "lower triangular", "diagonal"):
            a = np.diag(np.geomspace(1, smallest, n)).astype(dtype)
        if structure is None:
            a = (a @ random(dtype, n, n, seed=1)).astype(dtype)
        try:
            expected = conditions_told(scipy.linalg.solve, a, np.ones(n, dtype), assume_a=structure)
        except np.linalg.LinAlgError:
            continue  # not definite any more, by rounding
        actual = conditions_told(linalg.solve, a, np.ones(n, dtype), assume_a=structure)
        assert bool(actual) == bool(expected) == warns
        if structure != "diagonal":  # whose condition SciPy tells, not its reciprocal
            assert (abs(np.log(actual) - np.log(expected)) < 1).all()
        if structure != "lower triangular":
            assert bool(conditions_told(linalg.inv, a, assume_a=structure)) == warns


def test_stacks_name_their_matrices():
    bad, good = definite("d", 5, 1e-19), np.eye(5)
    stack = np.stack([good, bad, good, bad]).reshape(2, 2, 5, 5)
    with pytest.warns(scipy.linalg.LinAlgWarning, match=r"slice 1 has rcond = .*,slice 3 has rcond"):
        linalg.solve(stack, np.ones(5), assume_a="gen")


@pytest.mark.parametrize("lower", [False, True])
def test_the_other_triangle_is_not_looked_at(lower):
    a = definite("d", 5, 1e-3)
    a[np.triu_indices(5, 1) if lower else np.tril_indices(5, -1)] = 1e30
    for function, right in ((linalg.inv, ()), (linalg.solve, (np.ones(5),))):
        assert not conditions_told(function, a, *right, assume_a="pos", lower=lower)


def test_nan_warns():
    a = np.full((3, 3), np.nan)
    with pytest.warns(scipy.linalg.LinAlgWarning, match="nan"):
        linalg.solve(a, np.ones(3), check_finite=False, assume_a="gen")


@pytest.mark.parametrize("structure", ["gen", "pos", "upper triangular", "lower triangular", "diagonal"])
def test_device_arrays_are_looked_at_when_asked(fake, structure):
    a = definite("d", 5, 1e-14) + 1e-13 * np.eye(5) if structure == "pos" else definite("d", 5, 1e-19)
    if structure in ("upper triangular", "lower triangular", "diagonal"):
        a = np.diag(np.geomspace(1, 1e-19, 5))
    assert not conditions_told(linalg.solve, put(a), put(np.ones(5)), assume_a=structure)
    conditions = conditions_told(linalg.solve, put(a), put(np.ones(5)), assume_a=structure, check_finite=True)
    assert bool(conditions) == (structure != "pos")
    assert bool(conditions_told(linalg.inv, put(a), assume_a=structure, check_finite=True)) == bool(
        conditions
    )


def test_host_arrays_on_a_device(fake):
    """The factors are asked while they are there."""
    a = np.stack([np.eye(5), definite("d", 5, 1e-19)])
    for structure in ("gen", "sym"):
        conditions = conditions_told(linalg.solve, a, np.ones(5), assume_a=structure)
        assert len(conditions) == 1 and conditions[0] < 1e-16
    assert not conditions_told(linalg.solve, definite("d", 5, 1e-10), np.ones(5), assume_a="pos")
    assert conditions_told(linalg.solve, definite("f", 5, 3e-8).astype("f"), np.ones(5, "f"), assume_a="gen")
