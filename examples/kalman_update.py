"""
The update of a Kalman filter
=============================

A batch of filters takes a measurement each. The gain comes from a Cholesky factor of the innovation's
covariance, and the covariance is updated by Joseph's form, which stays symmetric. Leading dimensions count
filters, as everywhere in `pyblasgpu.linalg`.

It runs on CuPy arrays where there is a GPU, else on NumPy's.
"""

import pyblasgpu as pb

if pb.backend_status().backend == "cuda":
    import cupy as xp
else:
    import numpy as xp

    print("no GPU here: NumPy arrays stand in for CuPy's")

linalg = pb.linalg

# %%
# 200 filters with 12 states and 4 measurements; all share the measurement's matrix and noise.

rng = xp.random.default_rng(0)
count, states, measured = 200, 12, 4
root = rng.standard_normal((count, states, states))
covariance = linalg.matmul(root, root.swapaxes(-1, -2)) + xp.eye(states)
mean = rng.standard_normal((count, states))
observe = rng.standard_normal((measured, states))
noise = 0.1 * xp.eye(measured)
measurement = rng.standard_normal((count, measured))

# %%
# The innovation and its covariance. `observe` is broadcast to all filters without a copy.

innovation = measurement - linalg.matvec(observe, mean)
projected = linalg.matmul(observe, covariance)
scatter = linalg.matmul(projected, observe.T) + noise

# %%
# The gain solves ``scatter gainᵀ = observe covariance``.

factor = linalg.cho_factor(scatter, lower=True)
gain = linalg.cho_solve(factor, projected).swapaxes(-1, -2)
mean = mean + linalg.matvec(gain, innovation)

# %%
# Joseph's form.

kept = xp.eye(states) - linalg.matmul(gain, observe)
updated = linalg.matmul(linalg.matmul(kept, covariance), kept.swapaxes(-1, -2))
updated = updated + linalg.matmul(linalg.matmul(gain, noise), gain.swapaxes(-1, -2))

# %%
# It is what the formula with inverses says: that of the updated covariance is the sum of two.

expected = linalg.inv(linalg.inv(covariance) + linalg.matmul(observe.T, observe) / 0.1)
assert xp.allclose(updated, expected)
assert float(xp.diagonal(updated, axis1=-2, axis2=-1).min()) > 0
print(f"updated {count} filters of {states} states")
