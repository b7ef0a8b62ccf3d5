"""Kernels of eigenvalues and singular values: Jacobi's rotations of matrices in shared memory."""
