"""Kernels that move and add: copies, packing, partial sums, mirror images."""
