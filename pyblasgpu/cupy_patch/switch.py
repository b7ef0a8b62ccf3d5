"""`patch_cupy` and `unpatch_cupy`: programs written for CuPy run on this library's kernels unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from math import inf
from typing import Any, ClassVar

from ..database.policy import Policy
from ..dispatch.overrides import MODE, get_override
from ..frontend.backend_status import status_in
from ..patches.patch import Patch, begun, checked_sizes, policy_for, sizes_in
from ..patches.rebinding import rebind
from ..patches.routed_importlib_bootstrap import Routed
from .targets import KINDS, LEAST, targets

__all__ = ["CupyPatch", "patch_cupy", "unpatch_cupy"]

_OPERATOR = "__matmul__"


class CupyPatch(Patch):
    """A patch of CuPy that `patch_cupy` applied; as a context manager it is undone at the end.

    Attributes
    ----------
    backend : str
        The backend of the calls, 'cuda'.
    thresholds : dict[str, float]
        The size from which on a call is served, by function.
    least : float
        The smallest of the sizes that the patch was made with.
    math_mode : str or None
        The mode of `set_math_mode` that held when the patch was made; in it all calls are computed.
    multiplies : bool
        Whether calls of ``a @ b`` may be served.
    calls : collections.Counter
        The number of calls that were served, by function.
    kept : collections.Counter
        The number of calls that stayed with CuPy, by function and reason.

    See Also
    --------
    patch_cupy : Makes and applies it.

    Examples
    --------
    >>> import pyblasgpu
    >>> import cupy as cp  # doctest: +SKIP
    >>> with pyblasgpu.patch_cupy(thresholds=0) as patch:  # doctest: +SKIP
    ...     factor = cp.linalg.cholesky(cp.eye(3))
    >>> patch.calls  # doctest: +SKIP
    Counter({'cholesky': 1})
    """

    active: ClassVar[list[Any]] = []
    library = "CuPy"
    #: Originals and their replacements, while these are bound.
    _pairs: ClassVar[list[tuple[Any, Any]]] = []

    def __init__(
        self, backend: str, thresholds: dict[str, float], math_mode: str | None, replaces: bool
    ) -> None:
        super().__init__(backend, thresholds, replaces)
        self.math_mode, self.multiplies = math_mode, thresholds["matmul"] < inf

    @classmethod
    def _bind(cls) -> None:
        if cls.active and not cls._pairs:
            found = [Routed(target) for target in targets(cls.active)]
            cls._pairs = [(each.__wrapped__, each) for each in found]
        if cls.active:
            rebind({id(original): replacement for original, replacement in cls._pairs})
            _replace_operator(any(patch.multiplies for patch in cls.active), cls.active)
        elif cls._pairs:
            rebind({id(replacement): original for original, replacement in cls._pairs})
            _replace_operator(False, cls.active)
            cls._pairs = []


def _replace_operator(wanted: bool, active: list[Any]) -> None:
    """Let ``a @ b`` of CuPy's arrays be `matmul`'s call, or CuPy's own again."""
    ndarray = import_module("cupy").ndarray
    own = vars(ndarray).get(_OPERATOR)
    if not wanted:
        if hasattr(own, "_pyblasgpu_original"):
            original = own._pyblasgpu_original
            if original is None:
                delattr(ndarray, _OPERATOR)
            else:
                setattr(ndarray, _OPERATOR, original)
        return
    if hasattr(own, "_pyblasgpu_original"):
        return
    (target,) = [each for each in targets(active) if each.name == "matmul"]
    routed = Routed(target._replace(original=getattr(ndarray, _OPERATOR)))

    def multiply(self: Any, other: Any) -> Any:
        return routed(self, other)

    multiply._pyblasgpu_original = own  # type: ignore[attr-defined]
    setattr(ndarray, _OPERATOR, multiply)


def patch_cupy(
    *, thresholds: float | Mapping[str, float] | None = None, backend: str | None = None
) -> CupyPatch:
    """Let CuPy's functions of dense matrices run on this library's kernels, from a size on.

    Parameters
    ----------
    thresholds : number or mapping of str to number, optional
        The size from which on a call is served: for all functions, or by name where the default shall not
        hold. The size is the order of a square problem with as many operations: of a batch that of one matrix
        with as much work. Defaults are the results of ``pyblasgpu tune --torch`` here, else packaged ones.
        By default products are not replaced, but where `set_math_mode` has set 'tensor'
        when the patch begins.
    backend : {'auto', 'cuda'}, optional
        By default, and with 'auto', nothing is replaced where there is no GPU.

    Returns
    -------
    CupyPatch
        A context manager that ends the patch at the end of its block, whatever is raised there. It applies
        the patch again at the begin of another. Its attributes ``calls`` and ``kept`` count the calls that
        were served, and those that stayed with CuPy.

    Raises
    ------
    BackendUnavailable
        When 'cuda' is named and cannot run here.
    ImportError
        Without CuPy.
    ValueError
        For another backend, an unknown function and a negative threshold.
    TypeError
        When a threshold is no number.

    See Also
    --------
    unpatch_cupy : Ends all patches.
    patch_torch : Patches PyTorch.

    Notes
    -----
    Replaced are ``cholesky``, ``solve``, ``inv``, ``det``, ``slogdet`` and ``qr`` of `cupy.linalg`. Of stacks
    of small matrices its ``eigh``, ``eigvalsh`` and ``svd`` are, with what calls them. So are
    ``solve_triangular``, ``lu_factor``, ``lu_solve`` and ``lu`` of `cupyx.scipy.linalg`; in tensor mode also
    ``matmul``, ``dot`` and ``a @ b``. CuPy's ``lstsq`` returns singular values and stays. Names in modules
    that are imported already are bound to the new functions, and bound back at the end.

    As CuPy's functions do, those of `cupy.linalg` wait for nothing and look at no info: a singular matrix
    gives inf and NaN. Under ``cupyx.errstate(linalg="raise")`` calls stay with CuPy. So do those with arrays
    of other dtypes than float32, float64, complex64 and complex128, and those that this library refuses.

    Examples
    --------
    >>> import pyblasgpu
    >>> import cupy as cp  # doctest: +SKIP
    >>> with pyblasgpu.patch_cupy(thresholds={"cholesky": 2}) as patch:  # doctest: +SKIP
    ...     factor = cp.linalg.cholesky(cp.eye(3))
    >>> patch.calls  # doctest: +SKIP
    Counter({'cholesky': 1})
    """
    try:
        import_module("cupy")
    except ImportError as missing:
        raise ImportError(f"patch_cupy needs CuPy: {missing}") from missing
    if backend not in (None, "auto", "cuda", "cpu"):
        raise ValueError(f"patch_cupy: backend={backend!r} is none of auto, cuda")
    chosen, mode = status_in(backend, "patch_cupy").backend, get_override(MODE)
    if chosen not in ("cuda", "cpu"):
        raise ValueError(f"patch_cupy: backend {chosen!r} serves no arrays of CuPy's; name cuda")
    sizes = checked_sizes("patch_cupy", thresholds, _sizes_of(policy_for(chosen), mode is not None))
    replaces = chosen != "cpu" or backend == "cpu"  # 'cpu' is for tests
    return begun(CupyPatch(chosen, sizes, mode, replaces), thresholds, "replaced_min_size")


def unpatch_cupy() -> None:
    """Switch off all patches of `patch_cupy`; where none is on, nothing happens.

    See Also
    --------
    patch_cupy : Switches a patch on.

    Examples
    --------
    >>> import pyblasgpu
    >>> pyblasgpu.unpatch_cupy()
    """
    CupyPatch.undo_all()


def _sizes_of(policy: Policy, products: bool) -> dict[str, float]:
    """The sizes that a policy has, by function; those that are never reached are infinite."""
    sizes = {name: max(policy.replaced_min_size[kind], LEAST.get(name, 0)) for name, kind in KINDS.items()}
    return sizes_in(
        {name: inf if KINDS[name] == "product" and not products else sizes[name] for name in sizes}
    )
