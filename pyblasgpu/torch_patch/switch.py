"""`patch_torch` and `unpatch_torch`: programs written for PyTorch run on this library's kernels unchanged."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

from ..database.policy import Policy
from ..dispatch.overrides import MODE, get_override
from ..frontend.backend_status import status_in
from ..patches.patch import Patch, begun, checked_sizes, policy_for, sizes_in

__all__ = ["TorchPatch", "patch_torch", "sizes_of", "unpatch_torch"]

#: The key of PyTorch's dispatcher, by backend.
_KEYS = {"cuda": "CUDA", "cpu": "CPU"}


class TorchPatch(Patch):
    """A patch of PyTorch that `patch_torch` applied; as a context manager it is undone at the end.

    Attributes
    ----------
    backend : str
        Whose tensors are served: 'cuda', or 'cpu' for tensors in host memory.
    thresholds : dict[str, float]
        The size from which on a call is served, by function.
    least : float
        The smallest of the sizes that the patch was made with.
    math_mode : str or None
        The mode of `set_math_mode` that held when the patch was made; in it all calls are computed.
    calls : collections.Counter
        The number of calls that were served, by function.
    kept : collections.Counter
        The number of calls that stayed with PyTorch, by function and reason.

    See Also
    --------
    patch_torch : Makes and applies it.

    Examples
    --------
    >>> import torch, pyblasgpu
    >>> with pyblasgpu.patch_torch(backend="cpu", thresholds=0) as patch:
    ...     factor = torch.linalg.cholesky(torch.eye(3))
    >>> patch.calls
    Counter({'cholesky': 1})
    """

    active: ClassVar[list[Any]] = []
    library = "PyTorch"
    #: Libraries of kernels, by the key of the dispatcher and whether they are for products.
    _installed: ClassVar[dict[tuple[str, bool], Any]] = {}
    #: The patch that decides the calls of such kernels, or None; kernels read it.
    _deciding: ClassVar[dict[tuple[str, bool], list[TorchPatch | None]]] = {}

    def __init__(
        self, backend: str, thresholds: dict[str, float], math_mode: str | None, replaces: bool
    ) -> None:
        super().__init__(backend, thresholds, replaces)
        self.math_mode = math_mode

    @classmethod
    def _bind(cls) -> None:
        for key in _KEYS.values():
            patches = [patch for patch in cls.active if _KEYS[patch.backend] == key]
            for products in (False, True):
                wanted = any(patch.math_mode or not products for patch in patches)
                library = cls._installed.get((key, products))
                deciding = cls._deciding.setdefault((key, products), [None])
                last = patches[-1] if patches else None
                deciding[0] = None if last is None or (products and not last.math_mode) else last
                if wanted and library is None:
                    kernels = import_module(".kernels", __package__)
                    cls._installed[key, products] = kernels.install(key, deciding, products)
                elif library is not None and not wanted:
                    del cls._installed[key, products]
                    library._destroy()
        _keep_backward_here(any(patch.backend == "cuda" for patch in cls.active))


class _Before(threading.local):
    """Whether PyTorch had threads for backward before a patch; None where no patch is on."""

    had_threads: bool | None = None


_before = _Before()


def _keep_backward_here(wanted: bool) -> None:
    """Have this thread compute gradients itself, if they are `wanted` and of one device, else as before.

    Kernels in Python start sooner on the thread that has just run Python than on one that was asleep.
    """
    if not wanted and _before.had_threads is None:
        return
    torch = import_module("torch")
    if not wanted:
        torch._C._set_multithreading_enabled(_before.had_threads)
        _before.had_threads = None
    elif _before.had_threads is None and torch.cuda.device_count() == 1:
        _before.had_threads = torch._C._is_multithreading_enabled()
        torch._C._set_multithreading_enabled(False)


def patch_torch(
    *, thresholds: float | Mapping[str, float] | None = None, backend: str | None = None
) -> TorchPatch:
    """Let PyTorch's functions of dense matrices run on this library's kernels, from a size on.

    Parameters
    ----------
    thresholds : number or mapping of str to number, optional
        The size from which on a call is served: for all functions, or by name where the default shall not
        hold. By default the results of ``pyblasgpu tune --torch`` here, else packaged ones. The size is the
        order of a square problem with as many operations: of a batch that of one matrix with as much work.
        That of a solution from factors or with a triangle is at least its order.
    backend : {'auto', 'cuda', 'cpu'}, optional
        'cuda': tensors on CUDA devices. By default, and with 'auto', nothing is replaced where there is no
        GPU. 'cpu' serves tensors in host memory by this library's CPU backend, which is for tests.

    Returns
    -------
    TorchPatch
        A context manager that ends the patch at the end of its block, whatever is raised there. It applies
        the patch again at the begin of another. Its attributes ``calls`` and ``kept`` count the calls that
        were served, and those that stayed with PyTorch.

    Raises
    ------
    BackendUnavailable
        When 'cuda' is named and cannot run here.
    ImportError
        Without PyTorch, or with one before 2.9.
    ValueError
        For another backend, an unknown function and a negative threshold.
    TypeError
        When a threshold is no number.

    See Also
    --------
    unpatch_torch : Ends all patches.
    patch_scipy : Patches SciPy and NumPy.

    Notes
    -----
    Replaced are PyTorch's kernels of ``linalg.cholesky_ex``, ``linalg.solve_triangular``,
    ``triangular_solve``, ``cholesky_solve``, ``cholesky_inverse``, ``linalg.lu_factor_ex``,
    ``linalg.lu_solve``, ``linalg.inv_ex``, ``linalg.qr``, ``geqrf``, ``linalg.householder_product``,
    ``ormqr``, ``linalg.eigh``, ``linalg.svd`` and, by the driver 'gels', ``linalg.lstsq``. They are replaced
    with ``out=`` too. So are served ``cholesky``, ``solve``, ``inv``, ``det``, ``slogdet``, ``logdet``,
    ``eigvalsh``, ``svdvals``, ``pinv``, ``matrix_rank`` and all that calls these. Gradients of Cholesky
    factors and triangular solutions are computed by the formulas of `pyblasgpu.torch`. What is above a kernel
    stays PyTorch's: errors, named tuples, `torch.compile` and `torch.func`.

    Where `set_math_mode` has set 'tensor' when the patch begins, ``mm``, ``bmm``, ``addmm`` and ``baddbmm``
    are replaced too. All calls compute in that mode then, on other threads as well.

    With one GPU, gradients are computed on the thread that wants them, if the patch was applied there, and
    not on a thread of PyTorch's; `torch.autograd.set_multithreading_enabled` changes that.

    PyTorch's own kernel runs below the size, and for other dtypes than float32, float64, complex64 and
    complex128. It also runs where this library refuses a call or the device has no memory. The patch holds
    for all threads of the process. Patches may be nested: the last one decides.

    Examples
    --------
    >>> import torch, pyblasgpu
    >>> with pyblasgpu.patch_torch(backend="cpu", thresholds={"cholesky": 2}) as patch:
    ...     factor = torch.linalg.cholesky(torch.eye(3))
    >>> patch.calls
    Counter({'cholesky': 1})
    """
    if backend not in (None, "auto", *_KEYS):
        raise ValueError(f"patch_torch: backend={backend!r} is none of auto, {', '.join(_KEYS)}")
    try:
        torch = import_module("torch")
        if not hasattr(torch.library, "get_kernel"):
            raise ImportError(f"this is PyTorch {torch.__version__}")
    except ImportError as missing:
        raise ImportError(f"patch_torch needs PyTorch 2.9 or later: {missing}") from missing
    chosen = status_in(backend, "patch_torch").backend
    if chosen not in _KEYS:
        raise ValueError(f"patch_torch: backend {chosen!r} serves no tensors; name {', '.join(_KEYS)}")
    sizes = checked_sizes("patch_torch", thresholds, sizes_of(policy_for(chosen)))
    # where it is not named, tensors in host memory are PyTorch's
    replaces = chosen != "cpu" or backend == "cpu"
    patch = TorchPatch(chosen, sizes, get_override(MODE), replaces)
    return begun(patch, thresholds, "replaced_min_size")


def unpatch_torch() -> None:
    """Switch off all patches of `patch_torch`; where none is on, nothing happens.

    See Also
    --------
    patch_torch : Switches a patch on.

    Examples
    --------
    >>> import torch, pyblasgpu
    >>> patch = pyblasgpu.patch_torch(backend="cpu")
    >>> pyblasgpu.unpatch_torch()
    """
    TorchPatch.undo_all()


def sizes_of(policy: Policy) -> dict[str, float]:
    """Return the sizes that a policy has, by function; those that are never reached are infinite."""
    kinds = import_module(".targets", __package__).KINDS
    return sizes_in({name: policy.replaced_min_size[kind] for name, kind in kinds.items()})
