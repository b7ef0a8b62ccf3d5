"""What takes the place of a choice, for tests and the tuner: in a block, and in its thread or task alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any

__all__ = ["active", "given", "override", "token"]

_overrides: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("overrides", default=())
_token: ContextVar[int] = ContextVar("token", default=0)  # a number for the overrides: cheap to compare
_tokens: dict[tuple, int] = {}
_numbers = count(1)


@contextmanager
def override(name: str, value: Any) -> Iterator[None]:
    """Within the block, and in this thread or task alone, prefer `value` to what the dispatch would choose.

    Parameters
    ----------
    name : str
        What is chosen, see the table.
    value : Config, int, bool or str
        The choice.

    Yields
    ------
    None
        The override ends with the block.

    See Also
    --------
    explain : What a call would run, overrides included.

    Notes
    -----
    Inner overrides win. Workspace has no limit where an override asks for it.

    ================= ============================================================================
    `name`            `value`
    ================= ============================================================================
    a kernel family   A Config of it, for its own dtype and layout; k is not split.
    'layout'          How A and B of products lie ('nn', 'tn', ...); they are copied where they do
                      not lie so.
    'packed'          Whether operands of products are packed, k not split; if not, they are
                      copied only where they must be.
    'splits'          Into how many slices the k of every product is split, or `STREAMED`.
    'one_product'     Whether SYR2K and HER2K are one product, mirrored, or two.
    'in_place'        Whether TRMM is one launch, however small it is, or the recursion.
    'one_launch'      Whether TRSM is one launch (`trsv` for one to four right-hand sides) or the
                      recursion; as a number, the order of triangles that are one launch each.
    'small_triangles' Whether TRSM of a batch, or of a leaf, is divided into small triangles.
    'trmm', 'trsm'    Stop size of the recursion; 'symm' likewise.
    ================= ============================================================================

    Examples
    --------
    >>> import pyblasgpu
    >>> with pyblasgpu.override("splits", 4):
    ...     pyblasgpu.gemm(a, b, out=c)  # doctest: +SKIP
    """
    active = ((name, value), *_overrides.get())
    before = _overrides.set(active)
    before_token = _token.set(_tokens.setdefault(active, next(_numbers)))
    try:
        yield
    finally:
        _overrides.reset(before)
        _token.reset(before_token)


def active() -> tuple[tuple[str, Any], ...]:
    """Names and values, the innermost first."""
    return _overrides.get()


def given(name: str) -> Any:
    """What the innermost override of `name` says; None: to be decided."""
    return next((value for known, value in _overrides.get() if known == name), None)


def token() -> int:
    """A number that tells the overrides of the moment from all others."""
    return _token.get()
