"""Programs that call SciPy run unchanged under patch_scipy, and their calls pass through us.

Each is skipped where its package is missing; ``pip install 'pyblasgpu[programs]'`` brings them.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pyblasgpu import patch_scipy


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, (60, 2))
    return x, np.sin(x).sum(1) + 0.01 * rng.standard_normal(60), rng.uniform(-2, 2, (15, 2))


def run_both(program, **options):
    """The results of `program` with and without the patch, and the calls that it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = program()
        with patch_scipy(backend="cpu", thresholds=0, **options) as patch:
            actual = program()
    for ours, scipys in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, scipys, 1e-8, 1e-8)
    return patch.calls


def test_gaussian_process_of_scikit_learn(data):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    kernels = gaussian_process.kernels
    x, y, new = data

    def program():
        kernel = kernels.RBF(1.0) + kernels.WhiteKernel(1e-2)
        model = gaussian_process.GaussianProcessRegressor(kernel, optimizer=None).fit(x, y)
        mean, deviation = model.predict(new, return_std=True)
        _, gradient = model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
        return mean, deviation, gradient, model.sample_y(new, random_state=0)

    calls = run_both(program)
    assert calls["cholesky"] >= 2 and calls["cho_solve"] >= 2 and calls["solve_triangular"] >= 1


def test_a_fitted_gaussian_process_of_scikit_learn(data):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    x, y, new = data

    def program():
        kernel = gaussian_process.kernels.RBF(1.0)
        model = gaussian_process.GaussianProcessRegressor(kernel, alpha=1e-2).fit(x, y)
        return model.kernel_.theta.round(4), model.predict(new).round(6)

    assert run_both(program)["cholesky"] > 5


def test_kernel_ridge_of_scikit_learn(data):
    kernel_ridge = pytest.importorskip("sklearn.kernel_ridge")
    x, y, new = data

    def program():
        model = kernel_ridge.KernelRidge(alpha=1e-2, kernel="rbf", gamma=0.5).fit(x, y)
        return model.dual_coef_, model.predict(new)

    assert run_both(program) == {"solve": 1}


def test_least_squares_of_statsmodels(data):
    linear_model = pytest.importorskip("statsmodels.regression.linear_model")
    x, y, _ = data
    covariance = 0.5 ** abs(np.subtract.outer(np.arange(60), np.arange(60)))

    def program():
        model = linear_model.GLS(y, np.column_stack([np.ones(60), x]), sigma=covariance).fit()
        return model.params, model.bse, model.llf, model.f_test(np.eye(3)).fvalue

    assert run_both(program, numpy=True)["cholesky"] == 1  # of NumPy's names


def test_george(data):
    george = pytest.importorskip("george")
    x, y, new = data

    def program():
        process = george.GP(george.kernels.ExpSquaredKernel(1.0, ndim=2), solver=george.BasicSolver)
        process.compute(x, 0.1)
        mean, variance = process.predict(y, new, return_var=True)
        return mean, variance, process.log_likelihood(y), process.grad_log_likelihood(y)

    calls = run_both(program)
    assert calls["cholesky"] == 1 and calls["cho_solve"] >= 2


def test_kriging_of_smt(data):
    surrogate_models = pytest.importorskip("smt.surrogate_models")
    x, y, new = data

    def program():
        model = surrogate_models.KRG(theta0=[1e-1], hyper_opt="NoOp", print_global=False, nugget=1e-4)
        model.set_training_values(x, y)
        model.train()
        return model.predict_values(new), model.predict_variances(new)

    calls = run_both(program)
    assert calls["cholesky"] >= 1 and calls["solve_triangular"] >= 2
