"""Programs written for PyTorch, GPyTorch and BoTorch, which know nothing of this library."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["GPYTORCH", "PYTORCH"]


def data(device: str, n: int = 40) -> tuple[Any, Any]:
    torch.manual_seed(5)
    x = torch.rand(n, 2, dtype=torch.float64)
    return x.to(device), torch.sin(4 * x.sum(1)).to(device)


def kernel(x: Any, scale: Any) -> Any:
    return torch.exp(-(torch.cdist(x, x) ** 2) / scale) + 0.1 * torch.eye(
        len(x), dtype=x.dtype, device=x.device
    )


def multivariate_normal(device: str) -> Any:
    """Log-density, entropy, samples and divergence of `MultivariateNormal`, with gradients."""
    x, y = data(device)
    scale = torch.tensor(0.7, dtype=x.dtype, device=device, requires_grad=True)
    normal = torch.distributions.MultivariateNormal(torch.zeros_like(y), kernel(x, scale))
    other = torch.distributions.MultivariateNormal(y, precision_matrix=kernel(x, 0.3))
    divergence = torch.distributions.kl_divergence(normal, other)
    value = normal.log_prob(y) + normal.entropy() + divergence
    (grad,) = torch.autograd.grad(value, scale, create_graph=True)
    return value, grad, torch.autograd.grad(grad, scale)[0]


def kalman_filter(device: str) -> Any:
    """Log-likelihood of a batch of series, and its gradient with respect to the transition."""
    torch.manual_seed(6)
    options = {"dtype": torch.float64, "device": device}
    observed = torch.randn(7, 20, 3, dtype=torch.float64).to(device)
    transition = (0.9 * torch.eye(4, **options)).requires_grad_()
    seen, noise = torch.eye(3, 4, **options), 0.5 * torch.eye(3, **options)
    state, covariance = torch.zeros(7, 4, 1, **options), torch.eye(4, **options).expand(7, 4, 4)
    likelihood = torch.zeros((), **options)
    for step in range(observed.shape[1]):
        state = transition @ state
        covariance = transition @ covariance @ transition.mT + 0.1 * torch.eye(4, **options)
        innovation = observed[:, step, :, None] - seen @ state
        factor = torch.linalg.cholesky(seen @ covariance @ seen.mT + noise)
        gain = torch.cholesky_solve(seen @ covariance, factor).mT
        white = torch.linalg.solve_triangular(factor, innovation, upper=False)
        likelihood = likelihood - 0.5 * (white**2).sum() - factor.diagonal(dim1=-2, dim2=-1).log().sum()
        state, covariance = state + gain @ innovation, covariance - gain @ seen @ covariance
    return likelihood, torch.autograd.grad(likelihood, transition)[0], state


def aligned_clouds(device: str) -> Any:
    """Rotations that align clouds of points, those whitened, and the gradient of what is left."""
    torch.manual_seed(7)
    clouds = torch.randn(2, 12, 30, 3, dtype=torch.float64).to(device).requires_grad_()
    covariances = clouds.mT @ clouds / clouds.shape[-2]
    values, axes = torch.linalg.eigh(covariances)
    one, other = clouds @ (axes / values.sqrt()[..., None, :] @ axes.mT)
    u, _, vh = torch.linalg.svd(one.mT @ other)
    signs = torch.ones(12, 3, dtype=u.dtype, device=device)
    signs[:, -1] = torch.linalg.det(u @ vh).detach()
    rotations = u * signs[:, None, :] @ vh
    distance = (one @ rotations - other).square().mean() + torch.linalg.pinv(one[:, :5]).square().sum()
    return distance, rotations, torch.autograd.grad(distance, clouds)[0]


def laplace_approximation(device: str) -> Any:
    """Mode of a logistic model by Newton's method, and the evidence by the determinant of its Hessian."""
    x, y = data(device)
    labels = (y > 0).to(x.dtype)
    features = torch.cat([x, x**2, torch.ones_like(x[:, :1])], 1)

    def negative(weights: Any) -> Any:
        logits = features @ weights
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="sum") + (
            weights @ weights
        )

    weights = torch.zeros(5, dtype=x.dtype, device=device)
    for _ in range(6):
        hessian = torch.func.hessian(negative)(weights)
        weights = weights - torch.linalg.solve(hessian, torch.func.grad(negative)(weights))
    hessian = torch.func.hessian(negative)(weights)
    return weights, -negative(weights) - 0.5 * torch.linalg.slogdet(hessian)[1], torch.linalg.inv(hessian)


def linear_operator(device: str) -> Any:
    """Likelihood with its gradient, solutions, and roots of a lazy covariance."""
    from linear_operator import to_linear_operator

    x, y = data(device)
    scale = torch.tensor(0.7, dtype=x.dtype, device=device, requires_grad=True)
    covariance = to_linear_operator(kernel(x, scale)).add_diagonal(torch.full_like(y, 0.2))
    quad, logdet = covariance.inv_quad_logdet(y[:, None], logdet=True)
    (grad,) = torch.autograd.grad(quad + logdet, scale, retain_graph=True)
    root = covariance.cholesky().to_dense()
    return quad.detach(), logdet.detach(), grad, covariance.solve(y[:, None]).detach(), root.detach()


def gpytorch_step(device: str, tasks: int = 1, batch: tuple[int, ...] = ()) -> Any:
    """Value and gradients of the marginal likelihood of an exact Gaussian process, and its predictions."""
    import gpytorch

    x, y = data(device)
    if tasks > 1:
        y = torch.stack([y, y.cos()], -1)
        likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=tasks)
    else:
        x, y = x.expand(*batch, *x.shape), y.expand(*batch, *y.shape)
        likelihood = gpytorch.likelihoods.GaussianLikelihood(batch_shape=torch.Size(batch))

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(x, y, likelihood)
            kernels, shape = gpytorch.kernels, torch.Size(batch)
            base = kernels.RBFKernel(batch_shape=shape)
            if tasks > 1:
                self.mean = gpytorch.means.MultitaskMean(gpytorch.means.ConstantMean(), num_tasks=tasks)
                self.covariance = kernels.MultitaskKernel(base, num_tasks=tasks, rank=1)
                self.covariance.task_covar_module.covar_factor.data.fill_(0.5)
            else:
                self.mean = gpytorch.means.ConstantMean(batch_shape=shape)
                self.covariance = kernels.ScaleKernel(base, batch_shape=shape)

        def forward(self, x: Any) -> Any:
            normals = gpytorch.distributions
            kind = normals.MultitaskMultivariateNormal if tasks > 1 else normals.MultivariateNormal
            return kind(self.mean(x), self.covariance(x))

    likelihood, model = likelihood.to(device).double(), Model().to(device).double()
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    value = -marginal(model.train()(x), y).sum()
    value.backward()
    grads = [each.grad for each in model.parameters() if each.grad is not None]
    model.eval()
    predicted = model(x[..., :5, :] + 0.01)
    return (value.detach(), *grads, predicted.mean.detach(), predicted.variance.detach())


def multitask(device: str) -> Any:
    return gpytorch_step(device, tasks=2)


def batched(device: str) -> Any:
    return gpytorch_step(device, batch=(3,))


def botorch_fit(device: str) -> Any:
    """A fit of `SingleTaskGP`, its posterior and samples of it."""
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x, y = data(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an optimizer that is stopped early
        model = SingleTaskGP(x, y[:, None])
        marginal = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(marginal, optimizer_kwargs={"options": {"maxiter": 5}})
        posterior = model.posterior(x[:7] + 0.01)
        samples = posterior.rsample(torch.Size([3]))
    return posterior.mean.detach(), posterior.variance.detach(), samples.detach()


Program = Callable[[str], Any]
PYTORCH: list[Program] = [multivariate_normal, kalman_filter, laplace_approximation, aligned_clouds]
GPYTORCH: list[Program] = [linear_operator, gpytorch_step, multitask, batched, botorch_fit]
