"""Measures of tests, the tuner and the benchmarks: references, cases, error bounds, cuBLAS."""
