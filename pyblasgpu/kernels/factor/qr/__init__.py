"""Kernels of the QR factorization: panels, explicit reflectors, and the triangle T of a block of them."""
