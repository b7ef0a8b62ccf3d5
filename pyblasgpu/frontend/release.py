"""What calls keep for later ones, given back."""

from __future__ import annotations

import sys

__all__ = ["release_memory"]


def release_memory() -> None:
    """Give back the memory that calls on host arrays and on several cards keep for later ones.

    These are tiles in the memory of cards, at most 8 GiB and a sixteenth of each, and page-locked memory of
    the host, at most 1 GiB. What a call uses that is under way stays. A routine of this package that finds no
    memory on a card gives back the tiles there by itself; other libraries cannot.

    See Also
    --------
    use_devices : Calls on several cards, or through a part of a card's memory.

    Examples
    --------
    >>> import pyblasgpu
    >>> pyblasgpu.release_memory()
    """
    # what was never imported keeps nothing
    tiles = sys.modules.get("pyblasgpu.engine.tile_memory")
    if tiles is not None:
        tiles.release_tiles()
    pinned = sys.modules.get("pyblasgpu.gpu.page_locked")
    if pinned is not None:
        for pool in list(pinned.shared_pools.values()):
            pool.release()
