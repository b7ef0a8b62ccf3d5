"""
A Cholesky factor on a Dask cluster
===================================

A covariance matrix is made chunk by chunk on the workers of a cluster, factored and solved there. No process
holds the whole matrix.

Chunks are NumPy's here; with CuPy's, the same calls run on the workers' GPUs.
"""

import numpy as np

try:
    import dask.array as da
    from distributed import Client
except ImportError:
    print("skipped: this example needs Dask")
    raise SystemExit from None

import pyblasgpu.dask

# threads for workers, so that this runs in one process; LocalCluster() starts processes
client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)

# %%
# Points, and their covariance. Chunks are of 250 points, the last one of 150.

rng = np.random.default_rng(0)
points = da.from_array(np.sort(rng.uniform(0, 40, 900)), chunks=250)
noise = 0.01
covariance = da.exp(-((points[:, None] - points[None, :]) ** 2)) + noise * da.eye(900, chunks=250)

# %%
# The factor stays with the workers, for more than one solve.

factor = client.persist(pyblasgpu.dask.cholesky(covariance, lower=True))

values = da.sin(points)
half = pyblasgpu.dask.solve_triangular(factor, values, lower=True)
weights = pyblasgpu.dask.solve_triangular(factor, half, lower=True, trans="C")

# %%
# The log likelihood needs the diagonal of the factor and half of the solution.

log_likelihood = -0.5 * (half**2).sum() - da.log(da.diag(factor)).sum() - 450 * np.log(2 * np.pi)
residual = abs(covariance @ weights - values).max()

log_likelihood, residual = da.compute(log_likelihood, residual)
client.close()
assert residual < 1e-8
print(f"a covariance of {len(points)} points on a cluster, log likelihood {log_likelihood:.1f}")
