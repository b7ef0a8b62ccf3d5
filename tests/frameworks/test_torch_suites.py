"""The tests in the package of linear_operator, under `patch_torch`."""

from __future__ import annotations

import unittest

import pytest
import torch

from pyblasgpu import patch_torch, unpatch_torch

pytest.importorskip("linear_operator")
from linear_operator import settings
from linear_operator.operators import DenseLinearOperator
from linear_operator.test.linear_operator_test_case import LinearOperatorTestCase


@pytest.fixture(autouse=True)
def own_settings(monkeypatch):
    """The package's settings as it has them itself: BoTorch changes them when it is imported."""
    for name in ("_fast_covar_root_decomposition", "_fast_log_prob", "_fast_solves"):
        monkeypatch.setattr(getattr(settings, name), "_default", True)
    monkeypatch.setattr(settings.cholesky_max_tries, "_global_value", 3)
    monkeypatch.setattr(settings.max_cholesky_size, "_global_value", 800)


@pytest.fixture(autouse=True)
def patch():
    with patch_torch(backend="cpu", thresholds=0) as applied:
        yield applied
    unpatch_torch()


@pytest.mark.filterwarnings("ignore")
class Dense(LinearOperatorTestCase):
    """A matrix of each of these shapes, as the package tests its own."""

    seed = 0
    shape: tuple[int, ...] = (5, 5)

    def create_linear_op(self):
        torch.manual_seed(1)
        x = torch.randn(self.shape, dtype=torch.float64)
        return DenseLinearOperator((x @ x.mT + torch.eye(5)).float().requires_grad_())

    def evaluate_linear_op(self, linear_op):
        return linear_op.tensor


class TestDense(Dense, unittest.TestCase):
    pass


class TestDenseBatch(Dense, unittest.TestCase):
    shape = (3, 5, 5)


def test_the_patch_serves_them(patch):
    for name in ("test_cholesky", "test_solve_matrix_cholesky", "test_inv_quad_logdet_no_reduce_cholesky"):
        TestDense(name).debug()
    assert patch.calls.keys() >= {"cholesky", "solve_triangular", "cholesky_solve"} and not patch.kept
