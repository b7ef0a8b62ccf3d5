"""Linear algebra with the signatures of NumPy and SciPy."""
