"""``pyblasgpu tune --torch``: from which size on PyTorch's calls are faster by this library's kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

from ..database.policy import MAX_VALUE
from ..dispatch.overrides import set_math_mode
from ..torch_patch.switch import patch_torch, sizes_of
from ..types import TENSOR
from .scipy_thresholds import Call, Say, gains_of, keep, threshold

__all__ = ["KINDS", "calls", "main", "thresholds"]

SIZES = (128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
MIN_SPEEDUP = 1.05  # of calls without copies; less is within what times of a call differ by

#: Calls that are timed: kinds of the policy's ``replaced_min_size``.
KINDS = ("cholesky", "triangle", "lu", "inverse", "qr", "qr_stack", "product")
STACK = 64  # matrices of a stack, each of a quarter of the order: as much work as one of it


def calls(n: int, device: str = "cuda") -> Iterator[tuple[str, Call]]:
    """The calls of `KINDS` with matrices of order n, in float64; each waits for the device."""
    torch: Any = import_module("torch")
    general = torch.randn(n, n, dtype=torch.float64).to(device)
    definite = general @ general.mT / n + torch.eye(n, dtype=torch.float64, device=device)
    factor = torch.linalg.cholesky(definite)
    stack = general[: n // 4, : n // 4].expand(STACK, n // 4, n // 4).contiguous()
    each = {
        "cholesky": lambda: torch.linalg.cholesky_ex(definite),
        "triangle": lambda: torch.linalg.solve_triangular(factor, general, upper=False),
        "lu": lambda: torch.linalg.lu_factor_ex(general),
        "inverse": lambda: torch.linalg.inv_ex(general),
        "qr": lambda: torch.geqrf(general),
        "qr_stack": lambda: torch.geqrf(stack),
        "product": lambda: general @ definite,
    }

    def waiting(call: Call) -> Call:
        def run() -> None:
            call()
            if device == "cuda":
                torch.cuda.synchronize()

        return run

    for kind in KINDS:
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

    gains = gains_of(dict.fromkeys(KINDS, 1), lambda n: calls(n, backend), patched, sizes, say)
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
    return keep(options, "torch", lambda say: thresholds(say=say), sizes_of)
