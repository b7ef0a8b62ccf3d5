"""Imported before NumPy: a test process has one thread of BLAS.

More of them wait for one another, busily, where other processes run, and that took most of the time of a test
with small products.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
