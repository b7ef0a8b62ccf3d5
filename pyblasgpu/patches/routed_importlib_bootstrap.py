"""Functions that replace a library's and pass calls to them, or to pyblasgpu's.

`warnings` does not count frames of files whose names hold "importlib" and "_bootstrap". So the warnings of a
function that is called from here name the line of the program, whichever function it is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import update_wrapper
from inspect import signature
from pkgutil import resolve_name
from typing import Any, cast

from numpy.linalg import LinAlgError

from ..dispatch.overrides import set_math_mode
from ..errors import BackendUnavailable
from ..frontend.backend_status import preferred_backend
from .sizes import Target

__all__ = ["Getter", "Routed"]

_log = logging.getLogger("pyblasgpu")

#: Set while pyblasgpu serves a call: functions that it calls itself are the library's.
_serving = threading.local()


def _is_serving() -> bool:
    return getattr(_serving, "now", False)


class _Replacement:
    """A function in the place of `original`: copied as functions are, and pickled by its name.

    The name, ``"module:function"``, is looked up where it is unpickled. There it is the original unless a
    patch is on.
    """

    def __init__(self, original: Any, name: str) -> None:
        update_wrapper(cast(Any, self), original)  # and the original is __wrapped__
        self._name = name

    def __copy__(self) -> _Replacement:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> _Replacement:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return resolve_name, (self._name,)

    def __repr__(self) -> str:
        return f"<{self._name}, by pyblasgpu>"


def _are_below(least: float, kind: Any, arguments: Iterable[Any]) -> bool:
    """Whether no array has an extent of `least`: a call is never larger than its largest extent."""
    for value in arguments:
        if type(value) is kind:
            # extents are no more than elements
            if value.ndim > 2 or (value.size >= least and value.size and max(value.shape) >= least):
                return False
        elif type(value) is tuple:  # of factors and pivots
            return False
    return True


class Routed(_Replacement):
    """The function that replaces `target.original`; without a patch that is on, it is that function."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._calls_others = target.replaced.startswith("scipy.linalg:")
        super().__init__(target.original, target.replaced)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        target = self._target
        if not target.active or _is_serving():
            return target.original(*args, **kwargs)
        patch: Any = None
        is_small, size = False, -1.0
        try:
            patch, kind = target.active[-1], target.kind
            least = patch.least if self._calls_others else patch.thresholds[target.name]
            is_small = _are_below(least, kind, args)
            is_small = is_small and (not kwargs or _are_below(least, kind, kwargs.values()))
            size = -1.0 if is_small else target.size(args, kwargs)
        except Exception:  # an argument is missing, or none of the library's
            is_small = False
        if patch is None:  # another thread ended it
            return target.original(*args, **kwargs)
        if is_small:
            patch.count(target.name, "small")
            return self._original(args, kwargs)
        if patch.takes(target.name, size):
            return _served(patch, target, args, kwargs)
        patch.count(target.name, "arguments" if size < 0 else "small")
        return target.original(*args, **kwargs)

    def _original(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The library's result of a small call, of which all that its function calls is small too."""
        if not self._calls_others:
            return self._target.original(*args, **kwargs)
        _serving.now = True
        try:
            return self._target.original(*args, **kwargs)
        finally:
            _serving.now = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target.original, name)  # by which SciPy describes its BLAS functions


def _served(patch: Any, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        _serving.now = True
        try:
            with preferred_backend(patch.backend), _in_mode(patch.math_mode):
                result = target.ours(*args, **kwargs)
        except LinAlgError:
            raise  # a ValueError, too, but what the matrix is
        except patch.refusals as refusal:
            if _may_have_written(refusal) and _may_overwrite(target, args, kwargs):
                raise  # what SciPy would read is not there any more
            if isinstance(refusal, (MemoryError, BackendUnavailable)):
                _log.warning("%s goes to the CPU: %s", target.name, refusal)
        else:
            patch.count(target.name)
            return result
        patch.count(target.name, "refused")
        return target.original(*args, **kwargs)  # and so does all that it calls
    finally:
        _serving.now = False


def _in_mode(mode: str | None) -> AbstractContextManager[Any]:
    return nullcontext() if mode is None else set_math_mode(mode)


def _may_have_written(error: BaseException) -> bool:
    """Whether a call that failed may have written into arrays of the caller's."""
    tiles = getattr(error, "tiles", None)
    return getattr(error, "overwritten", False) or (tiles is not None and bool(tiles.final or tiles.partial))


def _may_overwrite(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    bound = signature(target.ours).bind(*args, **kwargs).arguments
    return any(value for name, value in bound.items() if name.startswith("overwrite_"))


class Getter(_Replacement):
    """`get_blas_funcs` or `get_lapack_funcs` that gives the replacements while a patch is on."""

    def __init__(self, original: Any, name: str, replacements: dict[int, Any], active: list[Any]) -> None:
        super().__init__(original, name)
        self._original, self._replacements, self._active = original, replacements, active

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        originals = self._original(*args, **kwargs)
        if not self._active or _is_serving():
            return originals
        if isinstance(originals, list):
            return [self._replacements.get(id(each), each) for each in originals]
        return self._replacements.get(id(originals), originals)
