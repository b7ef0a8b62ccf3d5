"""Whether a product asks L2 for its tiles of C before it multiplies, where C is read."""

from __future__ import annotations

from .overrides import get_override

__all__ = ["prefetches_c"]

#: Products of so many k or fewer do: of others C would leave L2 before it is read.
MOST_K = 0


def prefetches_c(k: int) -> bool:
    """What an override says, else by the extent `k` of the sum."""
    asked = get_override("prefetch_c")
    return k <= MOST_K if asked is None else bool(asked)
