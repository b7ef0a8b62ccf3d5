"""Layout of an operand's halves once it is split and packed, and which elements pairs can hold.

An element is ``2^-s (hi + lo 2^-11)``, hi and lo FP16, s the shift of its row (column, of B) in a *block* of
BLK_K along k. BLK rows are a *panel*. An image has panel after panel, of each block after block, of each
stages of `STAGE_K` k: BLK rows of 128 bytes, 32 k of hi and then of lo, whose chunks of 16 bytes are swizzled
as wgmma reads them. So a stage is one run of memory, which a bulk copy loads without a tensor map. Next to
the image are ``2^-s``, a float32 for each row of a block, and flags: one for each *unit*, the rows of a block
that a block of threads packs.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BLOCKS_K",
    "GRAIN",
    "LARGEST_HALF",
    "LARGEST_SHIFTED",
    "LO_SHIFT",
    "MAX_EXPONENT",
    "MIN_EXPONENT",
    "STAGE_K",
    "Image",
    "block_of",
    "least_element",
    "unit_rows",
]

UNIT = 8192  # elements of a block, at most, that a block of threads packs
#: Rows and k of the squares by which the diagonal of a triangle is handled: tiles of one have the same k.
GRAIN = 256
STAGE_K = 32  # k of a stage: 64 bytes of hi, 64 of lo
LO_SHIFT = 11  # bits by which lo is shifted up: as many as hi has
#: Exponent of the largest element of a row of a block, once it is shifted; one less where it would be beyond
#: the largest FP16.
LARGEST_SHIFTED = 15
LARGEST_HALF = 65504.0

#: Exponents of the largest elements of blocks: with others a scale of the product might leave float32.
MIN_EXPONENT, MAX_EXPONENT = -48, 51
#: k with which no sum of such products leaves float32.
MAX_K = 1 << 22


def unit_rows(blk: int, blk_k: int) -> int:
    """Rows of a block that are packed together, and have a flag."""
    return min(blk, UNIT // blk_k)


@dataclass(frozen=True)
class Image:
    """Sizes of the image of an operand of `extent` rows (columns, of B) and `k`, in words of 4 bytes; an
    element has `parts` parts of two bytes.
    """

    blk: int
    blk_k: int
    extent: int
    k: int
    parts: int = 2

    @property
    def panels(self) -> int:
        return -(-self.extent // self.blk)

    @property
    def blocks(self) -> int:
        """Blocks of a panel."""
        return -(-self.k // self.blk_k)

    @property
    def flags_of_panel(self) -> int:
        return self.blocks * (self.blk // unit_rows(self.blk, self.blk_k))

    @property
    def flags_of_grain(self) -> int:
        """Flags of `GRAIN` k of a panel."""
        return GRAIN // self.blk_k * (self.blk // unit_rows(self.blk, self.blk_k))

    @property
    def flags(self) -> int:
        return self.panels * self.flags_of_panel

    @property
    def scales(self) -> int:
        return self.panels * self.blocks * self.blk

    @property
    def halves(self) -> int:
        return self.scales * self.blk_k * self.parts // 2


SMALLEST_NORMAL = 2.0**-14  # of FP16
MAX_BELOW = 16.0  # times that an element may be smaller than the least normal FP16
#: k of a block, the most first: few cost the sums' rounding, many the time and the power of promotion.
BLOCKS_K = (256, 128, 64, 32)
#: Times that elements may be smaller than the least normal FP16 where blocks of more than 64 k serve: with
#: fewer, more elements of ordinary data would be too small.
ROOMY = 2.5


def block_of(k: int) -> int | None:
    """k of a block for a product of `k`: the largest that keeps the bound, with room; None: none does."""
    if k > MAX_K:
        return None
    for blk_k in BLOCKS_K:
        least = least_element(k, blk_k)
        if least is not None and (blk_k <= 64 or least <= SMALLEST_NORMAL / ROOMY):
            return blk_k
    return None


def least_element(k: int, blk_k: int) -> float | None:
    """The smallest size, once it is shifted, of an element that is not zero.

    With no smaller one the product's componentwise error is at most ``(k + 2) u |A| |B|``, u = 2^-24,
    whatever the other operand is: docs/design/gemm_wgmma.md has the proof. None where k is too small.
    """
    # SMALLEST_NORMAL / v, where the errors a v^2 + 8 v + c, in units of u, are what the bound allows
    a, c = 38 * (blk_k // 16) + 4, 1.05 * -(-k // blk_k) + 4
    if a + 8 + c > k + 2:
        return None
    v = (-4 + (16 + a * (k + 2 - c)) ** 0.5) / a
    return SMALLEST_NORMAL / min(v, MAX_BELOW)
