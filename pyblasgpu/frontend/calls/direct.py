"""NumPy arrays that SciPy's functions take as they are: of one dtype, without a copy, and on the processor.

The checks of a call take many times as long as a small computation. Here a call is compared with what SciPy's
function of the same name takes for the same result. All other calls are left to the checks, which raise what
there is to raise.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache, lru_cache, wraps
from importlib import import_module
from inspect import Parameter, signature
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ...types import DTYPES
from ..arrays.streams import contexts
from ..backend_status import named_backend, why_no_device
from ..engine_options import ambient_options
from .lazy_routines import policy_at, tuned_files

__all__ = [
    "Accepts",
    "Attempt",
    "Facts",
    "directly",
    "is_plain",
    "may_write",
    "order_on_processor",
    "scipys",
    "serves_vectors",
]

_Array = np.ndarray[Any, Any]
#: Flags of NumPy's arrays: aligned ones, column-major ones among these, and those that can be written.
_ALIGNED, _AS_THEY_ARE, _WRITEABLE = 0x100, 0x102, 0x400
#: Elements up to which SciPy's copy in column-major order takes less time than the checks.
SMALL = 1024
#: Kinds of calls of one function, by the types of their arguments, that are kept.
MOST_PLANS = 256
_ON_CPU = (None, "", "auto", "cpu")
_INTEGERS, _REALS, _COMPLEX = (int, bool), (int, float, np.float64), (complex, np.complex128)
_SWITCH, _PIVOT, _None = (0, 1), np.dtype(np.int32), type(None)
_OP = (0, 1, 2)
#: Factors, by the letter of the arrays' dtype, up to which one may be rounded to 0, which hides operands.
#: OpenBLAS multiplies by it in small products on some processors.
_HIDES = {"s": 2.0**-126, "c": 2.0**-126, "d": 0.0, "z": 0.0}
#: ``accepts(result, arrays, unit)``: whether a result has the special values of this package; `unit` says
#: whether the diagonal is taken to be 1.
Accepts = Callable[[Any, list[_Array], Any], bool]


def serves_vectors(backend: str | None = None) -> bool:
    """Whether SciPy's BLAS computes host vectors: unless a device is named for the call or around it."""
    return (backend or named_backend()) in _ON_CPU


def order_on_processor(letter: str, backend: str | None = None) -> float:
    """Return the order below which SciPy's BLAS computes host matrices; 0 for none, inf for all."""
    named = backend or named_backend()
    if named == "cpu":
        return inf
    if named not in _ON_CPU or ambient_options() is not None:
        return 0
    if not why_no_device(0):  # no look at the device that is current, where all have one order
        common: float | None = tuned_files().common_host_order(letter)
        if common is not None:
            return common
    device = contexts().current_device()
    least: float = inf if why_no_device(device) else policy_at(device).host_min_order[letter]
    return least


def is_plain(array: _Array, order: float) -> bool:
    """Whether SciPy takes an array as it is, or copies it in no time, and no device is to have it."""
    size = array.size
    if not size or (size >= order and max(array.shape) >= order):
        return False
    flags = array.flags.num & _AS_THEY_ARE
    return flags == _AS_THEY_ARE or array.ndim == 1 or (flags >= _ALIGNED and size <= SMALL)


@cache
def scipys(module: str, name: str) -> Callable[..., Any]:
    """SciPy's function, whatever replaces it now."""
    function = getattr(import_module(f"scipy.linalg.{module}"), name)  # slow to import
    original: Callable[..., Any] = getattr(function, "__wrapped__", function)
    return original


class Facts(NamedTuple):
    """Facts of a routine by which calls are compared with those of SciPy's function.

    Attributes
    ----------
    names : dict of str to str
        SciPy's functions by the letter of their dtype.
    arrays : dict of str to tuple of int
        Arrays by parameter, with the dimensions that they may have.
    square : tuple of str
        Arrays that are square matrices, as SciPy's functions do not always check.
    written : tuple of str
        Arrays that are overwritten; where there is a flag for it, only if that is on.
    numbers : tuple of str
        Parameters that are numbers. 'alpha', of which 0 hides operands, and 'beta' are so anyway.
    real : tuple of str
        Numbers that must be real where the arrays are complex.
    values : dict of str to container of int or str
        The values of integers that are no flags, and of flags that take others than those of most routines.
    of_vectors : bool
        Whether it is a routine of vectors, which no device has unless it is named.
    fits : callable or None
        ``fits(arrays)``: whether arrays, in the order of the parameters, fit together, as far as SciPy's
        function does not check it.
    pivots : str
        The parameter with numbers of rows of the first array; '' for none. Those of 'ipiv' count from 1, with
        a sign.
    most : float
        The order from which on matrices are not for SciPy's function.
    workspace : callable or None
        ``workspace(dtype, *shapes)``: elements of the best workspace, with which the last result but one
        begins.
    accepts : callable or None
        See `Accepts`. What is overwritten is then a copy of the result, or of the first one.
    module : str
        The module of SciPy's functions.
    """

    names: Mapping[str, str]
    arrays: Mapping[str, tuple[int, ...]]
    square: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    real: tuple[str, ...] = ()
    values: Mapping[str, Container[Any]] = {}
    of_vectors: bool = False
    fits: Callable[[list[_Array]], bool] | None = None
    pivots: str = ""
    most: float = inf
    workspace: Callable[..., int] | None = None
    accepts: Accepts | None = None
    module: str = "blas"

    def values_of(self, flag: str) -> Container[Any]:
        """The values of an integer or a letter with which SciPy's function may serve."""
        return self.values.get(flag, _OP if flag.startswith("trans") else _SWITCH)


class _Plan(NamedTuple):
    """Places of arguments, in a call whose arguments have certain names and types."""

    arrays: tuple[tuple[int, tuple[int, ...], bool], ...]  # with dimensions, and whether it is square
    flags: tuple[tuple[int, Container[Any]], ...]
    factor: int | None = None
    scale: int | None = None  # where there is nothing to scale
    pivots: int | None = None
    unit: int | None = None
    written: tuple[tuple[int, int | None], ...] = ()  # and the flag that allows it
    is_complex: bool = False


def directly(function: Callable[..., Any], facts: Facts) -> Callable[..., Any]:
    """Return `function`, but SciPy's for NumPy arrays that it takes as they are; both have one signature."""
    defaults = {name: each.default for name, each in signature(function).parameters.items()}
    attempt = Attempt(defaults, facts)
    first = attempt.first

    @wraps(function)
    def either(*arguments: Any, **options: Any) -> Any:
        if len(arguments) <= first or type(arguments[first]) is np.ndarray:
            result = attempt.run(arguments, options)
            if result is not None:
                return result
        return function(*arguments, **options)

    return either


class Attempt:
    """Calls of one function that SciPy's may serve.

    Attributes
    ----------
    parameters : tuple of str
        Names of its parameters, in order.
    optional : set of str
        Parameters that may be None.
    facts : Facts
    first : int
        The place of the first array.
    """

    def __init__(self, defaults: Mapping[str, Any], facts: Facts) -> None:
        self.parameters, self.facts = tuple(defaults), facts
        self._accepts, self._fits = facts.accepts, facts.fits
        self._workspace = facts.workspace and lru_cache(MOST_PLANS)(facts.workspace)
        self._module, self._of_vectors = facts.module, facts.of_vectors
        self.optional = {name for name, default in defaults.items() if default is None}
        self._required = {name for name, default in defaults.items() if default is Parameter.empty}
        self._names = {np.dtype(DTYPES[letter].name): (letter, name) for letter, name in facts.names.items()}
        self._plans: dict[tuple[Any, ...], _Plan | None] = {}
        self.first = min(self.parameters.index(name) for name in facts.arrays)

    def run(self, arguments: tuple[Any, ...], options: Mapping[str, Any], backend: str | None = None) -> Any:
        """Return the result of SciPy's function; None, nothing written, where it does not serve the call."""
        values = (*arguments, *options.values()) if options else arguments
        types = tuple(map(type, values))
        key = (types, *options) if options else types
        try:
            plan = self._plans[key]
        except KeyError:
            plan = self._keep(key, types, (*self.parameters[: len(arguments)], *options))
        if plan is None:
            return None
        dtype = values[plan.arrays[0][0]].dtype
        letter, name = self._names.get(dtype, ("", ""))
        if not letter or (plan.is_complex and dtype.kind != "c"):
            return None
        order = inf
        if not self._of_vectors:
            order = min(order_on_processor(letter, backend), self.facts.most)
        elif not serves_vectors(backend):
            return None
        arrays = []
        for place, dimensions, is_square in plan.arrays:
            array = values[place]
            if array.dtype is not dtype or array.ndim not in dimensions or not is_plain(array, order):
                return None
            if is_square and array.shape[0] != array.shape[1]:
                return None
            arrays.append(array)
        for place, allowed in plan.flags:
            if values[place] not in allowed:
                return None
        if (plan.factor is not None and abs(values[plan.factor]) <= _HIDES[letter]) or (
            plan.scale is not None and values[plan.scale] != 0
        ):
            return None
        if self._fits is not None and not self._fits(arrays):
            return None
        if plan.pivots is not None:
            first = int(self.facts.pivots == "ipiv")
            if not _are_rows(values[plan.pivots], arrays[0], first):
                return None
        written = [place for place, flag in plan.written if flag is None or values[flag]]
        if written:
            if not self._may_write(written, plan, values):
                return None
            if self._accepts is not None:
                arguments, options = self._copying(plan, arguments, options)
        try:
            result = scipys(self._module, name)(*arguments, **options)
        except Exception:  # what SciPy refuses the checks refuse too, in words that name the argument
            return None
        if self._workspace is not None:
            result[-2].fill(0)
            result[-2][0] = self._workspace(dtype, *[array.shape for array in arrays])
        if self._accepts is None:
            return result
        if not self._accepts(result, arrays, plan.unit is not None and values[plan.unit]):
            return None
        return _placed(result, values[written[0]]) if written else result

    def _may_write(self, written: list[int], plan: _Plan, values: tuple[Any, ...]) -> bool:
        """Whether arrays can be written, are no views of tensors, and share no memory with others."""
        if self._accepts is not None and len(self.facts.written) > 1:
            return False
        for place in written:
            if not may_write(values[place], [values[other] for other, *_ in plan.arrays if other != place]):
                return False
        return True

    def _copying(
        self, plan: _Plan, arguments: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the same call that overwrites nothing."""
        flags = {flag for _, flag in plan.written}
        given = [0 if place in flags else value for place, value in enumerate(arguments)]
        named = {name: 0 if name.startswith("overwrite_") else value for name, value in options.items()}
        return tuple(given), named

    def _keep(self, key: tuple[Any, ...], types: tuple[type, ...], names: tuple[str, ...]) -> _Plan | None:
        """Make the plan of calls with arguments of these types and names, and keep it."""
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        self._plans[key] = plan = self._plan(types, names)
        return plan

    def _plan(self, types: tuple[type, ...], names: tuple[str, ...]) -> _Plan | None:
        """Return the plan of a call; None where SciPy's function never serves calls of these types."""
        if len(names) != len(types) or len({*names}) != len(names):
            return None
        if not self._required <= {*names} <= {*self.parameters}:
            return None
        facts, plan = self.facts, _Plan((), ())
        given = enumerate(zip(names, types, strict=True))
        places = {name: place for place, (name, of) in given if of is not _None or name not in self.optional}
        for name in [each for each in self.parameters if each in places]:
            place = places[name]
            of, is_number = types[place], name in ("alpha", "beta", *facts.numbers)
            if name in facts.arrays and of is np.ndarray:
                array = place, facts.arrays[name], name in facts.square
                plan = plan._replace(arrays=(*plan.arrays, array))
                if name in facts.written:
                    plan = plan._replace(written=(*plan.written, *self._written(name, places)))
            elif name == facts.pivots and of is np.ndarray:
                plan = plan._replace(pivots=place)
            elif is_number and (of in _REALS or (of in _COMPLEX and name not in facts.real)):
                plan = plan._replace(is_complex=plan.is_complex or of in _COMPLEX)
                if name == "alpha":
                    plan = plan._replace(factor=place)
                elif name == "beta" and not {*facts.written} & {*places}:
                    plan = plan._replace(scale=place)
            elif not is_number and name not in facts.arrays and name != facts.pivots and _is_flag(of):
                allowed = facts.values_of(name)
                if of is str and isinstance(allowed, range):  # which compares it with each of its integers
                    return None
                plan = plan._replace(flags=(*plan.flags, (place, allowed)))
                if name in ("diag", "unitdiag"):
                    plan = plan._replace(unit=place)
            else:
                return None
        return plan if plan.arrays else None

    def _written(self, name: str, places: Mapping[str, int]) -> tuple[tuple[int, int | None], ...]:
        """The place of an array that is overwritten, and of the flag that allows it; () where none does."""
        flag = f"overwrite_{name}"
        if flag not in self.parameters:
            return ((places[name], None),)
        return ((places[name], places[flag]),) if flag in places else ()


def _is_flag(of: type) -> bool:
    return of in _INTEGERS or of is str


def may_write(array: _Array, others: Iterable[_Array]) -> bool:
    """Whether an array can be written, is no view of a tensor, and shares no memory with `others`."""
    if not array.flags.num & _WRITEABLE or _is_foreign(array):
        return False
    for other in others:  # noqa: SIM110  # a generator would be one more function
        if np.may_share_memory(array, other):
            return False
    return True


def _is_foreign(array: Any) -> bool:
    """Whether an array is a view of another library's, as of PyTorch's tensors."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array is not None


def _placed(result: Any, target: _Array) -> Any:
    """Return the result with its array, or the first one, in `target`, where SciPy would overwrite that."""
    array = result[0] if type(result) is tuple else result
    if target.flags.num & _AS_THEY_ARE != _AS_THEY_ARE:
        return result
    target[...] = array
    return (target, *result[1:]) if type(result) is tuple else target


def _are_rows(pivots: _Array, matrix: _Array, first: int) -> bool:
    """Whether these are numbers of rows, from `first` on, that a square matrix has interchanged."""
    rows = matrix.shape[0]
    if pivots.dtype != _PIVOT or pivots.shape != (rows,):
        return False
    numbers = [*map(abs, pivots.tolist())] if first else pivots.tolist()
    return min(numbers) >= first and max(numbers) < rows + first
