"""
A program of SciPy's, unchanged
===============================

`fit_and_predict` is written for SciPy, and knows nothing of a GPU. Within ``pyblasgpu.patch_scipy()`` its
large calls run there; the small ones stay with SciPy. Programs that call SciPy themselves, as scikit-learn's
Gaussian processes do, are patched in the same way.

Without a GPU nothing is replaced, and both times are SciPy's.
"""

import time

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

import pyblasgpu as pb


def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    distances = (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * x @ y.T
    return np.exp(-0.5 * np.maximum(distances, 0) / x.shape[1])


def fit_and_predict(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the variance of a Gaussian process at new points."""
    factor = cholesky(kernel(x, x) + 1e-2 * np.eye(len(x)), lower=True, overwrite_a=True, check_finite=False)
    weights = cho_solve((factor, True), y, check_finite=False)
    cross = kernel(x, new)
    half = solve_triangular(factor, cross, lower=True, check_finite=False)
    return cross.T @ weights, 1 - (half * half).sum(0)


# %%
# As many points as take a moment. The first call on a GPU also loads kernels, so that the second is timed.

on_gpu = pb.backend_status().backend == "cuda"
rng = np.random.default_rng(0)
x, new = rng.standard_normal((4000 if on_gpu else 500, 6)), rng.standard_normal((200, 6))
y = np.sin(x).sum(1)

start = time.perf_counter()
expected = fit_and_predict(x, y, new)
seconds = time.perf_counter() - start

# %%
# `cholesky` was imported before the patch, by its name. The name is bound to the replacement, and back.

with pb.patch_scipy() as patch:
    actual = fit_and_predict(x, y, new)
    start = time.perf_counter()
    actual = fit_and_predict(x, y, new)
    patched = time.perf_counter() - start

for ours, scipys in zip(actual, expected, strict=True):
    assert np.allclose(ours, scipys, atol=1e-8)
print("calls on the GPU:", dict(patch.calls) or "none, there is no GPU")
print(f"a Gaussian process of {len(x)} points: {seconds:.3f} s with SciPy, {patched:.3f} s patched")
