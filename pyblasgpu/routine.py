"""The row of a routine: its operands, flags, names and modules, which all other layers take from it.

`routine_table` has the rows. A row is light: it names modules, which are imported where something needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

from .types import DTYPES, INDEX, Diag, Dtype, Side, Trans, Uplo

__all__ = ["FLAGS", "INTEGERS", "Matrix", "Routine", "extents"]

#: Flags of the BLAS by the name that they have in rows.
FLAGS: dict[str, Any] = {
    "side": Side,
    "uplo": Uplo,
    "trans": Trans,
    "trans_a": Trans,
    "trans_b": Trans,
    "diag": Diag,
}
#: Operands that hold int32.
INTEGERS = ("info", "piv", "jpvt")


class Matrix(NamedTuple):
    """An operand: a matrix, or a vector, which is a matrix of one column.

    Attributes
    ----------
    name : str
        Its argument.
    rows, cols : str
        Its extents after op(): m, n or k, or '1'. 'order' is m from the left and n from the right, 'least'
        the smaller one of m and n.
    op : str
        The flag that transposes it.
    is_half : bool
        Whether one triangle of it counts.
    is_result : bool
        Whether it is written alone, as the output is that follows it.
    """

    name: str
    rows: str
    cols: str = "1"
    op: str = ""
    is_half: bool = False
    is_result: bool = False

    def shape(self, extents: Mapping[str, int]) -> tuple[int, int]:
        """Its rows and columns after op(), see `extents`."""
        return extents[self.rows], extents[self.cols]


def extents(m: int = 0, n: int = 0, k: int = 0, side: Side = Side.LEFT) -> dict[str, int]:
    """The extents that a `Matrix` may name."""
    return {"m": m, "n": n, "k": k, "order": m if side is Side.LEFT else n, "least": min(m, n), "1": 1}


@dataclass(frozen=True, eq=False)  # one of each, compared by identity
class Routine:
    """A routine.

    Attributes
    ----------
    stem : str
        Its name without the letter of a dtype.
    group : str
        'level1', 'level2', 'level3' or 'lapack'.
    arguments : tuple of str or Matrix
        Scalars and operands of its launch list and of its CPU function, in order; the output is the last one.
    flags : tuple of str
        Its flags of the BLAS, in the BLAS's order. Those that are the op of an operand are arguments of its
        CPU function alone: a launch list takes views.
    switches : tuple of str
        Further arguments of its launch list and its CPU function, off or 0 by default: 'hermitian', ...
    fixed : mapping of str to flag
        Flags of its launch list and its CPU function that a call of it has not.
    letters : str
        Dtypes for which SciPy has it.
    names : mapping of str to tuple of str
        SciPy's names by letter, where they are others than the letter and the stem.
    hermitian : bool
        Whether a transpose is conjugated where the dtype is complex.
    real : tuple of str
        Scalars that must be real.
    counterpart : str
        The routine with the transpose in place of the conjugate transpose, or the other way round.
    methods : tuple of str
        Values of `method`.
    result : str
        'real' or 'index' for a number of another dtype than the operands.
    work : tuple of str
        Extents whose product, times `fmas`, is the number of multiply-adds.
    fmas : (int, int)
        Factor of the work, as numerator and denominator.
    crossover : str
        The kind of calls with which it shares the size from which on the GPU pays; '' for none.
    direct : str
        Dtypes in which SciPy's function of its name computes NumPy arrays as they are.
    launches : str
        ``module`` or ``module:function`` of its launch list, relative to the package if it begins with a dot.
    cpu : str
        ``module:function`` that computes with NumPy arrays.
    tasks : str
        The function in `tasks` of its list of tasks.
    bound : str
        ``module:function`` that returns the error of a result over its bound.
    reads_source : bool
        Whether its launch list takes the matrix that the output starts from, before the output, where that is
        another one. Else the output is first a copy of it.
    parts : tuple of (str, str, str)
        Stems, and extents in place of m and n, of the routines that it consists of.
    """

    stem: str
    group: str
    arguments: tuple[str | Matrix, ...]
    flags: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    letters: str = "sdcz"
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hermitian: bool = False
    real: tuple[str, ...] = ()
    counterpart: str = ""
    methods: tuple[str, ...] = ()
    result: str = ""
    work: tuple[str, ...] = ()
    fmas: tuple[int, int] = (1, 1)
    crossover: str = ""
    direct: str = "sdcz"
    launches: str = ""
    cpu: str = ""
    tasks: str = ""
    bound: str = ""
    reads_source: bool = False
    parts: tuple[tuple[str, str, str], ...] = ()

    @cached_property
    def matrices(self) -> tuple[Matrix, ...]:
        """Its operands."""
        return tuple(each for each in self.arguments if isinstance(each, Matrix))

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """The names of its scalars."""
        return tuple(each for each in self.arguments if isinstance(each, str))

    @cached_property
    def inputs(self) -> tuple[Matrix, ...]:
        """The operands that every call reads: no integers, and no output that is new or scaled by beta."""
        is_updated = "beta" not in self.arguments and self.group in ("level3", "lapack")
        read = self.matrices if is_updated else self.matrices[:-1]
        return tuple(each for each in read if each.name not in INTEGERS and not each.is_result)

    @property
    def output(self) -> Matrix:
        """The operand that it writes."""
        return self.matrices[-1]

    @cached_property
    def is_update(self) -> bool:
        """Whether one triangle of its output counts, which it adds to."""
        return self.output.is_half and self.group != "lapack"

    @cached_property
    def half(self) -> Matrix | None:
        """The operand of which one triangle counts."""
        return next((each for each in self.matrices if each.is_half), None)

    @cached_property
    def ops(self) -> tuple[str, ...]:
        """The flags that transpose operands."""
        return tuple(name for name in self.flags if any(name == each.op for each in self.matrices))

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """The extents among m, n and k that its operands have."""
        used = {extent for each in self.matrices for extent in (each.rows, each.cols)}
        return tuple(extent for extent in "mnk" if extent in used)

    @property
    def is_square(self) -> bool:
        """Whether its matrices, but for a factor of an update, are square, of one order."""
        return self.group != "level1" and not {"m", "n"} <= set(self.dims)

    @property
    def is_explained(self) -> bool:
        """Whether it has a launch list, or parts that have."""
        return bool(self.launches or self.parts)

    @cached_property
    def is_rank_2(self) -> bool:
        """Whether it updates a triangle by two products, each the transpose of the other."""
        return self.output.is_half and len(self.inputs) == 2 and "trans_a" not in self.flags

    def conjugates(self, dtype: Dtype) -> bool:
        """Whether a transpose is a conjugate transpose in this dtype."""
        return self.hermitian and dtype.is_complex

    def values(self, flag: str, dtype: Dtype) -> tuple[Any, ...]:
        """The values of a flag; complex arrays have one transpose in an update with one op."""
        if flag != "trans" or not self.is_update or not dtype.is_complex:
            return tuple(FLAGS[flag])
        return Trans.NO, Trans.CONJ if self.hermitian else Trans.TRANS

    def result_dtype(self, dtype: Dtype) -> Dtype:
        """The dtype of its result."""
        real = DTYPES["d" if dtype.real_size == 8 else "s"]
        return {"": dtype, "real": real, "index": INDEX}[self.result]

    def scipys(self, letter: str) -> tuple[str, ...]:
        """SciPy's names for a dtype; two where there is one with and one without conjugation."""
        return self.names.get(letter, (letter + self.stem,))

    def size(self, extents: Mapping[str, int]) -> int:
        """The product of the extents of its work."""
        return prod(extents[each] for each in self.work)

    def flops(self, dtype: Dtype, extents: Mapping[str, int]) -> int:
        """Its floating-point operations on real numbers."""
        numerator, denominator = self.fmas
        return dtype.flops_per_fma * self.size(extents) * numerator // denominator

    def traffic(self, extents: Mapping[str, int]) -> int:
        """The elements that a call must read and write: its operands, and an output that it updates twice."""
        elements = 0
        for each in self.matrices:
            rows, cols = each.shape(extents)
            is_updated = each is self.output and ("beta" in self.scalars or "is_new_output" in self.switches)
            elements += (rows * (rows + 1) // 2 if each.is_half else rows * cols) * (1 + is_updated)
        return elements

    def arranged(self, scalars: Mapping[str, Any], operands: Sequence[Any]) -> list[Any]:
        """Scalars and operands in the order of its arguments; an output in place of an input is left out, and
        one that starts from another matrix is the last.
        """
        left = list(operands)
        found = [
            left.pop(0) if isinstance(each, Matrix) else scalars[each] for each in self.arguments if left
        ]
        return found + left

    def view_flags(self, flags: Mapping[str, Any], dtype: Dtype) -> dict[str, Any]:
        """Keyword arguments of its launch list, which takes op() as views: `uplo` is the triangle after it.

        A switch that is not among `flags` is off.
        """
        found = {**self.fixed, **{name: flags[name] for name in self.flags if name not in self.ops}}
        found |= {name: flags.get(name, False) for name in self.switches}
        if "hermitian" in found:
            found["hermitian"] = self.conjugates(dtype)
        if self.half and self.half.op and flags[self.half.op] is not Trans.NO:
            found["uplo"] = flags["uplo"].flipped
        return found

    def on_arrays(self, flags: Mapping[str, Any], dtype: Dtype, backend: str = "") -> Callable[..., None]:
        """Return ``cpu(scalars, *arrays)``, which computes the routine with NumPy arrays in place.

        Parameters
        ----------
        flags : mapping
            Its flags and switches; `uplo` is that of the triangle as it is stored.
        dtype : Dtype
        backend : str
            "numba" has functions of Level 3 of its own.
        """
        given, names = self.view_flags(flags, dtype), self.scalars
        given |= {name: flags[name] for name in self.flags}
        is_numba = backend == "numba" and self.group == "level3"

        def cpu(scalars: tuple[Any, ...], *arrays: Any) -> None:
            function = self.cpu_function
            if is_numba:
                function = _function(f".cpu.numba.level3:{function.__name__}")
            function(*self.arranged(dict(zip(names, scalars, strict=False)), arrays), **given)

        return cpu

    def on_operands(
        self, flags: Mapping[str, Any], dtype: Dtype, **options: Any
    ) -> Callable[[tuple[Any, ...], Any], Any]:
        """Return ``prepare(scalars, operands)``, the routine's launch list; see `on_arrays`."""
        given, names = self.view_flags(flags, dtype) | options, self.scalars

        def prepare(scalars: tuple[Any, ...], operands: Any) -> Any:
            arguments = self.arranged(dict(zip(names, scalars, strict=False)), operands)
            return self.launch_list(*arguments, **given)

        return prepare

    @cached_property
    def launch_list(self) -> Callable[..., Any]:
        """Its launch list, for scalars, operands and flags."""
        return _function(self.launches, "launch_list")

    @cached_property
    def error(self) -> Callable[..., float]:
        """Function that returns the error of a result over its bound, see `testing.error_bounds`."""
        return _function(self.bound)

    @cached_property
    def cpu_function(self) -> Callable[..., None]:
        """Function that computes with NumPy arrays, in place."""
        return _function(self.cpu)


def _function(name: str, default: str = "") -> Callable[..., Any]:
    """The function of ``module:function``."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module, __package__), function or default)
    return found
