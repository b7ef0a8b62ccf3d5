"""What a call must keep to, for `trsv` to solve it."""

__all__ = ["MOST_COLS"]

MOST_COLS = 4  # right-hand sides
