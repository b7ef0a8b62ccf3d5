"""What takes the place of a choice, for tests and the tuner: in a block, and in its thread or task alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from itertools import count
from typing import Any

__all__ = ["active", "get_override", "override", "token"]

#: What is chosen beside the Configs of kernel families.
_CHOICES = (
    *("layout", "lookahead", "math_mode", "packed", "potrf", "potrf_algorithm", "prefetch_c", "raster"),
    *("splits", "symm", "syr2k_algorithm", "tiles", "trmm", "trmm_algorithm", "trsm", "trsm_algorithm"),
)
_overrides: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("overrides", default=())
_token: ContextVar[int] = ContextVar("token", default=0)  # a number for the overrides: cheap to compare
_tokens: dict[tuple[tuple[str, Any], ...], int] = {}
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

    Raises
    ------
    ValueError
        For a name that is not in the table.

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
    'math_mode'       That of `set_math_mode`.
    'packed'          Whether operands of products are packed, k not split; if not, they are
                      copied only where they must be.
    'prefetch_c'      Whether products that read C ask L2 for a tile of it before they multiply
                      (persistent ones in s and d, A not transposed).
    'raster'          Rows of tiles of a column in which C of products is rasterized; 0: as the
                      kernels have it, whatever was tuned.
    'splits'          Into how many slices the k of every product is split, or `STREAM_K`.
    'trsm_algorithm'  'trsv' (one to four right-hand sides), 'trsm_fused', 'trsm_fused_1024' (a
                      recursion that ends in fused triangles of that order), 'trsm_small' or
                      'recursion', to the leaves; the recursion where it does not apply.
    'trmm_algorithm'  'trmm_fused', 'trmm_tensor' (one product on tensor cores), 'trmm_fused_1024' (a
                      recursion that ends in fused triangles of that order) or 'recursion'; the
                      recursion where the others do not apply.
    'syr2k_algorithm' 'symmetrize' or 'two_products', of HER2K too.
    'trmm', 'trsm'    Order at which the recursion ends in leaves; 'symm' likewise.
    'potrf_algorithm' 'panels' or 'recursion'; the recursion where the first does not apply.
    'potrf'           Rows that the recursion of the Cholesky factor splits off at most.
    'lookahead'       Columns of the blocks by which LU and Cholesky factors look ahead; 0: they do
                      not.
    'tiles'           Tiles after which blocks of their updates give a multiprocessor back to the
                      next block of columns.
    ================= ============================================================================

    Examples
    --------
    >>> import pyblasgpu
    >>> with pyblasgpu.override("splits", 4):
    ...     pyblasgpu.gemm(a, b, out=c)  # doctest: +SKIP
    """
    _check(name)
    active = ((name, value), *_overrides.get())
    before = _overrides.set(active)
    before_token = _token.set(_tokens.setdefault(active, next(_numbers)))
    try:
        yield
    finally:
        _overrides.reset(before)
        _token.reset(before_token)


def _check(name: str) -> None:
    if name in _CHOICES:
        return
    registry = import_module("..kernels.registry", __package__)
    known = sorted((*registry.FAMILIES, *registry.FIXED, *_CHOICES))
    if name not in known:
        raise ValueError(f"override: name={name!r} is none of {', '.join(known)}")


def active() -> tuple[tuple[str, Any], ...]:
    """Names and values, the innermost first."""
    return _overrides.get()


def get_override(name: str) -> Any:
    """What the innermost override of `name` says; None: to be decided."""
    return next((value for known, value in _overrides.get() if known == name), None)


def token() -> int:
    """A number that tells the overrides of the moment from all others."""
    return _token.get()
