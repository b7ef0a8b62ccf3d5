"""Calls of every operator of the table, small and well conditioned."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import torch

import pyblasgpu.torch as ours
from pyblasgpu.torch.operators import TABLE

__all__ = ["AT_ONCE", "BACKENDS", "CASES", "DTYPES", "Case", "hermitian", "random", "spd"]

DTYPES = [torch.float64, torch.complex128]
#: Compilers of `torch.compile`.
BACKENDS = [
    "aot_eager",
    pytest.param("inductor", marks=pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")),
]


class Case(NamedTuple):
    """A call of an operator.

    Attributes
    ----------
    name : str
        The operator's.
    args : tuple
        Its arguments.
    wrap : callable
        ``wrap(op, *args)``: the call as its gradients are compared, with inputs made Hermitian, say.
    """

    name: str
    args: tuple[Any, ...]
    wrap: Any

    def function(self) -> tuple[Any, list[Any]]:
        """A function of the tensors that have gradients, and these."""
        places = [
            i for i, arg in enumerate(self.args) if isinstance(arg, torch.Tensor) and arg.dtype != torch.int32
        ]
        op = getattr(torch.ops.pyblasgpu, self.name).default

        def call(*tensors: Any) -> Any:
            args = list(self.args)
            for place, tensor in zip(places, tensors):
                args[place] = tensor
            return self.wrap(op, *args)

        return call, [self.args[place] for place in places]

    def checked_args(self, to: Any = torch.clone) -> tuple[Any, ...]:
        """Copies of its arguments for `opcheck`, by `to`, with gradients.

        Sums of complex vectors depend on their phases, of which PyTorch takes no gradient.
        """
        depends = self.name in ("eigh", "svd") and self.args[0].is_complex()
        _, tensors = self.function()
        each = [to(arg) if isinstance(arg, torch.Tensor) else arg for arg in self.args]
        return tuple(
            copy.requires_grad_() if not depends and any(arg is tensor for tensor in tensors) else copy
            for arg, copy in zip(self.args, each)
        )


def random(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype)


def spd(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    x = random(dtype, *shape)
    return x @ x.mH + shape[-1] * torch.eye(shape[-1], dtype=dtype)


def hermitian(x: torch.Tensor) -> torch.Tensor:
    return (x + x.mH) / 2


def _plain(op, *args):
    return op(*args)


def _hermitian_first(count):
    def wrap(op, a, *args):
        result = op(hermitian(a), *args)
        return result[:count] if count > 1 else result[0]

    return wrap


def _first(op, *args):
    return op(*args)[0]


def _two(op, *args):
    return op(*args)[:2]


def _of_factor(op, a, upper):
    return op(torch.linalg.cholesky(hermitian(a), upper=upper), upper)


def _gaussian_backward(op, k, y, gq, gd):
    factor = torch.linalg.cholesky(hermitian(k))
    return op(hermitian(k), y, factor, torch.linalg.solve_triangular(factor, y, upper=False), gq, gd)


def _of_vectors(op, a, *args):
    """What does not depend on phases of vectors, of Hermitian matrices or of others."""
    if op is torch.ops.pyblasgpu.eigh.default:
        w, v, _ = op(hermitian(a), *args)
        return w, v * torch.arange(1, w.shape[-1] + 1, device=a.device) @ v.mH
    u, sigma, vh, _ = op(a, *args)
    k = sigma.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    weights = torch.arange(1, k + 1, device=a.device)
    return sigma, u * weights @ vh, u * weights @ u.mH, vh.mH * weights @ vh


def _pseudoinverse(op, a, atol, rtol, is_hermitian):
    return op(hermitian(a) if is_hermitian else a, atol, rtol, is_hermitian)[0]


def cases(dtype: torch.dtype) -> Iterator[Case]:
    """Calls with matrices of `dtype`."""

    def r(*shape):
        return random(dtype, *shape)

    alpha = 2 - 1j if dtype.is_complex else 2.0
    triangle = r(2, 2) + 3 * torch.eye(2, dtype=dtype)
    yield Case("gemm", (r(2, 3), r(3, 2), r(2, 2), alpha, 0.5, None), _plain)
    yield Case("gemm", (r(2, 1, 2, 3), r(3, 2), None, 1, 0, None), _plain)
    for lower in (False, True):
        yield Case("gemmtr", (r(2, 3), r(3, 2), r(2, 2), alpha, 0.5, lower), _plain)
        for conj in (False, True):
            yield Case("rank_k", (r(2, 3), r(2, 2), 2.0 if conj else alpha, 0.5, lower, conj), _plain)
        yield Case("symm", (r(2, 2), r(2, 3), r(2, 3), alpha, 0.5, True, lower, False), _plain)
        yield Case("symm", (r(2, 2), r(3, 2), None, alpha, 0, False, lower, True), _plain)
        for name in ("trmm", "trsm"):
            yield Case(name, (triangle, r(2, 1), alpha, True, lower, False), _plain)
            yield Case(name, (triangle, r(2, 1, 2), alpha, False, lower, True), _plain)
        factor = torch.linalg.cholesky(spd(dtype, 2, 2), upper=not lower)
        yield Case("cholesky_ex", (spd(dtype, 3, 3), not lower), _hermitian_first(1))
        yield Case("cholesky_backward", (factor, r(2, 2), not lower), _plain)
        yield Case("cholesky_solve", (r(2, 1), factor, not lower), _plain)
        yield Case("cholesky_inverse", (spd(dtype, 2, 2), not lower), _of_factor)
    for shape in ((2, 2), (2, 3), (3, 2)):
        yield Case("lu_factor_ex", (r(*shape),), _first)
        yield Case("qr", (r(*shape), False), _plain)
        yield Case("qr", (r(2, *shape), shape[0] <= shape[1]), _plain)
    for shape in ((2, 3), (2, 3, 2)):
        yield Case("svd", (r(*shape), len(shape) > 2), _of_vectors)
    yield Case("svdvals", (r(2, 3),), _first)
    yield Case("eigh", (hermitian(r(2, 3, 3)), True), _of_vectors)
    yield Case("eigvalsh", (hermitian(r(3, 3)), False), _hermitian_first(1))
    bound = torch.tensor(0.01).double()
    yield Case("pinv", (r(3, 1) @ r(1, 2), bound, bound / 3, False), _pseudoinverse)  # of one value
    if dtype.is_complex:
        yield Case("pinv", (hermitian(r(3, 3)), bound, bound / 3, True), _pseudoinverse)
    packed, pivots, _ = torch.linalg.lu_factor_ex(r(2, 2))
    yield Case("interchanged", (r(2, 3), pivots, True), _plain)
    yield Case("lu_inverse", (packed, pivots), _plain)
    for left in (False, True):
        right = r(2, 1) if left else r(1, 2)
        for adjoint in (False, True):
            yield Case("lu_solve", (packed, pivots, right, left, adjoint), _plain)
        yield Case("solve_ex", (triangle, right, left), _first)
    yield Case("inv_ex", (triangle,), _first)
    yield Case("slogdet", (triangle,), _two)
    yield Case("det", (triangle,), _first)
    yield Case("inv_quad_logdet", (spd(dtype, 2, 2), r(2, 1)), _hermitian_first(2))
    weights = torch.rand((), dtype=torch.float64), torch.rand((), dtype=torch.float64)
    yield Case("inv_quad_logdet_backward", (spd(dtype, 2, 2), r(2, 1), *weights), _gaussian_backward)


def _named() -> dict[str, Case]:
    torch.manual_seed(7)
    return {
        f"{str(dtype)[6:]} {case.name} {i}": case for dtype in DTYPES for i, case in enumerate(cases(dtype))
    }


CASES = _named()
assert {case.name for case in CASES.values()} == set(TABLE)
#: Cases whose arguments may be any tensors, as `opcheck` has them. Those of the other operator are made by
#: `inv_quad_logdet`, whose checks include it.
FREE_CASES = {name: case for name, case in CASES.items() if case.name != "inv_quad_logdet_backward"}
#: Functions whose gradients are one list.
AT_ONCE = {
    "product": lambda a, b: ours.gemm(a, b, alpha=2),
    "symmetric": lambda a, b: ours.symm(a, b, alpha=2, lower=True),
    "symmetric on the right": lambda a, b: ours.symm(a, b.mT, side="R"),
    "multiplied by a triangle": lambda a, b: ours.trmm(a, b, alpha=2, lower=True, trans="C"),
    "multiplied by a triangle on the right": lambda a, b: ours.trmm(a, b.mT, side="R"),
    "triangle": lambda a, b: ours.solve_triangular(a, b, upper=False),
    "triangle on the right": lambda a, b: ours.solve_triangular(a, b.mT, upper=True, left=False),
    "solution": lambda a, b: ours.solve_ex(a, b).result,
    "inverse": lambda a, b: ours.inv_ex(a).inverse @ b,
    "definite": lambda a, b: ours.cholesky_solve(b, a),
    "definite by an upper factor": lambda a, b: ours.cholesky_solve(b, a, upper=True),
}
