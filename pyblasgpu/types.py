"""The vocabulary of the BLAS: Side, Uplo, Trans, Diag, and the four dtypes with their facts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["DTYPES", "Diag", "Dtype", "Side", "Trans", "Uplo", "dtype_of"]


class _Flag(Enum):
    @classmethod
    def parse(cls, value: Any, routine: str, argument: str):
        """The flag that `value` (a member, a letter of either case, or SciPy's int) stands for."""
        if isinstance(value, cls):
            return value
        table = cls._spellings()
        key = value.upper() if isinstance(value, str) else value
        # True is SciPy's 1; anything unhashable or a float is nobody's flag
        if isinstance(key, (str, int)) or hasattr(key, "__index__"):
            member = table.get(key if isinstance(key, str) else int(key))
            if member is not None:
                return member
        raise ValueError(f"{routine}: {argument}={value!r} is none of {sorted(table, key=str)}")


class Side(_Flag):
    LEFT = "L"
    RIGHT = "R"

    @classmethod
    def _spellings(cls):
        return {"L": cls.LEFT, 0: cls.LEFT, "R": cls.RIGHT, 1: cls.RIGHT}


class Uplo(_Flag):
    UPPER = "U"
    LOWER = "L"

    @classmethod
    def _spellings(cls):
        return {"U": cls.UPPER, 0: cls.UPPER, "L": cls.LOWER, 1: cls.LOWER}

    @property
    def flipped(self) -> Uplo:
        return Uplo.LOWER if self is Uplo.UPPER else Uplo.UPPER


class Trans(_Flag):
    NO = "N"
    TRANS = "T"
    CONJ = "C"

    @classmethod
    def _spellings(cls):
        return {
            "N": cls.NO,
            0: cls.NO,
            "T": cls.TRANS,
            1: cls.TRANS,
            "C": cls.CONJ,
            "H": cls.CONJ,
            2: cls.CONJ,
        }


class Diag(_Flag):
    NON_UNIT = "N"
    UNIT = "U"

    @classmethod
    def _spellings(cls):
        return {"N": cls.NON_UNIT, 0: cls.NON_UNIT, "U": cls.UNIT, 1: cls.UNIT}


@dataclass(frozen=True, eq=False)  # four instances, compared by identity
class Dtype:
    """One of the four BLAS dtypes.

    Attributes
    ----------
    letter : str
        's', 'd', 'c' or 'z', the prefix of its routines.
    name : str
        NumPy's name.
    real : str
        The NumPy name of its real parts.
    parts : int
        Reals an element has: 1, or 2 for complex.
    itemsize, real_size : int
        Bytes of an element, of a real part.
    unit_roundoff : float
        u: half the distance from 1 to the next number.
    """

    letter: str
    name: str
    real: str
    parts: int
    itemsize: int
    unit_roundoff: float

    @property
    def real_size(self) -> int:
        return self.itemsize // self.parts

    @property
    def is_complex(self) -> bool:
        return self.parts == 2

    @property
    def flops_per_fma(self) -> int:
        """Real operations of one multiply-add: 2, or 8 for complex."""
        return 8 if self.is_complex else 2


DTYPES = {
    "s": Dtype("s", "float32", "float32", 1, 4, 2.0**-24),
    "d": Dtype("d", "float64", "float64", 1, 8, 2.0**-53),
    "c": Dtype("c", "complex64", "float32", 2, 8, 2.0**-24),
    "z": Dtype("z", "complex128", "float64", 2, 16, 2.0**-53),
}

_BY_NAME = {dtype.name: dtype for dtype in DTYPES.values()}


def dtype_of(name: Any) -> Dtype:
    """The `Dtype` of a letter, a NumPy name, a NumPy dtype or another library's dtype.

    Raises
    ------
    TypeError
        For any dtype but the four.
    """
    if isinstance(name, Dtype):
        return name
    found = DTYPES.get(name) if isinstance(name, str) else None
    found = found or _BY_NAME.get(str(name).removeprefix("torch."))
    if found is None:
        raise TypeError(f"dtype {name} is none of float32, float64, complex64, complex128")
    return found
