"""Programs written for tinygp and NumPyro; the functions that they call are an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import linalg as scipys

import pyblasgpu.jax as ours

__all__ = ["OURS", "PROGRAMS", "THEIRS", "Functions"]


class Functions:
    """What a program calls.

    Attributes
    ----------
    cholesky, solve_triangular : callable
        With the signatures of `jax.numpy.linalg` and `jax.scipy.linalg`.
    """

    def __init__(self, cholesky: Any, solve_triangular: Any) -> None:
        self.cholesky, self.solve_triangular = cholesky, solve_triangular


OURS = Functions(ours.cholesky, ours.solve_triangular)
THEIRS = Functions(jnp.linalg.cholesky, scipys.solve_triangular)


def data(n: int = 30) -> tuple[Any, Any]:
    x = jnp.sort(jax.random.uniform(jax.random.key(3), (n,), "float64")) * 4
    return x, jnp.sin(3 * x)


def tinygp(functions: Functions) -> Any:
    """Likelihood, gradients, and predictions of tinygp's process with a solver of the user's."""
    import tinygp
    from tinygp.solvers import DirectSolver

    class Solver(DirectSolver):
        def __init__(self, kernel: Any, X: Any, noise: Any, *, covariance: Any = None) -> None:
            self.X = X
            self.variance_value = kernel(X) + noise.diagonal()
            self.covariance_value = kernel(X, X) + noise if covariance is None else covariance
            self.scale_tril = functions.cholesky(self.covariance_value)

        def solve_triangular(self, y: Any, *, transpose: bool = False) -> Any:
            return functions.solve_triangular(self.scale_tril, y, trans=int(transpose), lower=True)

    x, y = data()

    def process(parameters: Any) -> Any:
        kernel = jnp.exp(parameters["variance"]) * tinygp.kernels.ExpSquared(jnp.exp(parameters["scale"]))
        return tinygp.GaussianProcess(kernel, x, diag=jnp.exp(parameters["noise"]), solver=Solver)

    @jax.jit
    def value(parameters: Any) -> Any:
        return -process(parameters).log_probability(y)

    @jax.jit
    def predicted(parameters: Any) -> Any:
        conditioned = process(parameters).condition(y, jnp.linspace(0, 4, 7)).gp
        return conditioned.mean, conditioned.variance

    parameters = {"variance": 0.1, "scale": -0.5, "noise": -2.0}
    many = jax.tree.map(lambda p: p + jnp.arange(3) / 10, parameters)
    mapped = jax.vmap(jax.value_and_grad(value))(many)
    return jax.value_and_grad(value)(parameters), predicted(parameters), mapped


def numpyro(functions: Functions) -> Any:
    """Density of NumPyro's model and its gradient, and a chain of Hamiltonian Monte Carlo."""
    import numpyro
    from numpyro import distributions
    from numpyro.infer import MCMC, NUTS
    from numpyro.infer.util import log_density

    x, y = data()

    def model() -> None:
        variance = numpyro.sample("variance", distributions.LogNormal(0.0, 1.0))
        scale = numpyro.sample("scale", distributions.LogNormal(-0.5, 1.0))
        k = variance * jnp.exp(-0.5 * ((x[:, None] - x) / scale) ** 2) + 0.1 * jnp.eye(len(x))
        factor = functions.cholesky(k)
        numpyro.sample("y", distributions.MultivariateNormal(0.0, scale_tril=factor), obs=y)

    def density(parameters: Any) -> Any:
        return log_density(model, (), {}, parameters)[0]

    parameters = {"variance": jnp.float64(0.8), "scale": jnp.float64(0.6)}
    chain = MCMC(NUTS(model, max_tree_depth=3), num_warmup=3, num_samples=3, progress_bar=False)
    chain.run(jax.random.key(0))
    return jax.jit(jax.value_and_grad(density))(parameters), chain.get_samples()


PROGRAMS: dict[str, Callable[[Functions], Any]] = {"tinygp": tinygp, "numpyro": numpyro}
