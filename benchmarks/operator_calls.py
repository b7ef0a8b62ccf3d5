"""Calls of PyTorch's operators of order 64, ours and its own, for what one costs the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pyblasgpu.types import DTYPES

try:
    import torch
except ImportError:  # the study says so
    torch = None

__all__ = ["gradient_calls", "operator_calls"]

N = 64

Call = Callable[[], Any]


def operator_calls(letter: str, device: str, recorded: bool) -> Iterator[tuple[str, Call, Call]]:
    """Name, our call and PyTorch's; `recorded` ones are recorded for gradients."""
    return _calls(*_operands(letter, device, recorded))


def gradient_calls(letter: str, device: str) -> Iterator[tuple[str, Call, Call]]:
    """The call with its gradients, for all results that have any."""
    operands = _operands(letter, device, True)
    leaves = [each for each in operands if each.requires_grad]
    for name, *both in _calls(*operands):
        weights = [torch.ones_like(each) for each in _differentiable(both[0]())]
        if weights:
            ours, own = (partial(_with_gradients, call, leaves, weights) for call in both)
            yield name, ours, own


def _with_gradients(call: Call, leaves: list[Any], weights: list[Any]) -> Any:
    results = _differentiable(call())[: len(weights)]
    return torch.autograd.grad(results, leaves, weights[: len(results)], allow_unused=True)


def _differentiable(results: Any) -> list[Any]:
    several = results if isinstance(results, (tuple, list)) else (results,)
    return [each for each in several if each.requires_grad]


def _operands(letter: str, device: str, recorded: bool) -> tuple[Any, ...]:
    """A matrix, another one, Cholesky and LU factors, and pivots."""
    options = {"dtype": getattr(torch, DTYPES[letter].name), "device": device}
    torch.manual_seed(N)
    b = torch.randn(N, N, **options)
    a = b @ b.mT / N + torch.eye(N, **options)
    factor, (lu, pivots) = torch.linalg.cholesky(a), torch.linalg.lu_factor(a)
    for each in (a, b, factor, lu):
        each.requires_grad_(recorded)
    return a, b, factor, lu, pivots


def _calls(a: Any, b: Any, factor: Any, lu: Any, pivots: Any) -> Iterator[tuple[str, Call, Call]]:
    from pyblasgpu import torch as ours

    theirs = torch.linalg
    solve = partial(theirs.solve_triangular, factor, b, upper=False)

    def step() -> Any:
        triangle = theirs.cholesky(a)
        white = theirs.solve_triangular(triangle, b, upper=False)
        return (white * white).sum(), 2 * triangle.diagonal().log().sum()

    yield "gemm", partial(ours.gemm, b, b), partial(torch.mm, b, b)
    added = partial(ours.gemm, b, b, b, alpha=2, beta=1)
    yield "gemm, added", added, partial(torch.addmm, b, b, b, alpha=2)
    yield "gemmtr", partial(ours.gemmtr, b, b), lambda: torch.mm(b, b).tril()
    for name in ("syrk", "herk"):
        yield name, partial(getattr(ours, name), b), lambda: torch.mm(b, b.mT).tril()
    for name in ("symm", "hemm"):
        yield name, partial(getattr(ours, name), a, b), partial(torch.mm, a, b)
    yield "trmm", partial(ours.trmm, factor, b, lower=True), lambda: torch.mm(factor.tril(), b)
    yield "trsm", partial(ours.trsm, factor, b, lower=True), solve
    yield "solve_triangular", partial(ours.solve_triangular, factor, b, upper=False), solve
    for name in ("cholesky", "cholesky_ex", "lu_factor", "lu_factor_ex", "inv", "inv_ex"):
        yield name, partial(getattr(ours, name), a), partial(getattr(theirs, name), a)
    for name in ("eigh", "eigvalsh", "svd", "svdvals", "pinv", "matrix_rank", "det", "slogdet", "qr"):
        yield name, partial(getattr(ours, name), a), partial(getattr(theirs, name), a)
    for name in ("solve", "solve_ex", "lstsq"):
        yield name, partial(getattr(ours, name), a, b), partial(getattr(theirs, name), a, b)
    yield "logdet", partial(ours.logdet, a), partial(torch.logdet, a)
    yield "lu_solve", partial(ours.lu_solve, lu, pivots, b), partial(theirs.lu_solve, lu, pivots, b)
    solution = partial(ours.cholesky_solve, b, factor)
    yield "cholesky_solve", solution, partial(torch.cholesky_solve, b, factor)
    inverse = partial(ours.cholesky_inverse, factor)
    yield "cholesky_inverse", inverse, partial(torch.cholesky_inverse, factor)
    yield "inv_quad_logdet", partial(ours.inv_quad_logdet, a, b), step
