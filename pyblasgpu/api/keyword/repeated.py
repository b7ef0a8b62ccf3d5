"""Repeated calls of keyword functions: on device arrays as they are kept, on NumPy arrays by SciPy.

SciPy's functions write column-major results. A row-major one is the transpose of such. That is a product of
the transposed operands in the other order, a system from the other side, the other triangle. A row-major
operand is passed as its transpose where a flag can say so. What becomes of the flags is found once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...frontend.arrays.layouts import is_column_major
from ...frontend.calls import call_cache
from ...routine import FLAGS, Matrix, Routine
from ...routine_table import ROUTINES
from ...types import DTYPES, Diag, Side, Trans, Uplo

__all__ = ["CONTIGUOUS", "LETTERS", "HostCall", "replay"]

#: Kinds of calls on NumPy arrays, by routine and flags, that are kept.
MOST_CALLS = 1024
#: Flags of NumPy's arrays, those of matrices of one kind of contiguity alone, and a kind without.
CONTIGUOUS, _ALIGNED, _ROWS, _COLUMNS, _SPREAD = 3, 0x100, 1, 2, 4
LETTERS = {np.dtype(dtype.name): letter for letter, dtype in DTYPES.items()}
#: SciPy's values of flags.
_CODES: dict[Any, int] = {
    **{op: code for code, op in enumerate(Trans)},
    Side.LEFT: 0,
    Side.RIGHT: 1,
    Uplo.UPPER: 0,
    Uplo.LOWER: 1,
    Diag.NON_UNIT: 0,
    Diag.UNIT: 1,
}
#: Transposed ops; 3, which is conjugated alone, no function takes.
_TRANSPOSED = (1, 0, 3, 2)


class _Order(NamedTuple):
    """Changes of a routine's arguments where arrays are row-major.

    Attributes
    ----------
    flips : dict of int to tuple of str
        The inputs that may be passed as their transposes, and the flags that change with each.
    mirrors : tuple of str or None
        The flags that change where the result is row-major; None where that cannot be.
    turns : tuple of int
        The inputs that are transposed then.
    swaps : bool
        Whether both inputs change places then.
    conjugates : bool
        Whether vectors and alpha are conjugated then.
    """

    flips: Mapping[int, tuple[str, ...]] = {}
    mirrors: tuple[str, ...] | None = None
    turns: tuple[int, ...] = ()
    swaps: bool = False
    conjugates: bool = False


_TRIANGLE = _Order({0: ("uplo", "trans")}, ("side", "trans"), (1,))
_ORDERS = {
    "gemm": _Order({0: ("trans_a",), 1: ("trans_b",)}, ("trans_a", "trans_b"), (), True),
    "symm": _Order({0: ("uplo",)}, ("side",), (1,)),
    "syrk": _Order({0: ("trans",)}, ("uplo",)),
    "syr2k": _Order({}, ("uplo",)),
    "trmm": _TRIANGLE,
    "trsm": _TRIANGLE,
    "gemv": _Order({0: ("trans",)}, ()),
    "symv": _Order({0: ("uplo",)}, ()),
    "trmv": _Order({0: ("uplo", "trans")}, ()),
    "trsv": _Order({0: ("uplo", "trans")}, ()),
    "ger": _Order({}, (), (), True),
    "syr": _Order({}, ("uplo",)),
    "syr2": _Order({}, ("uplo",)),
    **dict.fromkeys(("her", "her2"), _Order({}, ("uplo",), conjugates=True)),
    **dict.fromkeys(("hemm", "herk", "her2k", "hemv"), _Order()),
}
_REALS = (int, float, np.float64)
_REDUCTIONS = ("dot", "nrm2", "asum", "iamax")


def replay(
    key: tuple[Any, ...],
    inputs: tuple[Any, ...],
    out: Any,
    alpha: Any,
    beta: Any,
    stream: Any,
    backend: str | None,
    checks_numbers: bool = True,
) -> Any:
    """Repeat a call, see `call_cache.replay`; that on NumPy arrays by SciPy's function where it serves."""
    if type(inputs[0]) is not np.ndarray:
        return call_cache.replay(key, inputs, out, alpha, beta, stream, backend, checks_numbers)
    if stream is not None:
        return None
    try:
        known = _calls[key]
    except KeyError:
        known = _keep(key)
    except (TypeError, ValueError):  # what is not hashable is no flag
        return None
    return None if known is None else known.run(inputs, out, alpha, beta, backend)


_calls: dict[tuple[Any, ...], HostCall | None] = {}


def _keep(key: tuple[Any, ...]) -> HostCall | None:
    """Make the call of a routine with these flags; None where SciPy's function does not serve it."""
    if len(_calls) >= MOST_CALLS:
        _calls.clear()
    _calls[key] = known = _known(key)
    return known


def _known(key: tuple[Any, ...]) -> HostCall | None:
    routine = ROUTINES.get(key[0])
    if routine is None or not all(isinstance(part, call_cache.CONSTANT) for part in key):
        return None
    count = len(routine.flags)
    others = [part for part in key[1 + count :] if not isinstance(part, type)]
    if routine.stem in _REDUCTIONS:
        return _Reduction(routine, others[-1]) if type(others[-1]) is bool else None
    if routine.stem in ("axpy", "scal"):
        return _Map(routine)
    if routine.stem not in _ORDERS or any(part not in (None, False) for part in others):
        return None
    try:
        flags = {
            name: FLAGS[name].parse(value, routine.stem, name)
            for name, value in zip(routine.flags, key[1:], strict=False)
        }
    except ValueError:
        return None
    return _Product(routine, flags)


class HostCall:
    """Calls of a routine on NumPy arrays."""

    def __init__(self, routine: Routine) -> None:
        from ...cpu.scipy.values import is_finite  # device arrays do without
        from ...frontend.calls.attempts import attempt_of
        from ...frontend.calls.direct import may_write

        self.routine, self._may_write, self._is_finite = routine, may_write, is_finite
        self.attempts = {
            np.dtype(DTYPES[letter].name): [
                attempt_of(routine, letter, name) for name in routine.scipys(letter)
            ]
            for letter in routine.letters
        }

    def run(self, inputs: tuple[Any, ...], out: Any, alpha: Any, beta: Any, backend: str | None) -> Any:
        """Return the result; None, nothing done, where the call is to be checked."""
        raise NotImplementedError


class _Reduction(HostCall):
    """DOT, NRM2, ASUM and I?AMAX."""

    def __init__(self, routine: Routine, conj: bool) -> None:
        super().__init__(routine)
        self._which = -1 if conj else 0
        self._kinds: dict[Any, Any] = {}
        for dtype in self.attempts:
            kind = dtype.type(0).real.dtype if routine.result == "real" else dtype
            self._kinds[dtype] = np.int64 if routine.result == "index" else kind.type

    def run(self, inputs: tuple[Any, ...], out: Any, alpha: Any, beta: Any, backend: str | None) -> Any:
        dtype = inputs[0].dtype
        attempts = self.attempts.get(dtype)
        if attempts is None or out is not None or inputs[0].shape != getattr(inputs[-1], "shape", None):
            return None
        attempt = attempts[self._which]
        result = None if attempt is None else attempt.run(inputs, {}, backend)
        return None if result is None else self._kinds[dtype](result)


class _Map(HostCall):
    """AXPY and SCAL, in place or in a new vector."""

    def run(self, inputs: tuple[Any, ...], out: Any, alpha: Any, beta: Any, backend: str | None) -> Any:
        last = inputs[-1]
        attempts = self.attempts.get(inputs[0].dtype)
        if attempts is None or type(last) is not np.ndarray or (out is not None and out is not last):
            return None
        if type(alpha) not in _REALS or alpha == 0 or last.shape != inputs[0].shape or last.ndim != 1:
            return None
        if not last.flags.num & CONTIGUOUS:
            return None
        target, attempt = last.copy() if out is None else last, attempts[-1]  # a real factor, of csscal too
        if attempt is None:
            return None
        if len(inputs) == 2:
            done = attempt.run((inputs[0], target), {"a": alpha}, backend)
        else:
            options = {} if len(attempts) == 1 else {"overwrite_x": 1}
            done = attempt.run((alpha, target), options, backend)
        return None if done is None else target


class _Arrangement(NamedTuple):
    """How SciPy's function takes the arrays of a call, of certain orders in memory."""

    turned: tuple[int, ...]  # inputs that are passed as their transposes
    is_reversed: bool  # whether the second input is passed first
    flags: Mapping[str, int]  # those that are not 0
    is_row_major: bool  # whether SciPy's result is the transpose of this one


class _Product(HostCall):
    """A routine of Level 2 or 3 with certain flags."""

    def __init__(self, routine: Routine, flags: Mapping[str, Any]) -> None:
        super().__init__(routine)
        self._order = _ORDERS[routine.stem]
        # what complex Inf becomes depends on the order of factors
        self._is_ordered = self._order.swaps and not flags
        self._codes = {name: _CODES[flag] for name, flag in flags.items()}
        self._arrangements: dict[tuple[Any, ...], _Arrangement | None] = {}
        self._has_beta = "beta" in routine.arguments
        self._is_triangle = is_triangle = "diag" in flags
        # SciPy's functions of triangles and vectors have none
        self._has_alpha = not (is_triangle and routine.group == "level2")
        self._updates = not self._has_beta and not is_triangle
        self._count = len(routine.inputs) + (routine.group == "level2" and routine.stem == "trsv")
        self._is_vector = routine.output.cols == "1"
        self._written = "x" if is_triangle and self._is_vector else routine.output.name
        # the extents of other products are checked by SciPy's functions
        is_checked = self._has_beta and not self._is_vector
        self._extents = [] if is_checked else _common_extents(routine, flags, self._count)

    def run(self, inputs: tuple[Any, ...], out: Any, alpha: Any, beta: Any, backend: str | None) -> Any:
        attempts = self.attempts.get(inputs[0].dtype)
        if attempts is None:
            return None
        if self._is_triangle and out is not None and out is not inputs[-1]:
            return self._copied(inputs, out, alpha, beta, backend)
        kinds: list[int] = [out is None, out is inputs[-1]]
        for array in inputs if out is None else (*inputs, out):
            if type(array) is not np.ndarray:
                return None
            kinds.append(array.flags.num & CONTIGUOUS or (_SPREAD if is_spread(array) else 0))
        key = tuple(kinds)
        try:
            arrangement = self._arrangements[key]
        except KeyError:
            arrangement = self._arrangements[key] = self._arranged(*key)
        attempt = attempts[0]
        if arrangement is None or attempt is None or (self._extents and not self._fits(inputs, out)):
            return None
        turned, is_reversed, flags, is_row_major = arrangement
        arrays = inputs
        if turned:
            arrays = tuple([array.T if i in turned else array for i, array in enumerate(inputs)])
        if is_reversed:
            arrays = arrays[::-1]
        if is_row_major and self._order.conjugates:
            arrays, alpha = tuple([array.conj() for array in arrays]), _conjugate(alpha)
        is_ordered = self._is_ordered and inputs[0].dtype.kind == "c"
        if is_ordered and out is not None:
            return None
        if out is None:
            if type(beta) not in _REALS or beta != 0:
                return None
        else:
            target = out.T if is_row_major else out
            if not target.flags.num & _ALIGNED:
                return None
            if self._has_beta:
                arrays = (*arrays, beta, target)
            elif self._updates:
                flags = {**flags, "a": target}
        result = attempt.run((alpha, *arrays) if self._has_alpha else arrays, flags, backend)
        if result is None or out is not None:
            return None if result is None else out
        if is_ordered and not self._is_finite(result):
            return None
        return result.T if is_row_major else result

    def _copied(self, inputs: tuple[Any, ...], out: Any, alpha: Any, beta: Any, backend: str | None) -> Any:
        """Return `out` with a new result, of a routine that overwrites its last input."""
        last = inputs[-1]
        if type(last) is not np.ndarray or type(out) is not np.ndarray:
            return None
        if out.dtype is not last.dtype or out.shape != last.shape:
            return None
        if not out.flags.num & CONTIGUOUS or not self._may_write(out, inputs):
            return None
        result = self.run(inputs, None, alpha, beta, backend)
        if result is None:
            return None
        out[...] = result
        return out

    def _fits(self, inputs: tuple[Any, ...], out: Any) -> bool:
        """Whether extents are those of the routine."""
        shapes = [array.shape for array in (inputs if out is None else (*inputs, out))]
        try:
            for (one, axis), (other, other_axis) in self._extents:
                if other < len(shapes) and shapes[one][axis] != shapes[other][other_axis]:
                    return False
        except IndexError:
            return False
        return True

    def _arranged(self, is_new: int, in_place: int, *kinds: int) -> _Arrangement | None:
        """Return the arrangement of arrays whose contiguity is of these kinds; None where there is none."""
        order, count = self._order, self._count
        if len(kinds) != count + (not is_new) or not (is_new or in_place or self._has_beta or self._updates):
            return None
        is_row_major = not self._is_vector and bool(
            self._updates or not all(kind in (_COLUMNS, _SPREAD) for kind in kinds)
            if is_new
            else kinds[-1] == _ROWS
        )
        if (not is_new and not kinds[-1] & CONTIGUOUS) or (is_row_major and order.mirrors is None):
            return None
        turned = {*order.turns} if is_row_major else set()
        flags = self._changed(is_row_major, ())
        # an input that is by rows as it is passed
        flips = [i for i in order.flips if kinds[i] == (_COLUMNS if i in turned else _ROWS)]
        flipped = self._changed(is_row_major, tuple(flips))
        if flipped is not None:
            flags, turned = flipped, turned ^ {*flips}
        if flags is None:
            return None
        if not is_new:
            flags[f"overwrite_{self._written}"] = 1
        return _Arrangement(tuple(turned), is_row_major and order.swaps, flags, is_row_major)

    def _changed(self, is_row_major: bool, flips: tuple[int, ...]) -> dict[str, int] | None:
        """SciPy's flags that are not 0; None where an op would be conjugated alone."""
        codes, order = dict(self._codes), self._order
        changes = [*(order.mirrors or ())] if is_row_major else []
        for i in flips:
            changes += order.flips[i]
        for name in changes:
            codes[name] = _TRANSPOSED[codes[name]] if name.startswith("trans") else 1 - codes[name]
        if 3 in codes.values():
            return None
        if is_row_major and order.swaps and codes:
            codes = {"trans_a": codes["trans_b"], "trans_b": codes["trans_a"]}
        is_triangle = self.routine.group == "level3" and "diag" in codes
        names = {"uplo": "lower", **({"trans": "trans_a"} if is_triangle else {})}
        return {names.get(name, name): code for name, code in codes.items() if code}


def _conjugate(alpha: Any) -> Any:
    """Return the conjugate of a number; what is none as it is."""
    return alpha.conjugate() if isinstance(alpha, complex) else alpha


def is_spread(array: Any) -> bool:
    """Whether a matrix is column-major, with gaps between its columns."""
    return array.ndim == 2 and is_column_major(array)


def _common_extents(
    routine: Routine, flags: Mapping[str, Any], count: int
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs of an operand and an axis that are of one length; the output is behind the inputs."""
    order = "m" if flags.get("side", Side.LEFT) is Side.LEFT else "n"
    places: dict[str, list[tuple[int, int]]] = {}

    def note(place: int, matrix: Matrix) -> None:
        axes = (0, 1) if flags.get(matrix.op, Trans.NO) is Trans.NO else (1, 0)
        for extent, axis in zip((matrix.rows, matrix.cols), axes, strict=True):
            if extent != "1":
                places.setdefault(order if extent == "order" else extent, []).append((place, axis))

    for place, matrix in enumerate(routine.matrices[:count]):
        note(place, matrix)
    note(count, routine.output)
    return [(first, other) for first, *others in places.values() for other in others]
