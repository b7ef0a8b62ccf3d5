"""Factors, and inverses and solutions from them: LAPACK."""
