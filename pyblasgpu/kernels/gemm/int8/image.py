"""Layout in the workspace: residues of operands and of the product, and the facts of rows.

An operand is `extent` rows of A, or columns of B, by k. BLK rows are a *panel*, `STAGE_K` k of it a *stage*.
A row of it has 128 bytes, whose chunks of 16 are swizzled as wgmma reads them. Of each modulus there is an
image, panel after panel, stage after stage, and after them one of *digits*: the seven leading bits of
elements, by the size of their row. With them a lower bound of ``|A| |B|`` is computed, for which a *sample*
of k will do: of each stage one chunk in `sample`, other ones than of the stage before.

A complex product is three of real matrices: of real parts, of imaginary parts, and of the sums of both. So a
complex operand has three images of each modulus, those of all moduli one part after the other. The digit of
an element is that of its larger part.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....types import Dtype

__all__ = [
    "DIGIT",
    "FACTS",
    "INVERSE",
    "SCALE",
    "SIZE",
    "STAGE_K",
    "STAGE_WORDS_OF_ROW",
    "UNIT",
    "Image",
    "parts_of",
]

STAGE_K = 128
STAGE_WORDS_OF_ROW = STAGE_K // 4

#: Facts of each row by `row_scales`, an array each: the scale 2^s that makes it integers x; 2^-s; the factor
#: of x before it is cut to a digit; its share of the error; digits of a unit of x.
SCALE, INVERSE, DIGIT, SIZE, UNIT = range(5)
FACTS = 5


def parts_of(dtype: Dtype) -> int:
    """Images of each modulus: of a real operand one; of real parts, imaginary parts and sums of both."""
    return 3 if dtype.is_complex else 1


@dataclass(frozen=True)
class Image:
    """Sizes of what is kept of an operand."""

    blk: int
    extent: int
    k: int

    @property
    def panels(self) -> int:
        return -(-self.extent // self.blk)

    @property
    def stages(self) -> int:
        return -(-self.k // STAGE_K)

    @property
    def rows(self) -> int:
        """Rows of whole panels: the length of each array of facts."""
        return self.panels * self.blk

    @property
    def words(self) -> int:
        """Words of 4 bytes of one modulus."""
        return self.rows * self.stages * STAGE_WORDS_OF_ROW

    def all_words(self, images: int, sample: int) -> int:
        """Words of `images` images, and of that of digits."""
        return self.words * images + self.rows * -(-self.stages // sample) * STAGE_WORDS_OF_ROW
