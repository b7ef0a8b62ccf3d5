"""CuPy's functions of dense matrices replaced by pyblasgpu's: see `switch`."""
