"""Host arrays on SciPy's BLAS and LAPACK."""
