"""What dispatch decides: the Config of a kernel, or an algorithm; and where that comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["COMPUTED", "OVERRIDE", "Algorithm", "KernelChoice"]

COMPUTED = "computed"  # the origin of what no file gave
OVERRIDE = "override"


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """The Config of a kernel.

    Attributes
    ----------
    config : object
        A frozen Config; it tells its family and whether operands are packed.
    origin : str
        An override, a file and the class or point within it, 'fixed' or 'computed'.
    splits : int
        Of a product, slices of its k, or `split_k.STREAM_K`.
    copied : (bool, bool)
        Which of A and B of a product are copied first, to lie as the Config has it.
    """

    config: Any
    origin: str
    splits: int = 1
    copied: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """The algorithm that a routine runs.

    Attributes
    ----------
    name : str
        Of TRSM 'trsv', 'trsm_fused', 'trsm_fused_1024' (a recursion that ends in fused triangles of that
        order), 'trsm_small' or 'recursion'; of TRMM 'trmm_fused', 'trmm_fused_1024' or 'recursion'; of
        SYR2K 'symmetrize' or 'two_products'.
    origin : str
        As that of a `KernelChoice`.
    """

    name: str
    origin: str
