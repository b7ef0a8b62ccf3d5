"""``linalg.solve(..., method="tensor")``: float64's accuracy by factors in float32, else in float64."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from pyblasgpu import linalg
from pyblasgpu.api.lapack import names as lapack
from pyblasgpu.api.linalg import refine
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.dispatch.algorithms import refinement_pays

EPS = 2.0**-53


@pytest.fixture(autouse=True)
def every_order_is_refined(monkeypatch, decide_by):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    decide_by(getrf_refined_min_order=2, potrf_refined_min_order=2, refined_max_rhs_share=4)


@pytest.fixture
def messages(caplog):
    """What the calls tell of their steps."""
    caplog.set_level(logging.DEBUG, "pyblasgpu")
    return lambda: [record.getMessage() for record in caplog.records]


def general(n: int, condition: float = 10.0, seed: int = 0) -> np.ndarray:
    """Of a condition number, in the 2-norm."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    return left * np.geomspace(1, 1 / condition, n) @ right


def definite(n: int, condition: float = 10.0, seed: int = 0) -> np.ndarray:
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    a = q * np.geomspace(1, 1 / condition, n) @ q.T
    return (a + a.T) / 2


def excess(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    """The residual in units of what dsgesv allows."""
    sizes = abs(a).sum(axis=-1).max() * abs(x).max(axis=0)
    return float((abs(b - a @ x).max(axis=0) / (len(a) ** 0.5 * EPS * sizes)).max())


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_solutions_are_scipys(data):
    """Of any shape, order and structure; what is not read is NaN, and nothing is written."""
    n, batch = data.draw(st.integers(2, 12)), data.draw(st.sampled_from([(), (2,), (2, 3)]))
    structure = data.draw(st.sampled_from(["gen", "sym", "pos"]))
    lower = data.draw(st.booleans())
    make = general if structure == "gen" else definite
    count = int(np.prod(batch))
    whole = np.reshape([make(n, seed=i) for i in range(count)], (*batch, n, n))
    swapped = structure == "gen" and data.draw(st.booleans())
    a = whole.copy(data.draw(st.sampled_from("CF")))
    if structure != "gen":
        other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
        a[..., other[0], other[1]] = np.nan
    shape = data.draw(st.sampled_from([(n,), (n, 1), (n, 4)]))
    b = np.random.default_rng(1).standard_normal(shape)
    before = a.copy(), b.copy()
    options = {"assume_a": structure, "lower": lower, "transposed": swapped, "check_finite": False}
    actual = linalg.solve(a, b, method="tensor", **options)
    expected = linalg.solve(whole, b, assume_a="gen", transposed=swapped)
    assert actual.shape == expected.shape and actual.dtype == np.float64
    np.testing.assert_allclose(actual, expected, 1e-12, 1e-12)
    for given_, kept in zip((a, b), before, strict=True):
        np.testing.assert_array_equal(given_, kept)


@pytest.mark.parametrize("make", [general, definite])
@pytest.mark.parametrize("condition", [1e1, 1e4, 1e6])
def test_the_residual_is_that_of_dsgesv(make, condition, messages):
    a, b = make(200, condition), np.random.default_rng(1).standard_normal((200, 3))
    b[:, 1] = 0
    x = linalg.solve(a, b, method="tensor", assume_a="pos" if make is definite else "gen")
    assert excess(a, x[:, ::2], b[:, ::2]) <= 1 and not x[:, 1].any()
    assert [message.split(" by ")[0] for message in messages()] == ["solve: refined"]


@pytest.mark.parametrize(("make", "structure"), [(general, "gen"), (definite, "pos")])
@pytest.mark.parametrize("condition", [1e10, 1e14])
def test_what_float32_cannot_solve_is_solved_in_float64(make, structure, condition, messages):
    a, b = make(100, condition), np.random.default_rng(1).standard_normal((100, 2))
    x = linalg.solve(a, b, method="tensor", assume_a=structure)
    np.testing.assert_array_equal(x, linalg.solve(a, b, assume_a=structure))
    assert not any("refined" in message for message in messages())


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e150])
def test_right_hand_sides_of_any_size(scale, messages):
    """A residual is scaled before it becomes float32."""
    a, b = general(50), np.random.default_rng(1).standard_normal((50, 2))
    b[:, 1] *= scale
    x = linalg.solve(a, b, method="tensor", assume_a="gen")
    np.testing.assert_allclose(x, np.linalg.solve(a, b), 1e-12)
    assert "refined" in messages()[-1]


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_matrices_beyond_float32(factor, messages):
    a, b = general(50) * factor, np.ones((50, 1))
    np.testing.assert_array_equal(
        linalg.solve(a, b, method="tensor", assume_a="gen"), linalg.solve(a, b, assume_a="gen")
    )
    assert not any("refined" in message for message in messages())


@pytest.mark.parametrize("structure", ["gen", "pos"])
def test_one_element_beyond_float32(structure, messages):
    """What has become Inf is no bound of anything."""
    a = np.diag([1e300, 1.0, 2.0])
    with pytest.warns(scipy.linalg.LinAlgWarning, match="rcond = 1e-300"):
        x = linalg.solve(a, np.ones(3), method="tensor", assume_a=structure)
    np.testing.assert_allclose(x, [1e-300, 1, 0.5], 1e-15)
    assert not any("refined" in message for message in messages())


def test_sums_beyond_float32(messages):
    a, b = general(50) * 1e38, np.ones((50, 1))
    x = linalg.solve(a, b, method="tensor", assume_a="gen")
    assert excess(a, x, b) <= 1


def test_what_is_found_is_told():
    with pytest.raises(np.linalg.LinAlgError, match="A singular matrix detected"):
        linalg.solve(np.ones((3, 3)), np.ones(3), assume_a="gen", method="tensor")
    with pytest.raises(np.linalg.LinAlgError, match="A singular matrix detected"):
        linalg.solve(-definite(5), np.ones(5), assume_a="pos", method="tensor")
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.solve(np.full((3, 3), np.nan), np.ones(3), method="tensor")
    with pytest.warns(scipy.linalg.LinAlgWarning, match="ill-conditioned"):
        linalg.solve(scipy.linalg.hilbert(14), np.ones(14), assume_a="gen", method="tensor")
    spoilt = np.where(np.eye(3) == 1, np.nan, 1.0)
    with pytest.warns(scipy.linalg.LinAlgWarning, match="rcond = nan"):
        actual = linalg.solve(spoilt, np.ones(3), assume_a="gen", method="tensor", check_finite=False)
    assert np.isnan(actual).all()


def test_one_of_a_stack_that_does_not_converge():
    a = np.stack([general(40), general(40, 1e12)])
    b = np.ones((40, 1))
    np.testing.assert_array_equal(
        linalg.solve(a, b, method="tensor", assume_a="gen"), linalg.solve(a, b, assume_a="gen")
    )


def test_other_structures_and_dtypes(decide_by, monkeypatch):
    """float32 has nothing to refine, substitution and division need no factors, small orders do not pay."""
    triangle, b = np.tril(general(6)) + np.eye(6), np.ones((6, 2))
    for structure in ("lower triangular", "diagonal", None):
        a = np.diag(np.arange(1.0, 7)) if structure == "diagonal" else triangle
        actual = linalg.solve(a, b, assume_a=structure, method="tensor")
        np.testing.assert_array_equal(actual, linalg.solve(a, b, assume_a=structure))
    single = general(6).astype(np.float32)
    actual = linalg.solve(single, b.astype(np.float32), method="tensor")
    np.testing.assert_array_equal(actual, linalg.solve(single, b.astype(np.float32)), strict=True)
    with pytest.raises(ValueError, match="solve: method='tensor' is for real arrays, these are complex128"):
        linalg.solve(np.eye(2) * 1j, np.ones(2), method="tensor")
    with pytest.raises(ValueError, match="solve: method='fast' is neither 'tensor' nor None"):
        linalg.solve(np.eye(2), np.ones(2), method="fast")
    decide_by(getrf_refined_min_order=7, potrf_refined_min_order=7)
    monkeypatch.setattr(lapack, "getrf", None)  # host matrices are SciPy's
    linalg.solve(general(6), b, assume_a="gen", method="tensor")


def test_large_systems_of_few_columns_are_refined():
    policy = tuned_files.reference_policy()
    assert refinement_pays("getrf", 1000, 1, policy) and refinement_pays("getrf", 100, 400, policy)
    assert not refinement_pays("getrf", 1, 1, policy)
    assert not refinement_pays("potrf", 100, 401, policy)


def test_corrections_end(monkeypatch, messages):
    """After `MAX_STEPS`, or once they bring nothing closer."""
    a, b = general(50, 1e6), np.ones((50, 1))
    monkeypatch.setattr(refine, "MAX_STEPS", 0)
    linalg.solve(a, b, method="tensor", assume_a="gen")
    assert messages()[-1].startswith("solve: 0 corrections leave")
    monkeypatch.setattr(refine, "MAX_STEPS", 30)
    monkeypatch.setattr(refine, "EPS", 1e-30)
    linalg.solve(a, b, method="tensor", assume_a="gen")
    steps = int(messages()[-1].split()[1])
    assert 0 < steps < 30
