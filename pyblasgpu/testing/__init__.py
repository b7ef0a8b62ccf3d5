"""What tests, the tuner and the benchmarks measure by: references, cases, error bounds, cuBLAS."""
