"""Exact Gaussian processes by PyTorch, GPyTorch, BoTorch and JAX: training steps, fits and samples.

A step has a covariance K and observations y. It returns ``yᴴ K⁻¹ y + log det K`` and the gradient with
respect to K; that of GPyTorch has the points, and the gradient with respect to its parameters. BoTorch's
programs are some iterations of its fit, and samples of a posterior at half as many points.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from pyblasgpu import patch_torch
from pyblasgpu.types import DTYPES

__all__ = ["BOTORCH", "Way", "botorch_ways", "gpytorch_ways", "jax_problem", "jax_ways", "torch_problem"]
__all__ += ["torch_ways"]

try:
    import torch
except ImportError:  # the study says so
    torch = None

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch has memory of its own
POINT, NOISE = 4, 0.1  # numbers that describe a point; deviation of observations
ITERATIONS, SAMPLES = 8, 16
#: Programs of BoTorch.
BOTORCH = ("fit", "samples")


class Way(NamedTuple):
    """A step by one library.

    Attributes
    ----------
    name : str
    run : callable
        Returns values whose norms are compared, and does not wait.
    around : context manager
        Entered before the step is timed.
    """

    name: str
    run: Callable[[], tuple[Any, ...]]
    around: AbstractContextManager[Any] = nullcontext()


# ---------------------------------------------------------------------------------------------- PyTorch


def torch_problem(letter: str, n: int, device: str, count: int = 0) -> tuple[Any, Any]:
    """A covariance, or a stack of `count`, that wants a gradient, and observations."""
    torch.manual_seed(n)
    shape = (count,) if count else ()
    options = {"dtype": getattr(torch, DTYPES[letter].name), "device": device}
    x, y = torch.randn(*shape, n, n, **options), torch.randn(*shape, n, 1, **options)
    k = x @ x.mT / n + torch.eye(n, **options)
    return k.requires_grad_(), y


def torch_ways(k: Any, y: Any) -> list[Way]:
    """PyTorch's step, then ours: the operator that is made for it, plain operators, PyTorch's patched."""
    from pyblasgpu import torch as ours

    def by_factor(functions: Any) -> tuple[Any, ...]:
        factor = functions.cholesky(k)
        white = functions.solve_triangular(factor, y, upper=False)
        logdet = factor.diagonal(dim1=-2, dim2=-1).log().sum()
        return finished((white * white).sum() + 2 * logdet)

    def by_operator() -> tuple[Any, ...]:
        quad, logdet = ours.inv_quad_logdet(k, y)
        return finished(quad.sum() + logdet.sum())

    def finished(value: Any) -> tuple[Any, ...]:
        return value.detach(), torch.autograd.grad(value, k)[0]

    return [
        Way("torch", lambda: by_factor(torch.linalg)),
        Way("inv_quad_logdet", by_operator),
        Way("operators", lambda: by_factor(ours)),
        Way("patched", lambda: by_factor(torch.linalg), patched(k.device.type)),
    ]


def patched(device: str) -> AbstractContextManager[Any]:
    """The patch of PyTorch with this machine's sizes; tensors in host memory are all served."""
    patch = patch_torch() if device == "cuda" else patch_torch(backend="cpu", thresholds=0)
    patch.undo()
    return patch


# --------------------------------------------------------------------------------------------- GPyTorch


def gpytorch_ways(letter: str, n: int, device: str) -> list[Way]:
    """GPyTorch's step by Cholesky's factor, and the same patched."""
    import gpytorch

    x, y = _points(letter, n, device)
    options = {"dtype": x.dtype, "device": device}
    likelihood = gpytorch.likelihoods.GaussianLikelihood()

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.covariance = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))

    model = Model().to(**options).train()
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood.to(**options), model)

    def step() -> tuple[Any, ...]:
        model.zero_grad()
        with gpytorch.settings.max_cholesky_size(n + 1):  # beyond it are iterations
            value = -marginal(model(x), y)
        value.backward()
        grads = [each.grad for each in model.parameters() if each.grad is not None]
        return torch.stack([value.detach(), *(grad.sum() for grad in grads)]), *grads

    return [Way("torch", step), Way("patched", step, patched(device))]


def _points(letter: str, n: int, device: str) -> tuple[Any, Any]:
    """Points, and observations there, with noise: else a fit leads to singular matrices."""
    torch.manual_seed(n)
    x = torch.rand(n, POINT, dtype=getattr(torch, DTYPES[letter].name), device=device)
    return x, torch.sin(4 * x.sum(1)) + NOISE * torch.randn_like(x[:, 0])


def botorch_ways(program: str, letter: str, n: int, device: str) -> list[Way]:
    """A program of `BOTORCH`, and the same patched."""
    import gpytorch
    from botorch.models import SingleTaskGP
    from botorch.optim.fit import fit_gpytorch_mll_scipy

    x, y = _points(letter, n, device)
    exact = gpytorch.settings.max_cholesky_size(n + 1)  # beyond it are iterations
    trained = SingleTaskGP(x, y[:, None])
    others = torch.rand(n // 2, POINT, dtype=x.dtype, device=device)

    def fit() -> tuple[Any, ...]:
        model = SingleTaskGP(x, y[:, None])
        marginal = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        with exact, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an optimizer that is stopped early
            fit_gpytorch_mll_scipy(marginal, options={"maxiter": ITERATIONS})
        return tuple(each.detach() for each in model.parameters())

    def samples() -> tuple[Any, ...]:
        trained.train()  # forgets what it has factored
        torch.manual_seed(n)
        with exact, torch.no_grad():
            posterior = trained.posterior(others, observation_noise=True)
            return posterior.mean, posterior.rsample(torch.Size([SAMPLES]))

    run = {"fit": fit, "samples": samples}[program]
    return [Way("torch", run), Way("patched", run, patched(device))]


# -------------------------------------------------------------------------------------------------- JAX


def jax_problem(letter: str, n: int, count: int = 0) -> tuple[Any, Any]:
    """Data of a step for JAX, on its first device."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")  # JAX's float32 products are else TF32's
    keys, shape = jax.random.split(jax.random.key(n)), (count,) if count else ()
    dtype = DTYPES[letter].name
    x = jax.random.normal(keys[0], (*shape, n, n), dtype)
    k = jnp.matmul(x, x.mT, precision="highest") / n + jnp.eye(n, dtype=dtype)
    return k, jax.random.normal(keys[1], (*shape, n, 1), dtype)


def jax_ways(k: Any, y: Any) -> Iterator[Way]:
    """JAX's step under `jax.jit`, then ours."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.linalg import solve_triangular

    from pyblasgpu import jax as ours

    def by_factor(cholesky: Any, solve_triangular: Any, k: Any, y: Any) -> Any:
        factor = cholesky(k)
        white = solve_triangular(factor, y, lower=True)
        return (white * white).sum() + 2 * jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum()

    def by_operator(k: Any, y: Any) -> Any:
        quad, logdet = ours.inv_quad_logdet(k, y)
        return quad.sum() + logdet.sum()

    each = {
        "jax": lambda k, y: by_factor(jnp.linalg.cholesky, solve_triangular, k, y),
        "inv_quad_logdet": by_operator,
        "operators": lambda k, y: by_factor(ours.cholesky, ours.solve_triangular, k, y),
    }
    for name, function in each.items():
        step = jax.jit(jax.value_and_grad(function))
        yield Way(name, lambda step=step: step(k, y))  # type: ignore[misc]
