"""Factor and solve in one visit to the device: the launch lists of two routines run one after another."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu import linalg


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 3)], ids=str)
def test_solve_and_inv(shape):
    rng = np.random.default_rng(1)
    a = rng.standard_normal(shape).astype("f") + 3 * np.eye(shape[-1], dtype="f")
    spd = a @ a.swapaxes(-1, -2)
    b = rng.standard_normal((shape[-1], 2)).astype("f")
    for actual, expected in [
        (linalg.solve(a, b, assume_a="gen"), np.linalg.solve(a, b)),
        (linalg.solve(spd, b, assume_a="pos"), np.linalg.solve(spd, b)),
        (linalg.inv(a, assume_a="gen"), np.linalg.inv(a)),
        (linalg.inv(spd, assume_a="pos"), np.linalg.inv(spd)),
    ]:
        np.testing.assert_allclose(actual, expected, 1e-4, 1e-4)


def test_solutions_are_refined(decide_by):
    """By factors in float32, residuals and all of it in the simulator."""
    decide_by(getrf_refined_min_order=2, potrf_refined_min_order=2, refined_max_rhs_share=4)
    rng = np.random.default_rng(1)
    a = rng.standard_normal((6, 6)) + 3 * np.eye(6)
    spd, b = a @ a.T, rng.standard_normal((6, 2))
    for structure, matrix in (("gen", a), ("pos", spd)):
        for right in (b, b[:, 0]):
            actual = linalg.solve(matrix, right, assume_a=structure, method="tensor")
            np.testing.assert_allclose(actual, np.linalg.solve(matrix, right), 1e-12, 1e-12)


def test_what_is_found_is_told():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        linalg.solve(np.ones((3, 3)), np.ones(3), assume_a="gen")
    rows = np.broadcast_to(np.array([4.0, 2.0, 3.0]), (3, 3))  # elements that lie at one address
    for structure in ("gen", "pos"):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            linalg.solve(rows, np.ones(3), assume_a=structure, lower=True)
    with pytest.raises(np.linalg.LinAlgError, match="2-th leading minor"):
        linalg.cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))
