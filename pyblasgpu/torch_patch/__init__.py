"""PyTorch's kernels of linear algebra replaced by pyblasgpu's: see `switch`."""
