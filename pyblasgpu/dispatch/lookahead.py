"""From where on LU and Cholesky factors look ahead, by blocks of how many columns (`routines.lookahead`)."""

from __future__ import annotations

from ..types import Dtype
from . import overrides
from .math_mode import splits_singles

__all__ = ["lookahead_width", "tiles_per_block"]

#: By routine: orders, and from each one on the columns of a block; measured at 512 to 16384 on an H200.
WIDTHS = {"getrf": ((1024, 128), (6144, 256), (12288, 512)), "potrf": ((1024, 128), (2048, 256))}
#: By bytes of a real: orders from which on Cholesky factors lose more by products of so few columns than they
#: gain.
MAX_POTRF = {4: 12288, 8: 4096}
#: Tiles after which a block of an update gives its multiprocessor back, to the next panel.
TILES = 1


def lookahead_width(routine: str, dtype: Dtype, order: int, batch: int = 1) -> int:
    """Columns of a block; 0: no lookahead. There is none in small matrices and in batches by one launch,
    which fill the device, nor where products are made on tensor cores, which take more columns.
    """
    if batch > 1:
        return 0
    requested: int | None = overrides.get_override("lookahead")
    if requested is not None:
        return requested
    if splits_singles(dtype) or (routine == "potrf" and order >= MAX_POTRF[dtype.real_size]):
        return 0
    return next((width for least, width in reversed(WIDTHS[routine]) if order >= least), 0)


def tiles_per_block() -> int:
    """Tiles after which blocks of an update give a multiprocessor back."""
    requested: int | None = overrides.get_override("tiles")
    return TILES if requested is None else requested
