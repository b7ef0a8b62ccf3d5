"""Functions with the names and signatures of scipy.linalg.lapack."""
