"""Decisions of dispatch, and what takes their place in a block: overrides and the math mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from itertools import count
from typing import Any, ParamSpec, TypeVar

from ..arguments import shown
from ..types import TENSOR, Dtype

__all__ = [
    "Algorithm",
    "COMPUTED",
    "KernelChoice",
    "OVERRIDE",
    "active",
    "get_override",
    "in_mode",
    "method_of",
    "mode_from",
    "override",
    "set_math_mode",
    "splits_singles",
    "token",
]

#: Overridable choices other than the Configs of kernel families.
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
    """Prefer `value` to the choice of the dispatch, within the block and in this thread or task alone.

    Parameters
    ----------
    name : str
        The name of the choice, see the table.
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
    explain : The kernels of a call, overrides included.

    Notes
    -----
    Inner overrides win. Workspace has no limit where an override requests it.

    ================= ============================================================================
    `name`            `value`
    ================= ============================================================================
    a kernel family   A Config of it, for its own dtype and layout; k is not split.
    'layout'          The layouts of A and B of products ('nn', 'tn', ...); they are copied where
                      they have others.
    'math_mode'       The mode of `set_math_mode`.
    'packed'          Whether operands of products are packed, k not split; if not, they are
                      copied only where they must be.
    'prefetch_c'      Whether products that read C prefetch a tile of it into L2 before they multiply
                      (persistent ones in s and d, A not transposed).
    'raster'          Rows of tiles of a column in which C of products is rasterized; 0: as the
                      kernels have it, whatever was tuned.
    'splits'          Number of slices into which the k of every product is split, or `STREAM_K`.
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
    >>> with pyblasgpu.override("splits", 2):
    ...     pyblasgpu.explain("gemm", "d", 512, device="h200")[1][:2]
    ('splits of k', '2')
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
    """Return the innermost override of `name`; None: none is set."""
    return next((value for known, value in _overrides.get() if known == name), None)


def token() -> int:
    """A number that is unique to the current overrides."""
    return _token.get()


# ------------------------------------------------------------------------------------------------ math mode


MODE = "math_mode"
_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextmanager
def set_math_mode(mode: str | None) -> Iterator[None]:
    """Set the method of products, within the block and in this thread or task alone.

    Parameters
    ----------
    mode : {'tensor'} or None
        'tensor': on tensor cores, as by ``gemm(..., method='tensor')``, within the same bound of the error:
        of FP16 in float32 and complex64, of INT8 in float64 and complex128.
        The mode holds for `gemm` and plans, for `linalg` and `blas`, and for the products that other routines
        are made of, as SYRK and the recursions of TRSM and Cholesky. None: by FMAs.

    Yields
    ------
    None
        The mode ends with the block.

    Raises
    ------
    ValueError
        For another mode.

    See Also
    --------
    gemm : A method for one product; other routines of products take it too.
    explain : The kernels of a call, the mode included.

    Notes
    -----
    Inner modes win. Where tensor cores do not serve, as for small products, triangles of float64 and on other
    devices, the mode changes nothing. In float32 and complex64 each product takes a workspace as large as its
    two factors, large ones half as much again, in routines with a limit too. A large SYMM copies its matrix
    as well, and a large TRMM the one that it multiplies. In float64 and complex128 a product takes up to 4
    GiB, and at most half of the memory that is free. Where less is free, it runs with FMAs, and rounds
    otherwise.

    Examples
    --------
    >>> import pyblasgpu
    >>> with pyblasgpu.set_math_mode("tensor"):
    ...     pyblasgpu.explain("gemm", "s", 4096, device="h200")[0][0]
    'gemm_wgmma'
    """
    if mode not in (None, TENSOR):
        raise ValueError(f"set_math_mode: mode={shown(mode)} is neither {TENSOR!r} nor None")
    with override(MODE, mode):
        yield


def in_mode(method: str | None, function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function` run in the mode of a `method`; None is the mode around it."""
    if method is None:
        return function

    @wraps(function)
    def run(*arguments: _P.args, **options: _P.kwargs) -> _R:
        with override(MODE, method):
            return function(*arguments, **options)

    return run


@contextmanager
def mode_from(least: float, order: int) -> Iterator[None]:
    """Within the block make a factorization's products by FMAs where its `order` is below the `least`."""
    if order >= least or get_override(MODE) is None:
        yield
        return
    with override(MODE, None):
        yield


def method_of(requested: str | None) -> str | None:
    """The method of a product: what the call has `requested` for, else what the mode says."""
    mode: str | None = get_override(MODE)
    return mode if requested is None else requested


def splits_singles(dtype: Dtype) -> bool:
    """Whether the mode makes products in `dtype` of FP16. Routines of float32 and complex64 go other ways
    then; of float64 and complex128 they are the same, and their large products alone gain.
    """
    return dtype.real_size == 4 and method_of(None) == TENSOR


COMPUTED = "computed"  # the origin of what no file gave
OVERRIDE = "override"


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """The Config of a kernel.

    Attributes
    ----------
    config : object
        A frozen Config; it names its family and says whether operands are packed.
    origin : str
        An override, a file and the class or point within it, 'fixed' or 'computed'.
    splits : int
        Slices of a product's k, or `split_k.STREAM_K`.
    copied : (bool, bool)
        Whether A and B of a product are copied first, to the Config's layout.
    """

    config: Any
    origin: str
    splits: int = 1
    copied: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """The algorithm that a routine runs.

    Attributes
    ----------
    name : str
        For TRSM 'trsv', 'trsm_fused', 'trsm_fused_1024' (a recursion that ends in fused triangles of that
        order), 'trsm_small' or 'recursion'; for TRMM 'trmm_fused', 'trmm_fused_1024' or 'recursion'; of SYR2K
        'symmetrize' or 'two_products'.
    origin : str
        Origin, as in a `KernelChoice`.
    """

    name: str
    origin: str
