"""A function that stands in the place of SciPy's and passes calls to it, or to pyblasgpu's."""

from __future__ import annotations

import logging
import threading
from functools import update_wrapper
from inspect import signature
from typing import Any

from numpy.linalg import LinAlgError

from ..errors import BackendUnavailable
from ..frontend.backend_status import preferred_backend
from .targets import IN_PLACE, Target

__all__ = ["ACTIVE", "Getter", "Routed"]

_log = logging.getLogger("pyblasgpu")

#: The patches that are switched on, the last one deciding.
ACTIVE: list[Any] = []
#: What pyblasgpu itself calls while it serves a call goes to SciPy.
_serving = threading.local()


def _is_serving() -> bool:
    return getattr(_serving, "now", False)


class Routed:
    """The function that replaces `target.original`; without a patch that is on, it is that function."""

    def __init__(self, target: Target) -> None:
        update_wrapper(self, target.original)  # and the original is __wrapped__
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        target = self._target
        if not ACTIVE or _is_serving():
            return target.original(*args, **kwargs)
        try:
            patch = ACTIVE[-1]
            fits = patch.takes(target.name, target.size(args, kwargs))
        except (
            IndexError,
            KeyError,
            TypeError,
            AttributeError,
        ):  # an argument is missing, or none of SciPy's
            fits = False
        return _served(patch, target, args, kwargs) if fits else target.original(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        # SciPy tells of its BLAS functions by attributes
        if name in ("_target", "__wrapped__"):
            raise AttributeError(name)
        return getattr(self._target.original, name)

    def __repr__(self) -> str:
        return f"<{self._target.original!r}, by pyblasgpu>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # by name, which is bound to this object; SciPy's BLAS functions have none
        name: str | None = self.__dict__.get("__qualname__")
        if name is None:
            raise TypeError(f"cannot pickle {self!r}")
        return name


def _served(patch: Any, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        _serving.now = True
        with preferred_backend(patch.backend):
            result = target.ours(*args, **kwargs)
    except LinAlgError:
        raise  # a ValueError, too, but what the matrix is
    except patch.refusals as refusal:
        is_torn = target.name in IN_PLACE and isinstance(refusal, MemoryError)
        if (is_torn or _has_written(refusal)) and _may_overwrite(target, args, kwargs):
            raise  # what SciPy would read is not there any more
        if isinstance(refusal, (MemoryError, BackendUnavailable)):
            _log.warning("%s goes to the CPU: %s", target.name, refusal)
        return target.original(*args, **kwargs)  # and so does all that it calls
    finally:
        _serving.now = False
    patch.count(target.name)
    return result


def _has_written(error: BaseException) -> bool:
    """Whether parts of the output were written before a call failed, as its `TileReport` tells."""
    tiles = getattr(error, "tiles", None)
    return tiles is not None and bool(tiles.final or tiles.torn)


def _may_overwrite(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    bound = signature(target.ours).bind(*args, **kwargs).arguments
    return any(value for name, value in bound.items() if name.startswith("overwrite_"))


class Getter:
    """`get_blas_funcs` or `get_lapack_funcs` that gives the replacements while a patch is on."""

    def __init__(self, original: Any, replacements: dict[int, Any]) -> None:
        update_wrapper(self, original)
        self._original, self._replacements = original, replacements

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        originals = self._original(*args, **kwargs)
        if not ACTIVE or _is_serving():
            return originals
        if isinstance(originals, list):
            return [self._replacements.get(id(each), each) for each in originals]
        return self._replacements.get(id(originals), originals)
