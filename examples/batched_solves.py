"""
Many small systems at once
==========================

A stack of small symmetric positive definite systems, as least squares and Gauss-Newton steps give them, is
solved in one call. The matrices are one array, whose leading dimension counts them.

It runs on PyTorch's tensors where there is PyTorch, on the GPU if it has one, else on NumPy arrays.
"""

import numpy as np

import pyblasgpu as pb

rng = np.random.default_rng(0)
jacobian, residual = rng.standard_normal((1000, 40, 6)), rng.standard_normal((1000, 40))

try:
    import torch
except ImportError:
    print("no PyTorch here: NumPy arrays stand in for its tensors")
else:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    jacobian, residual = (torch.from_numpy(x).to(device) for x in (jacobian, residual))

linalg = pb.linalg

# %%
# The normal equations of 1000 problems with 6 unknowns and 40 measurements.

transposed = jacobian.swapaxes(-1, -2)
normal = linalg.matmul(transposed, jacobian)
right = linalg.matvec(transposed, residual)

# %%
# `solve` takes a vector for a matrix of vectors: b has to be a stack of columns. ``assume_a="pos"`` goes by
# Cholesky factors and reads one triangle.

step = linalg.solve(normal, right[..., None], assume_a="pos")[..., 0]

# %%
# `solve` names a matrix that is not positive definite, and `info` of `lapack` has a number for each.

gradient = linalg.matvec(transposed, residual - linalg.matvec(jacobian, step))
assert float(abs(gradient).max()) < 1e-10
factors, info = pb.lapack.potrf(normal, lower=True)
assert not info.any()
print(f"solved {len(step)} systems of order {step.shape[1]}")
