"""Limits of the calls that `trsv` solves."""

__all__ = ["MAX_COLS"]

MAX_COLS = 4  # right-hand sides
