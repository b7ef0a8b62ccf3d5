"""Rows of the table of operators: arguments, gradients and tangents, of no framework.

`pyblasgpu.torch` and `pyblasgpu.jax` compute what the rows describe, and register it.
"""
