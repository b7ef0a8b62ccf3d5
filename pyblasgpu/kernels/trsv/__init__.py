"""TRSM with few right-hand sides."""
