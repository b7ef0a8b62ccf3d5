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
    """Within the block, and in this thread or task, prefer `value`.

    Parameters
    ----------
    name : str
        A kernel family, for a Config of it, which then serves its own dtype and layout, k uncut; 'splits',
        for the number of chunks into which the k of every product is cut, whatever workspace that takes, or
        `STREAMED`; 'packed', for whether operands of products are packed, whatever workspace that takes and k
        uncut, where any Config can, or neither packed nor copied unless they must be; 'layout', for how A and
        B of products shall lie ('nn', 'tn', ...), copied where they do not, whatever workspace that takes;
        'one_product', for whether SYR2K and HER2K are, mirrored, whatever workspace that takes, or two;
        'one_launch', for whether TRSM is, with one to four right-hand sides, the kernel `trsv`, else
        `trsm_fused`, of whatever size, where it can, or the recursion, or up to which order triangles are
        solved by these, in which the recursion ends then; 'small_triangles', for whether TRSM of a batch, or
        of a triangle that is a leaf, is parted into those of `trsm_small`, or the recursion; 'in_place', for
        whether TRMM is the kernel `trmm_fused`, however small, where it can, or the recursion; or 'trmm',
        'trsm' or 'symm', for a stop size.
    value : Config, int, bool or str
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
