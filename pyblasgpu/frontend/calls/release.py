"""Free cached device and host memory."""

from __future__ import annotations

import sys

__all__ = ["release_memory"]


def release_memory() -> None:
    """Free the memory that calls on host arrays and on several devices keep for later ones.

    These are tiles in device memory, at most 8 GiB and a sixteenth of each device's; pinned host memory, at
    most 512 MiB; and memory of NumPy results that are gone, at most 16 GiB and a sixteenth of the host's, or
    ``PYBLASGPU_HOST_MEMORY`` bytes. Pages of the caller's arrays are unlocked, where calls have locked them.
    Memory of calls that are under way and of arrays stays. A routine of this package that finds no memory on
    a device frees the tiles there by itself; other libraries cannot.

    See Also
    --------
    use_devices : Calls on several devices, or through a part of a device's memory.

    Examples
    --------
    >>> import pyblasgpu
    >>> pyblasgpu.release_memory()
    """
    # what was never imported keeps nothing
    tiles = sys.modules.get("pyblasgpu.engine.tile_memory")
    if tiles is not None:
        tiles.release_tiles()
    readback = sys.modules.get("pyblasgpu.gpu.readback")
    if readback is not None:
        readback.release()
    pinned = sys.modules.get("pyblasgpu.gpu.page_locked")
    if pinned is not None:
        for pool in list(pinned.shared_pools.values()):
            pool.release()
    arrays = sys.modules.get("pyblasgpu.gpu.locked_arrays")
    if arrays is not None:
        arrays.release_arrays()
    results = sys.modules.get("pyblasgpu.gpu.kept_results")
    if results is not None:
        results.kept_results().release()
