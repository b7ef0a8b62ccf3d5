"""Limits of the calls that `trsv` solves."""

__all__ = ["MOST_COLS"]

MOST_COLS = 4  # right-hand sides
