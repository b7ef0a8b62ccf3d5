"""``pyblasgpu tune --torch``: from which size on PyTorch's calls are faster by this library's kernels.

The orders from which on refinement serves are measured with it (`refined_orders`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

from ..database.policy import MAX_VALUE
from ..dispatch.overrides import set_math_mode
from ..torch_patch.switch import patch_torch, sizes_of
from ..types import TENSOR
from .refined_orders import refined_orders
from .scipy_thresholds import Call, Say, gains_of, keep, threshold

__all__ = ["KINDS", "calls", "main", "thresholds"]

SIZES = (128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
MIN_SPEEDUP = 1.05  # of calls without copies; less is within what times of a call differ by

#: Calls that are timed: kinds of the policy's ``replaced_min_size``.
KINDS = (
    "cholesky", "triangle", "lu", "inverse", "qr", "qr_stack", "eigh", "eigh_stack", "svd", "svd_stack",
    "product",
)  # fmt: skip
STACK = 64  # matrices of a stack, each of a quarter of the order: as much work as one of it
SMALL_STACK = 512  # the same of matrices each of an eighth of the order
SINGLE = 32  # the order over that of matrices alone of which there are kernels of eigenvalues
LARGEST = 96  # order for which there are kernels of eigenvalues and of singular values


def calls(n: int, device: str = "cuda") -> Iterator[tuple[str, Call]]:
    """The calls of `KINDS` with matrices of order n, in float64; each waits for the device."""
    torch: Any = import_module("torch")
    general = torch.randn(n, n, dtype=torch.float64).to(device)
    definite = general @ general.mT / n + torch.eye(n, dtype=torch.float64, device=device)
    factor = torch.linalg.cholesky(definite)
    stack = general[: n // 4, : n // 4].expand(STACK, n // 4, n // 4).contiguous()
    alone, many = max(n // SINGLE, 1), n // 8
    one, few = definite[:alone, :alone], general[: min(many, LARGEST), : min(many, LARGEST)]
    small = few.expand(SMALL_STACK, *few.shape).contiguous()
    each = {
        "cholesky": lambda: torch.linalg.cholesky_ex(definite),
        "triangle": lambda: torch.linalg.solve_triangular(factor, general, upper=False),
        "lu": lambda: torch.linalg.lu_factor_ex(general),
        "inverse": lambda: torch.linalg.inv_ex(general),
        "qr": lambda: torch.geqrf(general),
        "qr_stack": lambda: torch.geqrf(stack),
        "eigh": lambda: torch.linalg.eigh(one),
        "eigh_stack": lambda: torch.linalg.eigh(small),
        "svd": lambda: torch.linalg.svd(one),
        "svd_stack": lambda: torch.linalg.svd(small),
        "product": lambda: general @ definite,
    }

    def waiting(call: Call) -> Call:
        def run() -> None:
            call()
            if device == "cuda":
                torch.cuda.synchronize()

        return run

    orders = {"eigh": alone, "svd": alone, "eigh_stack": many, "svd_stack": many}
    for kind in KINDS:
        if orders.get(kind, 0) <= LARGEST:
            yield kind, waiting(each[kind])


def thresholds(
    sizes: Sequence[int] = SIZES, backend: str = "cuda", say: Say | None = None
) -> dict[str, dict[str, float]]:
    """The sizes from which on calls are faster, as values of the policy.

    Parameters
    ----------
    sizes : sequence of int
        Orders of matrices.
    backend : {'cuda', 'cpu'}
        Backend, as `patch_torch` takes it.
    say : callable, optional
        Called with a call's name, the order, and the seconds by PyTorch and with the patch.
    """

    @contextmanager
    def patched(kind: str) -> Iterator[None]:
        mode: AbstractContextManager[Any] = set_math_mode(TENSOR if kind == "product" else None)
        with mode, patch_torch(thresholds=0, backend=backend):
            yield

    factors = {kind: 1 / SINGLE if kind in ("eigh", "svd") else 1 for kind in KINDS}
    gains = gains_of(factors, lambda n: calls(n, backend), patched, sizes, say)
    return {
        "replaced_min_size": {kind: min(threshold(gains[kind], MIN_SPEEDUP), MAX_VALUE) for kind in KINDS}
    }


def main(options: Any) -> int:
    """Time the calls on a device and keep the sizes; returns the exit code.

    Parameters
    ----------
    options : object
        With the attributes ``device`` (a number or name, or None) and ``json``.

    Raises
    ------
    BackendUnavailable
        Where there is no device.
    ModuleNotFoundError
        Without PyTorch.
    """
    import_module("torch")
    return keep(options, "torch", lambda say: {**thresholds(say=say), **refined_orders(say=say)}, sizes_of)
