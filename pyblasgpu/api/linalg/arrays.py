"""Arguments and results of linalg: arrays of any library as NumPy-like ones, dtypes, outputs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...arguments import Array, enabled, shown
from ...frontend.arrays.any_array import (
    Library,
    common_dtype,
    common_library,
    dtype_name,
    host_array,
    indexable,
    library_of,
    may_share_memory,
    numpy_dtype,
    stored_dtype,
)
from ...frontend.arrays.layouts import broadcasts_to
from ...frontend.arrays.streams import contexts, is_captured
from ...frontend.calls.call import Call
from ...frontend.calls.factor_chain import Recording
from ...types import DTYPES, Dtype, dtype_of
from ..blas.arrays import may_overwrite
from ..keyword.level3 import multiply
from ..keyword.repeated import replay

__all__ = [
    "Arrays",
    "Passed",
    "as_array",
    "check_cast",
    "computation",
    "gemm_of",
    "plain",
    "returns_rows",
    "scipy_release",
    "stored",
    "taken",
]

_DTYPES = {np.dtype(dtype.name): dtype for dtype in DTYPES.values()}
#: The releases of SciPy from which on its functions return new matrices by rows.
_ROWS_SINCE = {"solve": (1, 17), "inv": (1, 17), "cholesky": (1, 18), "cho_factor": (1, 18)}


class Arrays(NamedTuple):
    """The arrays of a call: NumPy's for host memory, else as their library has them.

    Attributes
    ----------
    library : Library
        The library of all arguments.
    xp : module
        The namespace of the arrays, by the array API.
    each : tuple of arrays
        The arrays in the order of the arguments.
    dtype : Dtype
        The dtype to compute in.
    like : array
        The first argument as the caller has it, whose kind results are of.
    recording : Recording or None
        Keeps the call, see `recorded`.
    """

    library: Library
    xp: Any
    each: tuple[Any, ...]
    dtype: Dtype
    like: Any
    recording: Recording | None = None

    @property
    def are_views(self) -> bool:
        """Whether they are CuPy's views of what the caller passed."""
        return not self.library.host and self.each[0] is not self.like

    def returned(self, result: Any) -> Any:
        """`result` as an array of the caller's library; of no dimensions a scalar where that is NumPy."""
        if self.are_views:
            return self.library.deliver(result, self.like, None)
        if not self.library.host:
            return result
        if isinstance(self.like, np.ndarray):
            return result[()] if result.ndim == 0 else result
        return self.library.deliver(np.asarray(result), self.like, None)

    def current(self) -> AbstractContextManager[Any]:
        """A context in which operations of `xp` run on the arrays' device."""
        if self.library.host:
            return nullcontext()
        context: AbstractContextManager[Any] = contexts().current_context(self.library.device(self.each[0]))
        return context

    def silent(self) -> AbstractContextManager[Any]:
        """The `current` context of a function that never warns of floating-point errors; what it calls there
        is recorded.
        """
        if self.recording is not None:
            return self.recording
        return np.errstate(all="ignore") if self.library.host else self.current()

    def recorded(self, key: tuple[Any, ...], passed: tuple[Any, ...], check_finite: Any = None) -> Arrays:
        """Return the arrays of a call that may be kept under `key`, see `factor_chain.repeat_chain`.

        That is one of device arrays whose values are not looked at.
        """
        if self.library.host or not (check_finite is None or check_finite is False):
            return self
        return self._replace(recording=Recording(key, passed, self.library.device(self.each[0])))

    def kept(self, *results: Any) -> None:
        """Keep a call that is recorded, with its results."""
        if self.recording is not None:
            self.recording.keep(*results, with_them=self.without())

    def without(self) -> Arrays:
        """Return what holds of other arrays of these types too, for `of`."""
        return self._replace(each=(), like=None, recording=None)

    def of(self, array: Any) -> Arrays:
        """Return what `without` has left for another array, the first one of a call."""
        return self._replace(each=(array,), like=array)

    @property
    def may_wait(self) -> bool:
        """Whether the host may read results, as it may not of what becomes part of a graph."""
        device = self.device
        return device is None or not is_captured(self.library.current_stream(device))

    @property
    def precision(self) -> float:
        """The distance of 1 from the next number of the dtype."""
        return _precision(self.dtype.name)

    @property
    def device(self) -> int | None:
        """The device of device arrays; None of host arrays."""
        return None if self.library.host else self.library.device(self.each[0])

    @property
    def placement(self) -> dict[str, Any]:
        """Keywords by which functions of `xp` make arrays on the device of the call's."""
        if self.library.host:
            return {}
        return {"device": import_module("array_api_compat").device(self.each[0])}

    def identity(self, rows: int, cols: int | None = None, dtype: str = "") -> Any:
        """A matrix with ones on the diagonal."""
        kind = getattr(self.xp, dtype or self.dtype.name)
        return self.xp.eye(rows, cols, dtype=kind, **self.placement)

    def from_host(self, array: Any) -> Any:
        """Return a NumPy array on the device of the call's."""
        return array if self.library.host else self.xp.asarray(array, **self.placement)

    def may_overwrite(self, flag: Any, name: str, argument: str, array: Any) -> bool:
        """Whether results may go into `array`, as by SciPy. The `flag` allows it, it shares no memory with
        other arrays of the call, and it is no host stack.
        """
        if not enabled(flag, name, argument) or (self.library.host and len(array.shape) > 2):
            return False
        sharing = [other for other in self.each if other is array or may_share_memory(other, array)]
        return len(sharing) <= 1

    def output(self, array: Any, overwrite: bool, *others: Any) -> Any | None:
        """`array`, which is written then, if a host result goes there as by SciPy: by columns, not in memory
        of `others`. Else None.
        """
        if not (overwrite and self.library.host and may_overwrite(array, self.dtype, others)):
            return None
        self.library.written(array)
        return array

    def placed(self, result: Any, out: Any | None) -> Any:
        """`result` in the memory of `out`; where that is None, a host result is by rows."""
        if out is None:
            return np.ascontiguousarray(result) if self.library.host else result
        self.library.written(out)
        np.copyto(out, result)
        return out

    def in_scipys_order(self, result: Any, name: str) -> Any:
        """A host result by rows of the function `name`, by columns where this SciPy returns columns."""
        if not self.library.host or returns_rows(name) or result.swapaxes(-1, -2).flags.c_contiguous:
            return result
        return result.swapaxes(-1, -2).copy().swapaxes(-1, -2)

    def cast(self, array: Any) -> Any:
        """`array` in the dtype of the computation."""
        if stored_dtype(array.dtype) is self.dtype:
            return array
        return self.xp.astype(array, getattr(self.xp, self.dtype.name), copy=False)


@cache
def _precision(name: str) -> float:
    return float(np.finfo(name).eps)


@cache
def scipy_release() -> tuple[int, ...]:
    """The first two numbers of SciPy's version, whose order in memory and whose pivots results have."""
    from scipy import __version__  # not at the start

    return tuple(map(int, __version__.split(".")[:2]))


def returns_rows(name: str) -> bool:
    """Whether this SciPy's function returns a new matrix by rows, not by columns."""
    return scipy_release() >= _ROWS_SINCE[name]


def taken(name: str, arrays: dict[str, Array]) -> Arrays:
    """The arguments of the function `name`, lists and numbers among them.

    Raises
    ------
    TypeError
        When they are of different libraries, or none of the four dtypes holds them.
    """
    if (found := plain(tuple(arrays.values()))) is not None:
        return found
    each = tuple(as_array(array, name, argument) for argument, array in arrays.items())
    library = common_library(name, tuple(arrays), each)
    dtype = computation(name, dict(zip(arrays, each, strict=True)), None, "unsafe")
    like = each[0]
    if library.host:
        xp = _host_namespace()
        hosts = tuple(host_array(array, name, argument) for argument, array in zip(arrays, each, strict=True))
        return Arrays(library, xp, hosts, dtype, like)
    try:
        xp = _namespace_of(each)
    except TypeError:  # Numba's, and those of protocols alone, become CuPy's
        each = tuple(library.view(array) for array in each)
        xp = _namespace_of(each)
    return Arrays(library, xp, each, dtype, like)


#: Namespaces by the types of arrays.
_namespaces: dict[tuple[type, ...], Any] = {}


def _namespace_of(arrays: tuple[Array, ...]) -> Any:
    """The namespace of arrays by the array API; TypeError where they have none."""
    types = tuple(map(type, arrays))
    if types not in _namespaces:
        _namespaces[types] = import_module("array_api_compat").array_namespace(*arrays)
    return _namespaces[types]


def plain(each: tuple[Array, ...]) -> Arrays | None:
    """Return the arguments where they are NumPy arrays of one of the four dtypes; else None."""
    first = each[0]
    dtype = _DTYPES.get(first.dtype) if type(first) is np.ndarray else None
    if dtype is None:
        return None
    for other in each[1:]:
        if type(other) is not np.ndarray or other.dtype is not first.dtype:
            return None
    return Arrays(library_of(first), _host_namespace(), each, dtype, first)


@cache
def _host_namespace() -> Any:
    return import_module("array_api_compat.numpy")  # not at the start


def as_array(array: Any, name: str, argument: str) -> Array:
    """`array`, or for a list or a number what NumPy makes of it."""
    if not isinstance(array, (list, tuple, int, float, complex)):
        return indexable(array, name, argument)
    try:
        return np.asarray(array)
    except ValueError as error:
        raise ValueError(f"{name}: {argument}={shown(array)} is no array: {error}") from None


def computation(name: str, arrays: dict[str, Array], dtype: Any, casting: str) -> Dtype:
    """The dtype to compute in, once `casting` has allowed the casts to it."""
    dtypes = [dtype_name(array) for array in arrays.values()]
    if str(dtype).startswith(">"):
        raise TypeError(f"{name}: dtype {dtype} is not in native byte order")
    wanted = common_dtype(name, dtypes, tuple(arrays)) if dtype is None else dtype_of(dtype)
    if casting == "unsafe":
        return wanted
    for index, source in enumerate(dtypes):
        check_cast(f"{name}: input {index}", source, wanted.name, casting)
    return wanted


def check_cast(what: str, source: Any, target: Any, casting: Any) -> None:
    if not np.can_cast(numpy_dtype(source), numpy_dtype(target), casting):
        raise TypeError(f"{what} cannot be cast from {source} to {target} with casting rule {casting!r}")


class Passed(NamedTuple):
    """A product as it is kept: its key, the arrays as passed, and the shape of its result."""

    key: tuple[Any, ...]
    arrays: tuple[Any, ...]
    shape: tuple[int, ...]


def gemm_of(
    name: str,
    a: Array,
    b: Array,
    dtype: Dtype,
    trans_a: str = "N",
    trans_b: str = "N",
    passed: Passed | None = None,
    column_major: bool | None = None,
) -> Any:
    """The new product op(a) op(b) of two stacks of matrices, views of what was `passed`."""
    if type(a) is np.ndarray and a.dtype == dtype.name:
        done = replay(("gemm", trans_a, trans_b, None, str, str), (a, b), None, 1, 0, None, None)
        if done is not None and (passed is None and column_major is None):
            return done
        if done is not None:
            return np.asarray(done, order="F" if column_major else "C")
    call = Call(name, {"a": a, "b": b}, None, None, None, dtype)
    if passed is None:
        return multiply(call, 1, 0, None, trans_a, trans_b, column_major=column_major)
    call.views(passed.arrays, None, passed.shape)
    return multiply(call, 1, 0, None, trans_a, trans_b, column_major=column_major or False, key=passed.key)


def stored(name: str, result: Array, out: Array, casting: str, core: int | None = None) -> Array:
    """`out`, holding `result`, of the same shape but for leading dimensions, which broadcast.

    The last `core` dimensions must be the same; by default all must be, and no others may lead.

    Raises
    ------
    TypeError
        When `out` is of another library, of a dtype that `casting` forbids, or no array.
    ValueError
        When it is on another device, of another shape, or read-only.
    """
    library = common_library(name, ("the product", "out"), (result, out))
    target = host_array(out, name, "out", written=True) if library.host else out
    check_cast(f"{name}: output", dtype_name(result), dtype_name(out), casting)
    source, shape = tuple(result.shape), tuple(out.shape)
    if not _fits(source, shape, len(source) if core is None else core, leads=core is not None):
        raise ValueError(f"{name}: out has shape {shape}; {source} is needed")
    if library.is_read_only(target):
        raise (ValueError if isinstance(out, np.ndarray) else TypeError)(f"{name}: out is read-only")
    if library.host:
        library.assign(target, library.to_numpy(result))
        library.written(out)
        return out
    here, there = library.device(result), library.device(out)
    if here != there:
        raise ValueError(f"{name}: out is on device {there}, and the product on device {here}")
    with contexts().current_context(there):
        library.assign(out, result)
    return out


def _fits(source: tuple[int, ...], shape: tuple[int, ...], core: int, leads: bool) -> bool:
    """Whether a result of shape `source` goes into `shape`; see `stored`."""
    ends = len(source) - core, len(shape) - core
    if ends[1] < 0 or source[ends[0] :] != shape[ends[1] :]:
        return False
    return broadcasts_to(source[: ends[0]], shape[: ends[1]]) if leads else len(source) == len(shape)
