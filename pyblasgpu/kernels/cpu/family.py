"""Kernels for the processor are no family: no device runs them, and `dispatch.cpu_gemm` chooses."""

from __future__ import annotations

FAMILIES: tuple = ()
