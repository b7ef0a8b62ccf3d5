"""Kernels of Cholesky's factorization."""
