"""What users import: Level 3 in keyword style, SciPy's names, NumPy's, plans, `explain`."""
