"""Decisions of dispatch, and what takes their place: overrides and the math mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from itertools import count
from operator import index
from typing import Any, ParamSpec, TypeVar

from ..arguments import enabled, item, shown
from ..settings import Setting
from ..types import TENSOR, Dtype

__all__ = [
    "Algorithm",
    "COMPUTED",
    "FIXED_ORIGIN",
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

#: Values of the choices other than the Configs of kernel families: a str of these, where <n> is any positive
#: int; an int that is at least this one; or, if `bool`, a switch.
_VALUES: dict[str, tuple[str, ...] | int | type[bool]] = {
    "layout": ("nn", "nt", "tn", "tt"),
    "lookahead": 0,
    "math_mode": (TENSOR,),
    "packed": bool,
    "potrf": 1,
    "potrf_algorithm": ("panels", "recursion"),
    "prefetch_c": bool,
    "raster": 0,
    "splits": 0,
    "symm": 1,
    "syr2k_algorithm": ("symmetrize", "two_products"),
    "tiles": 0,
    "trmm": 1,
    "trmm_algorithm": ("trmm_fused", "trmm_fused_<n>", "trmm_small", "trmm_tensor", "recursion"),
    "trsm": 1,
    "trsm_algorithm": ("trsv", "trsm_fused", "trsm_fused_<n>", "trsm_small", "recursion"),
    "workspace": 0,
}
_overrides: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("overrides", default=())
#: A number that is unique to the current overrides: cheap to compare.
token: ContextVar[int] = ContextVar("token", default=0)
_tokens: dict[tuple[tuple[str, Any], ...], int] = {(): 0}
_numbers = count(1)


def override(name: str, value: Any) -> Setting:
    """Prefer `value` to the choice of the dispatch from now on, in this thread or task alone.

    Parameters
    ----------
    name : str
        The name of the choice, see the table.
    value : Config, int, bool, str or None
        The choice; None: the choice of the dispatch.

    Returns
    -------
    Setting
        A context manager that restores the choice before at the end of its block.

    Raises
    ------
    TypeError
        For a value of another type than the table says.
    ValueError
        For a name that is not in the table, and for a value that its choice does not have.

    See Also
    --------
    explain : The kernels of a call, overrides included.

    Notes
    -----
    Later overrides win. Workspace has no limit where an override requests it.

    ================= ============================================================================
    `name`            `value`
    ================= ============================================================================
    a kernel family   A Config of it, for its own dtype and layout; k is not split. None ends all
                      overrides of the family.
    'layout'          The layouts of A and B of products ('nn', 'tn', ...); they are copied where
                      they have others.
    'math_mode'       The mode of `set_math_mode`.
    'packed'          Whether operands of products are packed, k not split; if not, they are
                      copied only where they must be.
    'prefetch_c'      Whether products that read C prefetch a tile of it into L2 before they multiply
                      (persistent ones in s and d, A not transposed).
    'raster'          Rows of tiles of a column in which C of products is rasterized; 0: as the
                      kernels have it, whatever was tuned.
    'splits'          Number of slices into which the k of every product is split, or `STREAM_K`; as many
                      as k has sectors of memory for.
    'trsm_algorithm'  'trsv' (one to four right-hand sides), 'trsm_fused', 'trsm_fused_1024' (a
                      recursion that ends in fused triangles of that order), 'trsm_small' or
                      'recursion', to the leaves; the recursion where it does not apply.
    'trmm_algorithm'  'trmm_fused', 'trmm_tensor' (one product on tensor cores), 'trmm_fused_1024' (a
                      recursion that ends in fused triangles of that order), 'trmm_small' or
                      'recursion'; the recursion where the others do not apply.
    'syr2k_algorithm' 'symmetrize' or 'two_products', of HER2K too.
    'trmm', 'trsm'    Order at which the recursion ends in leaves; 'symm' likewise.
    'potrf_algorithm' 'panels' or 'recursion'; the recursion where the first does not apply.
    'potrf'           Rows that the recursion of the Cholesky factor splits off at most.
    'lookahead'       Columns of the blocks by which LU and Cholesky factors look ahead; 0: they do
                      not.
    'tiles'           Tiles after which blocks of their updates give a multiprocessor back to the
                      next block of columns; 0: they do not.
    'workspace'       Bytes of workspace that TRMM, TRSM, SYRK and SYR2K take at most, besides copies
                      of operands that no kernel reads in place, and not in the tensor mode; 0: none.
    ================= ============================================================================

    Examples
    --------
    >>> import pyblasgpu
    >>> with pyblasgpu.override("splits", 2):
    ...     pyblasgpu.explain("gemm", "d", 512, device="h200")[1][:2]
    ('splits of k', '2')
    """
    return Setting("override", partial(_prefer, name, _checked(name, value)))


def _prefer(name: str, value: Any) -> Callable[[], None]:
    """Set an override; return the function that restores what was set before."""
    before, pair = _overrides.get(), (name, value)
    # Configs of a family serve a dtype and a layout each, and do not replace one another
    stays = value is not None and name not in _VALUES
    others = tuple(each for each in before if each != pair and (stays or each[0] != name))
    made = others if value is None else (pair, *others)
    _install(made)

    def restore() -> None:
        now = _overrides.get()
        if now == made:
            _install(before)
            return
        # others were set since, and stay
        kept = tuple(each for each in now if each != pair and (stays or each[0] != name))
        again = tuple(each for each in before if each == pair or (each[0] == name and not stays))
        _install((*kept, *again))

    return restore


def _install(active: tuple[tuple[str, Any], ...]) -> None:
    _overrides.set(active)
    token.set(_tokens.setdefault(active, next(_numbers)))


def _checked(name: str, value: Any) -> Any:
    """The value of an override as dispatch reads it.

    Raises
    ------
    TypeError, ValueError
        When there is no such choice, or it has no such value.
    """
    allowed = _VALUES.get(name) if isinstance(name, str) else None
    if allowed is None:
        return _checked_config(name, value)
    if value is None:
        return None
    complaint = f"override: {name}={shown(value)} is"
    if allowed is bool:
        return enabled(value, "override", name)
    if isinstance(allowed, tuple):
        known = isinstance(value, str) and any(
            re.fullmatch(each.replace("<n>", "[1-9][0-9]*"), value) for each in allowed
        )
        if not known:
            raise ValueError(f"{complaint} none of {', '.join(map(repr, allowed))}, None")
        return value
    try:
        number = -1 if isinstance(value, bool) else index(item(value))
    except TypeError:
        raise TypeError(f"{complaint} no int from {allowed} on") from None
    if number < allowed:
        raise ValueError(f"{complaint} no int from {allowed} on")
    return number


def _checked_config(name: Any, value: Any) -> Any:
    registry = import_module("..kernels.registry", __package__)
    families = {**registry.FAMILIES, **registry.FIXED}
    if not isinstance(name, str) or name not in families:
        known = ", ".join(sorted((*families, *_VALUES)))
        raise ValueError(f"override: name={shown(name)} is none of {known}")
    kind = families[name].config_class
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"override: {name}={shown(value)} is no {kind.__name__}, the Config of this family")
    return value


def active() -> tuple[tuple[str, Any], ...]:
    """Names and values, the latest first."""
    return _overrides.get()


def get_override(name: str) -> Any:
    """Return the value of an override; None: none is set."""
    return next((value for known, value in _overrides.get() if known == name), None)


# ------------------------------------------------------------------------------------------------ math mode


MODE = "math_mode"
_P = ParamSpec("_P")
_R = TypeVar("_R")


def set_math_mode(mode: str | None) -> Setting:
    """Set the method of products from now on, in this thread or task alone.

    Parameters
    ----------
    mode : {'tensor'} or None
        'tensor': on tensor cores, as by ``gemm(..., method='tensor')``, within the same bound of the error.
        They are of FP16 in float32 and complex64, of INT8 in float64 and complex128. The mode holds for
        `gemm` and plans, for `linalg` and `blas`. It also holds for the products that other routines are made
        of, as SYRK and the recursions of TRSM and Cholesky. None: by FMAs.

    Returns
    -------
    Setting
        A context manager that restores the mode before at the end of its block.

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
    Later modes win. Where tensor cores do not serve, as for small products, triangles of float64 and on other
    devices, the mode changes nothing. In float32 and complex64 each product takes a workspace as large as its
    two factors, large ones half as much again. It does in routines with a limit too. A large SYMM copies its
    matrix as well, and a large TRMM the one that it multiplies. In float64 and complex128 a product takes up
    to 4 GiB, and at most half of the memory that is free. Where less is free, it runs with FMAs, and rounds
    otherwise.

    Examples
    --------
    >>> import pyblasgpu
    >>> with pyblasgpu.set_math_mode("tensor"):
    ...     pyblasgpu.explain("gemm", "s", 4096, device="h200")[0][0]
    'gemm_wgmma'
    """
    if mode is not None and not (isinstance(mode, str) and mode == TENSOR):
        raise ValueError(f"set_math_mode: mode={shown(mode)} is neither {TENSOR!r} nor None")
    return Setting("set_math_mode", partial(_prefer, MODE, mode))


def in_mode(method: str | None, function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function` run in the mode of a `method`; None is the mode around it."""
    if method is None:
        return function

    @wraps(function)
    def run(*arguments: _P.args, **options: _P.kwargs) -> _R:
        restore = _prefer(MODE, method)
        try:
            return function(*arguments, **options)
        finally:
            restore()

    return run


@contextmanager
def mode_from(least: Callable[[], float], order: int) -> Iterator[None]:
    """Within the block make a factorization's products by FMAs where its `order` is below ``least()``."""
    if get_override(MODE) is None or order >= least():
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
    then; of float64 and complex128 SYMM and large Cholesky factors do, of others large products gain.
    """
    return dtype.real_size == 4 and method_of(None) == TENSOR


COMPUTED = "computed"  # the origin of what no file gave
OVERRIDE = "override"
FIXED_ORIGIN = "fixed"  # that of a Config with the defaults of its family


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
        order), 'trsm_small' or 'recursion'; for TRMM 'trmm_fused', 'trmm_fused_1024', 'trmm_small' or
        'recursion'; of SYR2K 'symmetrize' or 'two_products'.
    origin : str
        Origin, as in a `KernelChoice`.
    """

    name: str
    origin: str
