"""Kernels of LU with pivots, and of its solutions."""
