"""One file a BLAS routine: normalise, quick return, choose, launch. Operands on one device; no NumPy."""
