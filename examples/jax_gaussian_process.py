"""
A Gaussian process trained in JAX
=================================

The length scale, the variance and the noise of a Gaussian process are found by gradients of its likelihood.
`inv_quad_logdet` has both terms of the likelihood; its gradient is an inverse from the Cholesky factor.

It runs on the GPU if JAX has one, else on the processor.
"""

try:
    import jax
except ImportError:
    print("skipped: this example needs JAX")
    raise SystemExit from None

import jax.numpy as jnp

from pyblasgpu.jax import cho_factor, cho_solve, inv_quad_logdet

jax.config.update("jax_enable_x64", True)

# %%
# Points of a noisy function, and the logarithms of what is to be found.

keys = jax.random.split(jax.random.key(0))
x = jax.random.uniform(keys[0], (300,)) * 4
y = jnp.sin(3 * x) + 0.1 * jax.random.normal(keys[1], (300,))
parameters = {"length": 0.0, "variance": 0.0, "noise": 0.0}


def kernel(p, one, other):
    return jnp.exp(p["variance"] - 0.5 * ((one[:, None] - other) / jnp.exp(p["length"])) ** 2)


def covariance(p):
    return kernel(p, x, x) + jnp.exp(p["noise"]) * jnp.eye(len(x))


# %%
# Each step factors the covariance once.


@jax.jit
def step(p, speed):
    def loss(p):
        return 0.5 * sum(inv_quad_logdet(covariance(p), y)) / len(x)

    speed = jax.tree.map(lambda v, g: 0.9 * v - 0.1 * g, speed, jax.grad(loss)(p))
    return jax.tree.map(jnp.add, p, speed), speed


speed = jax.tree.map(lambda _: 0.0, parameters)
for _ in range(60):
    parameters, speed = step(parameters, speed)

# %%
# The mean between the points, by the factor of the last covariance.

new = jnp.linspace(0.2, 3.8, 50)
mean = kernel(parameters, new, x) @ cho_solve(cho_factor(covariance(parameters)), y)
assert float(jnp.abs(mean - jnp.sin(3 * new)).max()) < 0.2
print(f"a Gaussian process of {len(x)} points, noise {float(jnp.exp(parameters['noise'] / 2)):.2f}")
