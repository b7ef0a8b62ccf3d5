"""Kernels of triangles in shared memory: inverses and products, and what Cholesky's share with them."""
