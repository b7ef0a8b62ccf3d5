"""Kernels that factor and invert."""
