"""`patch_scipy` and `unpatch_scipy`: programs written for SciPy run on the GPU unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from ..arguments import enabled
from ..frontend.backend_status import status_in
from ..patches.patch import Patch, begun, checked_sizes, policy_for
from ..patches.rebinding import rebind
from ..patches.routed_importlib_bootstrap import Getter, Routed
from .targets import numpys, scipys
from .thresholds import sizes_of

__all__ = ["ScipyPatch", "patch_scipy", "unpatch_scipy"]

#: Whose functions are replaced now: SciPy's (False), NumPy's (True).
_bound: set[bool] = set()


class ScipyPatch(Patch):
    """A patch of SciPy that `patch_scipy` applied; as a context manager it is undone at the end.

    Attributes
    ----------
    backend : str
        The backend of the calls: 'cuda', 'cpu' or 'sim'.
    numpy : bool
        Whether functions of NumPy are replaced.
    thresholds : dict[str, float]
        The size from which on a call is routed, by routine.
    least : float
        The smallest of the sizes that the patch was made with.
    calls : collections.Counter
        The number of calls that were routed, by routine.
    kept : collections.Counter
        The number of calls that stayed with SciPy, by routine and reason.

    See Also
    --------
    patch_scipy : Makes and applies it.

    Examples
    --------
    >>> import pyblasgpu
    >>> with pyblasgpu.patch_scipy(backend="cpu", thresholds=100) as patch:
    ...     patch.backend, patch.thresholds["solve"]
    ('cpu', 100.0)
    """

    active: ClassVar[list[Any]] = []
    library = "SciPy"

    def __init__(
        self, backend: str, thresholds: dict[str, float], numpy: bool, replaces: bool = True
    ) -> None:
        super().__init__(backend, thresholds, replaces)
        self.numpy = numpy

    @classmethod
    def _bind(cls) -> None:
        _bind()


def patch_scipy(
    *,
    thresholds: float | Mapping[str, float] | None = None,
    backend: str | None = None,
    numpy: bool = False,
) -> ScipyPatch:
    """Let SciPy's functions of dense matrices run on the GPU, from a size on.

    Parameters
    ----------
    thresholds : number or mapping of str to number, optional
        The size from which on a call goes to the GPU: for all routines, or by name where the default shall
        not hold. By default the results of ``pyblasgpu tune --scipy`` here, else packaged ones. The size is
        the order of a square problem with as many operations; for a solve with k right-hand sides it is the
        cube root of n n k.
    backend : {'auto', 'cuda', 'cpu', 'sim'}, optional
        See `backend_status`. By default, and with 'auto', nothing is replaced where there is no GPU.
        'cpu' takes all calls through this library to SciPy's BLAS, which is for tests.
    numpy : bool, default False
        Replace ``numpy.linalg.cholesky``, ``solve``, ``inv``, ``det``, ``slogdet`` and ``qr``, and of
        stacks ``eigh``, ``eigvalsh`` and ``svd``, too.

    Returns
    -------
    ScipyPatch
        A context manager that ends the patch at the end of its block, whatever is raised there. It applies
        the patch again at the begin of another. Its attribute ``calls`` counts the calls that were routed.

    Raises
    ------
    BackendUnavailable
        When 'cuda' or 'sim' is named and cannot run here.
    ValueError
        For an unknown backend or routine, a negative threshold, and a `numpy` that is no bool.
    TypeError
        When a threshold is no number.

    See Also
    --------
    unpatch_scipy : Ends all patches.

    Notes
    -----
    Replaced are ``cholesky``, ``cho_factor``, ``cho_solve``, ``solve_triangular``, ``solve``, ``inv``,
    ``det``, ``lu_factor``, ``lu_solve`` and ``lu`` of `scipy.linalg`, and Level 3 of `scipy.linalg.blas`. So
    are the routines of `scipy.linalg.lapack` that `pyblasgpu.lapack` has, and what `get_blas_funcs` and
    `get_lapack_funcs` return. Names in modules that are imported already are bound to the new functions, and
    bound back at the end. A function that is kept elsewhere, in a closure or an object, stays what it was;
    one that replaced it goes back to SciPy's as soon as the patch ends. It can be copied and pickled. Where
    it is unpickled it is SciPy's, or that of a patch there.

    Results have the order in memory of SciPy's and NumPy's, and overwrite arguments where SciPy's do.
    Warnings name the line of the caller. NumPy's functions give none of conditions.

    Arrays that are not NumPy's float32, float64, complex64 or complex128 go to SciPy. So do calls that this
    library refuses, or for which the device has no memory. One that is overwriting its arrays when memory
    runs out raises MemoryError. The patch holds for all threads of the process. Patches may be nested: the
    last one decides.

    Examples
    --------
    >>> import numpy as np, scipy.linalg, pyblasgpu
    >>> with pyblasgpu.patch_scipy(backend="cpu", thresholds=0) as patch:
    ...     factor = scipy.linalg.cholesky(np.eye(3))
    >>> patch.calls
    Counter({'cholesky': 1})
    """
    chosen = status_in(backend, "patch_scipy").backend
    # where it is not named, SciPy runs on the processor anyway
    replaces = chosen != "cpu" or backend == "cpu"
    sizes = checked_sizes("patch_scipy", thresholds, sizes_of(policy_for(chosen)))
    patch = ScipyPatch(chosen, sizes, enabled(numpy, "patch_scipy", "numpy"), replaces)
    return begun(patch, thresholds, "routed_min_size")


def unpatch_scipy() -> None:
    """Switch off all patches of `patch_scipy`; where none is on, nothing happens.

    See Also
    --------
    patch_scipy : Switches a patch on.

    Examples
    --------
    >>> import pyblasgpu, scipy.linalg
    >>> before = scipy.linalg.solve
    >>> patch = pyblasgpu.patch_scipy(backend="cpu")
    >>> pyblasgpu.unpatch_scipy()
    >>> scipy.linalg.solve is before
    True
    """
    ScipyPatch.undo_all()


def _bind() -> None:
    """Bind names to the replacements that the patches need, and other names back to the originals."""
    for patches_numpy in (False, True):
        wanted = any(patch.numpy or not patches_numpy for patch in ScipyPatch.active)
        if wanted:
            pairs = _pairs(patches_numpy)
            _bound.add(patches_numpy)  # before: what fails half way is bound back as well
            rebind({id(original): replacement for original, replacement in pairs})
        elif patches_numpy in _bound:
            rebind({id(replacement): original for original, replacement in _pairs(patches_numpy)})
            _bound.discard(patches_numpy)


@cache
def _pairs(of_numpy: bool) -> list[tuple[Any, Any]]:
    """Each original and its replacement, found when nothing is replaced yet."""
    pairs: list[tuple[Any, Any]] = [
        (target.original, Routed(target)) for target in (numpys if of_numpy else scipys)(ScipyPatch.active)
    ]
    if not of_numpy:
        replacements = {id(original): replacement for original, replacement in pairs}
        for module in ("blas", "lapack"):
            home, name = f"scipy.linalg.{module}", f"get_{module}_funcs"
            getter = getattr(import_module(home), name)
            pairs.append((getter, Getter(getter, f"{home}:{name}", replacements, ScipyPatch.active)))
    return pairs
