"""A patch: functions of another library that run on the GPU from a size on, until it is undone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from math import inf, isnan, nan
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from ..arguments import shown
from ..database.policy import MAX_VALUE, REFERENCE, Policy
from ..dispatch.tuned_files import policy_of, policy_origin, reference_policy
from ..errors import BackendUnavailable
from ..gpu.device import current, known

__all__ = ["Patch", "begun", "checked_sizes", "policy_for", "sizes_in"]

_Self = TypeVar("_Self", bound="Patch")

#: Held while patches begin and end, and while calls are counted.
_LOCK = threading.RLock()


class Patch:
    """A patch that is switched on and off; as a context manager it is undone at the end.

    Attributes
    ----------
    backend : str
        The backend of the calls: 'cuda', 'cpu' or 'sim'.
    thresholds : dict[str, float]
        The size from which on a call is routed, by routine.
    least : float
        The smallest of the sizes that the patch was made with.
    calls : collections.Counter
        The number of calls that were routed, by routine.
    kept : collections.Counter
        The number of calls that stayed with the library, by routine and reason.
    refusals : tuple of type
        Errors after which the library gets the call, as it may take it, or has words of its own for it.

    See Also
    --------
    pyblasgpu.patch_scipy : Makes and applies one.

    Examples
    --------
    >>> import pyblasgpu
    >>> with pyblasgpu.patch_scipy(backend="cpu", thresholds=100) as patch:
    ...     patch.backend, patch.thresholds["solve"]
    ('cpu', 100.0)
    """

    #: The patches of one library that are switched on, the last one deciding.
    active: ClassVar[list[Any]]
    #: The library whose functions are replaced.
    library: ClassVar[str]

    #: The origin of the sizes, as `explain` names that of other values.
    origin: str = "the call"
    #: The mode in which all calls are computed; None is the caller's.
    math_mode: str | None = None
    refusals: tuple[type[Exception], ...] = (
        TypeError,
        ValueError,
        NotImplementedError,
        MemoryError,
        BackendUnavailable,
    )

    def __init__(self, backend: str, thresholds: dict[str, float], replaces: bool = True) -> None:
        self.backend, self.thresholds, self._replaces = backend, thresholds, replaces
        self.least = min(thresholds.values())
        self.calls: Counter[str] = Counter()
        self.kept: Counter[tuple[str, str]] = Counter()

    @classmethod
    def _bind(cls) -> None:
        """Replace functions as the patches in `active` need it, and give back the others."""
        raise NotImplementedError

    def takes(self, routine: str, size: float) -> bool:
        """Return whether a call of this size is routed.

        Parameters
        ----------
        routine : str
            The routine, a key of `thresholds`.
        size : float
            The order of a square problem with as many operations.

        Returns
        -------
        bool
            Whether `size` reaches the threshold.

        See Also
        --------
        count : Counts the calls that were.

        Examples
        --------
        >>> import pyblasgpu
        >>> with pyblasgpu.patch_scipy(backend="cpu", thresholds=100) as patch:
        ...     patch.takes("solve", 99), patch.takes("solve", 100)
        (False, True)
        """
        return size >= self.thresholds[routine] and size >= 0

    def count(self, routine: str, reason: str | None = None) -> None:
        """Count a call of the routine.

        Parameters
        ----------
        routine : str
            The routine.
        reason : str, optional
            Why the call stayed with the library; None where it was routed.

        See Also
        --------
        takes : Whether a call is routed.

        Examples
        --------
        >>> import pyblasgpu
        >>> with pyblasgpu.patch_scipy(backend="cpu") as patch:
        ...     patch.count("solve")
        ...     patch.count("solve", "small")
        >>> patch.calls["solve"], patch.kept["solve", "small"]
        (1, 1)
        """
        with _LOCK:
            if reason is None:
                self.calls[routine] += 1
            else:
                self.kept[routine, reason] += 1

    def apply(self) -> None:
        """Switch this patch on; it decides until another is applied.

        See Also
        --------
        undo : Switches it off.

        Examples
        --------
        >>> import pyblasgpu
        >>> patch = pyblasgpu.patch_scipy(backend="cpu")
        >>> patch.undo()
        >>> patch.apply()
        >>> patch.undo()
        """
        with _LOCK:
            if self in self.active:
                self.active.remove(self)
            self.active.append(self)
            try:
                self._bind()
            except BaseException:
                self.undo()
                raise

    def undo(self) -> None:
        """Switch this patch off; more than once does nothing.

        See Also
        --------
        apply : Switches it on.

        Examples
        --------
        >>> import pyblasgpu
        >>> patch = pyblasgpu.patch_scipy(backend="cpu")
        >>> patch.undo()
        """
        with _LOCK:
            if self in self.active:
                self.active.remove(self)
                self._bind()

    @classmethod
    def undo_all(cls) -> None:
        """Switch off all patches of this library.

        See Also
        --------
        undo : Switches one off.

        Examples
        --------
        >>> import pyblasgpu
        >>> patch = pyblasgpu.patch_scipy(backend="cpu")
        >>> patch.undo_all()
        """
        with _LOCK:
            cls.active.clear()
            cls._bind()

    def __enter__(self: _Self) -> _Self:
        if self._replaces and self not in self.active:  # it was undone
            self.apply()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


def begun(patch: _Self, requested: Any, name: str) -> _Self:
    """Return a new patch, switched on if it replaces anything. The policy's value `name` has the sizes, where
    none are requested.
    """
    if requested is None:
        patch.origin = policy_origin(name, current() if patch.backend == "cuda" else known(REFERENCE))
    if patch._replaces:
        patch.apply()
    return patch


def policy_for(backend: str) -> Policy:
    """Return the policy of the device, or the reference's where a backend has none."""
    return policy_of(current()) if backend == "cuda" else reference_policy()


def sizes_in(values: Mapping[str, float]) -> dict[str, float]:
    """Return values of a policy as sizes: those that are never reached are infinite."""
    return {name: inf if size >= MAX_VALUE else float(size) for name, size in values.items()}


def checked_sizes(
    name: str, requested: float | Mapping[str, float] | None, sizes: dict[str, float]
) -> dict[str, float]:
    """Return the sizes by routine, those that are requested in the place of the defaults.

    Raises
    ------
    TypeError
        When one is no number.
    ValueError
        When one is negative, or of a routine that has none.
    """
    if requested is None:
        return sizes
    if not isinstance(requested, Mapping):
        return dict.fromkeys(sizes, _size(name, requested))
    unknown = ", ".join(str(routine) for routine in requested if routine not in sizes)
    if unknown:
        raise ValueError(f"{name}: thresholds names {unknown}; known: {', '.join(sizes)}")
    return sizes | {routine: _size(name, size) for routine, size in requested.items()}


def _size(name: str, value: Any) -> float:
    """A threshold, which may be infinite."""
    try:
        size = float(value)
    except (TypeError, ValueError):
        size = nan
    if isnan(size) or isinstance(value, str):
        raise TypeError(f"{name}: thresholds has {shown(value)}, which is no number")
    if size < 0:
        raise ValueError(f"{name}: thresholds has {shown(value)}, which is no size from 0 to inf")
    return size
