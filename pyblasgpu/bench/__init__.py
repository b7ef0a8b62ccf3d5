"""``pyblasgpu bench``: side by side with cuBLAS in one process."""
