"""Public functions: keyword style, SciPy's names, NumPy's, plans, `explain`."""
