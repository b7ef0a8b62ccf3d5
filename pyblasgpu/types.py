"""The vocabulary of the BLAS: Side, Uplo, Trans, Diag, regions, and the four dtypes with their facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from operator import index
from typing import Any, Final, Self

from .arguments import item, shown

__all__ = [
    "DTYPES",
    "INDEX",
    "INT32",
    "TENSOR",
    "THREE_M",
    "Diag",
    "Dtype",
    "Region",
    "Side",
    "Trans",
    "Triangle",
    "Uplo",
    "dtype_spelling",
    "dtype_of",
    "product_method",
    "tensor_method",
]

#: The method of a complex product that makes it of three real ones.
THREE_M: Final = "3m"
#: The method of a product in float32 that makes it on tensor cores, within the same bound.
TENSOR: Final = "tensor"


class _Flag(Enum):
    @classmethod
    def parse(cls, value: Any, routine: str, argument: str) -> Self:
        """The flag that `value` (a member, a letter of either case, or SciPy's int) denotes."""
        if isinstance(value, cls):
            return value
        table: dict[Any, Any] = _SPELLINGS[cls.__name__]
        try:
            spelling = value if type(value) in (str, int, bool) else item(value)
            flag: Self = table[spelling.upper() if isinstance(spelling, str) else index(spelling)]
            return flag
        except (KeyError, TypeError):
            known = sorted(table, key=str)
            raise ValueError(f"{routine}: {argument}={shown(value)} is none of {known}") from None


class Side(_Flag):
    LEFT = "L"
    RIGHT = "R"

    @property
    def flipped(self) -> Side:
        return Side.RIGHT if self is Side.LEFT else Side.LEFT


class Uplo(_Flag):
    UPPER = "U"
    LOWER = "L"

    @property
    def flipped(self) -> Uplo:
        return Uplo.LOWER if self is Uplo.UPPER else Uplo.UPPER


class Trans(_Flag):
    NO = "N"
    TRANS = "T"
    CONJ = "C"


class Diag(_Flag):
    NON_UNIT = "N"
    UNIT = "U"


class Region(Enum):
    """All of a matrix, or one of its triangles.

    Attributes
    ----------
    uplo : Uplo, optional
        The triangle; None: all of the matrix.
    hermitian : bool
        The imaginary parts of the diagonal are taken to be zero, and become it.
    strict : bool
        The diagonal does not belong to the triangle.
    is_upper : bool
        Whether it is an upper triangle.
    """

    ALL = None, False, False
    LOWER = Uplo.LOWER, False, False
    UPPER = Uplo.UPPER, False, False
    STRICT_LOWER = Uplo.LOWER, False, True
    HERMITIAN_LOWER = Uplo.LOWER, True, False
    HERMITIAN_UPPER = Uplo.UPPER, True, False

    def __init__(self, uplo: Uplo | None, hermitian: bool, strict: bool):
        self.uplo, self.hermitian, self.strict = uplo, hermitian, strict
        self.is_upper = uplo is Uplo.UPPER

    @classmethod
    def of(cls, uplo: Uplo | None, hermitian: bool = False, strict: bool = False) -> Region:
        """The region with these attributes."""
        wanted = uplo, hermitian, strict
        return next(region for region in cls if region.value == wanted)

    @property
    def transposed(self) -> Region:
        """Region of the same elements in the transposed matrix."""
        return self if self.uplo is None else Region.of(self.uplo.flipped, self.hermitian, self.strict)


class Triangle(Enum):
    """A triangular operand T of a kernel that works in place.

    Attributes
    ----------
    uplo : Uplo
        The triangle of T that is read.
    side : Side
        On the left T is the kernel's A, on the right its B.
    on_left : bool
        Whether T is the kernel's A.
    is_forward : bool
        Whether substitution begins with the first unknowns.
    """

    LOWER_LEFT = Uplo.LOWER, Side.LEFT
    UPPER_LEFT = Uplo.UPPER, Side.LEFT
    LOWER_RIGHT = Uplo.LOWER, Side.RIGHT
    UPPER_RIGHT = Uplo.UPPER, Side.RIGHT

    def __init__(self, uplo: Uplo, side: Side):
        self.uplo, self.side, self.on_left = uplo, side, side is Side.LEFT
        self.is_forward = (uplo is Uplo.LOWER) == self.on_left

    @classmethod
    def of(cls, uplo: Uplo, side: Side) -> Triangle:
        """The triangle with these attributes."""
        return next(triangle for triangle in cls if triangle.value == (uplo, side))


_SPELLINGS: dict[str, dict[str | int, Any]] = {
    "Side": {"L": Side.LEFT, 0: Side.LEFT, "R": Side.RIGHT, 1: Side.RIGHT},
    "Uplo": {"U": Uplo.UPPER, 0: Uplo.UPPER, "L": Uplo.LOWER, 1: Uplo.LOWER},
    "Trans": {
        "N": Trans.NO,
        0: Trans.NO,
        "T": Trans.TRANS,
        1: Trans.TRANS,
        "C": Trans.CONJ,
        "H": Trans.CONJ,
        2: Trans.CONJ,
    },
    "Diag": {"N": Diag.NON_UNIT, 0: Diag.NON_UNIT, "U": Diag.UNIT, 1: Diag.UNIT},
}


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
    reals_per_element : int
        Reals an element has: 1, or 2 for complex.
    itemsize, real_size : int
        Bytes of an element, of a real part.
    unit_roundoff : float
        u: half the distance from 1 to the next number.
    is_complex : bool
    flops_per_fma : int
        Real operations of one multiply-add: 2, or 8 for complex.
    """

    letter: str
    name: str
    real: str
    reals_per_element: int
    itemsize: int
    unit_roundoff: float
    real_size: int = field(init=False)
    is_complex: bool = field(init=False)
    flops_per_fma: int = field(init=False)

    def __post_init__(self) -> None:
        is_complex = self.reals_per_element == 2
        object.__setattr__(self, "real_size", self.itemsize // self.reals_per_element)
        object.__setattr__(self, "is_complex", is_complex)
        object.__setattr__(self, "flops_per_fma", 8 if is_complex else 2)

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_of, (self.letter,)

    def reuse(self, rows: Any, cols: Any) -> Any:
        """FMAs for each element loaded where `rows` of A, or an array of them, meet `cols` of B
        (Kurzak et al., Algorithm 3)."""
        ratio = rows * cols / (rows + cols)
        return 2 * ratio if self.is_complex else ratio


DTYPES = {
    "s": Dtype("s", "float32", "float32", 1, 4, 2.0**-24),
    "d": Dtype("d", "float64", "float64", 1, 8, 2.0**-53),
    "c": Dtype("c", "complex64", "float32", 2, 8, 2.0**-24),
    "z": Dtype("z", "complex128", "float64", 2, 16, 2.0**-53),
}

#: The dtype of indices, as i?amax gives them; no array of the BLAS has it.
INDEX = Dtype("q", "int64", "int64", 1, 8, 0.0)

#: The dtype of pivots; of no array that is computed.
INT32 = Dtype("i", "int32", "int32", 1, 4, 0.0)

#: Codes as NumPy has them, byte order left out, and the names of Python and C.
_CODES = {
    "s": "f4 f single",
    "d": "f8 double float",
    "c": "c8 F csingle",
    "z": "c16 D cdouble complex",
}
_DTYPES_BY_NAME = {
    name: dtype for letter, dtype in DTYPES.items() for name in (letter, dtype.name, *_CODES[letter].split())
}


def dtype_spelling(dtype: Any) -> str:
    """The name of a dtype, in NumPy's spelling as far as there is one.

    Parameters
    ----------
    dtype : str, class, or dtype of any library
        A string is NumPy's code or a name; a class, of Python (float) or NumPy (numpy.float64), has its name;
        an object of another library has it as an attribute `name` or as the end of its str.
    """
    if isinstance(dtype, str):
        return dtype.lstrip("<>=|").rpartition(".")[2]
    name = dtype.__name__ if isinstance(dtype, type) else getattr(dtype, "name", None)
    return (name if isinstance(name, str) else str(dtype).rpartition(".")[2]).lower()


def dtype_of(dtype: Any) -> Dtype:
    """The `Dtype` that is meant by a letter, a name, a class, NumPy's dtype or another library's.

    Raises
    ------
    TypeError
        For any dtype but the four.
    """
    if isinstance(dtype, Dtype):
        return dtype
    known = _DTYPES_BY_NAME.get(dtype_spelling(dtype))
    if known is None:
        raise TypeError(f"dtype {dtype} is none of float32, float64, complex64, complex128")
    return known


def product_method(method: Any, dtype: Dtype, routine: str) -> str | None:
    """`method` of a product in `dtype`, checked: `THREE_M`, `TENSOR`, or None, the default.

    Raises
    ------
    ValueError
        For another method, and for three products of real arrays.
    """
    if not isinstance(method, str) or method != THREE_M:
        return tensor_method(method, routine, f"none of {THREE_M!r}, {TENSOR!r} and None")
    if not dtype.is_complex:
        raise ValueError(f"{routine}: method={method!r} is for complex arrays, these are {dtype.name}")
    return THREE_M


def tensor_method(method: Any, routine: str, known: str = f"neither {TENSOR!r} nor None") -> str | None:
    """`method` of a routine of products, checked: `TENSOR`, or None, the default.

    Raises
    ------
    ValueError
        For another method.
    """
    if method is not None and not (isinstance(method, str) and method == TENSOR):
        raise ValueError(f"{routine}: method={shown(method)} is {known}")
    return None if method is None else TENSOR
