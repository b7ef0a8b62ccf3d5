"""
A Gaussian process on CuPy arrays
=================================

Regression by algorithm 2.1 of Rasmussen and Williams, *Gaussian Processes for Machine Learning*. `cholesky`,
`cho_solve` and `solve_triangular` are SciPy's by name. CuPy lacks the second, and has the first for lower
factors alone. All arrays stay on the GPU.

Without CuPy and a GPU the same script runs on NumPy arrays.
"""

import math

import pyblasgpu as pb

if pb.backend_status().backend == "cuda":
    import cupy as xp
else:
    import numpy as xp

    print("no GPU here: NumPy arrays stand in for CuPy's")

linalg = pb.linalg

# %%
# Points of a noisy function, and the squared exponential kernel.

rng = xp.random.default_rng(0)
x = xp.sort(4 * rng.random(400))
y = xp.sin(3 * x) + 0.1 * rng.standard_normal(400)
new = xp.linspace(0, 4, 50)


def kernel(one, other):
    return xp.exp(-0.5 * ((one[:, None] - other) / 0.5) ** 2)


# %%
# The factor of the covariance is made once. The mean takes one solve with it, the variance another.

factor = linalg.cholesky(kernel(x, x) + 0.1**2 * xp.eye(len(x)), lower=True)
weights = linalg.cho_solve((factor, True), y)
cross = kernel(x, new)
mean = linalg.matvec(cross.T, weights)
half = linalg.solve_triangular(factor, cross, lower=True)
variance = 1 - linalg.vecdot(half.T, half.T)

# %%
# The logarithm of the determinant is that of the factor's diagonal.

log_determinant = 2 * xp.log(xp.diagonal(factor)).sum()
likelihood = -0.5 * linalg.vdot(y, weights) - 0.5 * log_determinant - 0.5 * len(x) * math.log(2 * math.pi)

error = xp.abs(mean - xp.sin(3 * new)).max()
assert float(error) < 0.2
assert float(variance.min()) > 0
print(f"a Gaussian process of {len(x)} points, log likelihood {float(likelihood):.1f}")
