"""This library and cuBLAS side by side; docs/measuring.md says how. Run by ``pyblasgpu bench``."""
