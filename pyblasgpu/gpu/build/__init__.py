"""Kernels compiled, linked, stored and archived."""
