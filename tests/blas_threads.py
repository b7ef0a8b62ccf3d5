"""Imported before NumPy: all test processes together have as many threads of BLAS as there are cores.

More of them wait for one another, busily, and that took most of the time of a test with small products.
"""

import os

WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // WORKERS)))
