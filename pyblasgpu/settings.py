"""Settings of the public API: each holds from its call on, and ends with a block that the call opens."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import ParamSpec, TypeVar

__all__ = ["Setting"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Setting:
    """A setting that holds from the call that returned it on.

    As a context manager it restores what was set before at the end of its block. As a decorator it holds in
    calls of the function, and nowhere else.

    Parameters
    ----------
    name : str
        The function that sets it.
    begin : callable
        Sets the value, and returns the function that restores the one before.

    See Also
    --------
    set_math_mode : Returns one, as do `override` and `use_devices`.

    Examples
    --------
    >>> import pyblasgpu
    >>> @pyblasgpu.set_math_mode("tensor")
    ... def kernel():
    ...     return pyblasgpu.explain("gemm", "s", 4096, device="h200")[0][0]
    >>> kernel()
    'gemm_wgmma'
    """

    def __init__(self, name: str, begin: Callable[[], Callable[[], None]]):
        self._name, self._begin = name, begin
        self._thread, self._is_used = get_ident(), False
        self._restore = begin()

    def __enter__(self) -> None:
        self._use()

    def __exit__(self, *_: object) -> None:
        self._restore()

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Return the function with the setting in each of its calls.

        Parameters
        ----------
        function : callable
            A function whose call returns when its work is done: no generator, no coroutine.

        Returns
        -------
        callable
            A function with the same signature.

        Raises
        ------
        TypeError
            For a generator or a coroutine function, whose work begins after its call.

        See Also
        --------
        set_math_mode : Returns a setting, as do `override` and `use_devices`.

        Examples
        --------
        >>> import pyblasgpu
        >>> splits = pyblasgpu.override("splits", 2)(pyblasgpu.explain)
        >>> splits("gemm", "d", 512, device="h200")[1][:2]
        ('splits of k', '2')
        """
        from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

        self._use()
        self._restore()
        if any(test(function) for test in (isasyncgenfunction, iscoroutinefunction, isgeneratorfunction)):
            raise TypeError(f"{self._name}: {function} works after its call, where a decorator has ended")

        @wraps(function)
        def run(*arguments: _P.args, **options: _P.kwargs) -> _R:
            with Setting(self._name, self._begin):
                return function(*arguments, **options)

        return run

    def __repr__(self) -> str:
        return f"<setting of {self._name}>"

    def _use(self) -> None:
        """Raise RuntimeError for a second block, and for one in a thread in which the setting never held."""
        if self._is_used or get_ident() != self._thread:
            raise RuntimeError(f"{self._name}: a setting is for one block, in its thread; call it for each")
        self._is_used = True
