"""
Tomographic reconstructor
=========================

Adaptive optics of a telescope turn what sensors measure into commands by R = C_ts C_ss⁻¹. Both covariances
change with the atmosphere, so the inverse is computed again and again. C_ss is definite: its Cholesky factor
and POTRI make the inverse in place, and SYMM reads one triangle of it.

It runs on CuPy arrays where there is a GPU, else on NumPy's.
"""

from time import perf_counter

import pyblasgpu as pb

if pb.backend_status().backend == "cuda":
    import cupy as xp

    order = 4000
else:
    import numpy as xp

    order = 400

# %%
# Covariances of measurements with each other, and with the directions that are looked at.

rng = xp.random.default_rng(0)
samples = rng.standard_normal((2 * order, order))
targets = samples[:, : order // 10] + 0.1 * rng.standard_normal((2 * order, order // 10))
measured = pb.syrk(samples, alpha=1 / len(samples), trans="T", lower=True)
crossed = pb.gemm(targets, samples, alpha=1 / len(samples), trans_a="T")

# %%
# The inverse takes the place of the covariance, and the reconstructor is a product with its lower triangle.


def reconstructor(covariance, crossed):
    """The product, on arrays that are overwritten."""
    factor, info = pb.lapack.potrf(covariance, lower=True, clean=False, overwrite_a=True)
    assert info == 0
    inverse, _ = pb.lapack.potri(factor, lower=True, overwrite_c=True)
    return pb.symm(inverse, crossed, side="R", lower=True)


reconstructor(measured.copy(order="F"), crossed)  # kernels are loaded, and compiled where none were built
covariance = measured.copy(order="F")
float(covariance[0, 0])  # waits for the copy
begun = perf_counter()
commands = reconstructor(covariance, crossed)
float(commands[0, 0])  # waits for the commands
took = perf_counter() - begun

back = pb.symm(measured, commands, side="R", lower=True)
assert float(abs(back - crossed).max()) < 1e-12 * order
print(f"a reconstructor of {order} measurements in {1e3 * took:.1f} ms")
