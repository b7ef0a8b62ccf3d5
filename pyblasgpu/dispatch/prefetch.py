"""Whether a product asks L2 for its tiles of C before it multiplies, where C is read."""

from __future__ import annotations

from .overrides import get_override

__all__ = ["prefetches_c"]

#: Products of so many k or fewer do. On an H200 it takes 8 % off SGEMM of 4096 with k = 64, 1 % off 8192 with
#: k = 256, and nothing off 4096 with k = 4096.
MOST_K = 512


def prefetches_c(k: int, adds: bool) -> bool:
    """Of a product that `adds` to C what an override says, else by the extent `k` of the sum."""
    requested = get_override("prefetch_c")
    return adds and (k <= MOST_K if requested is None else bool(requested))
