"""
A Gaussian process trained in JAX
=================================

Length scale, variance and noise are found by gradients of the likelihood. `inv_quad_logdet` has both of its
terms, by one Cholesky factor. It runs on the GPU if JAX has one, else on the processor.
"""

try:
    import jax
except ImportError:
    print("skipped: this example needs JAX")
    raise SystemExit from None
from pyblasgpu.jax import cho_factor, cho_solve, inv_quad_logdet

jnp, keys = jax.numpy, jax.random.split(jax.random.key(0))
x = 4 * jax.random.uniform(keys[0], (300,))
y = jnp.sin(3 * x) + 0.1 * jax.random.normal(keys[1], (300,))


def kernel(p, one, other):
    return jnp.exp(p["variance"] - 0.5 * ((one[:, None] - other) / jnp.exp(p["length"])) ** 2)


def covariance(p):
    return kernel(p, x, x) + jnp.exp(p["noise"]) * jnp.eye(len(x))


gradient = jax.jit(jax.grad(lambda p: 0.5 * sum(inv_quad_logdet(covariance(p), y)) / len(x)))
logarithms = speed = {"length": 0.0, "variance": 0.0, "noise": 0.0}
for _ in range(60):
    speed = jax.tree.map(lambda v, g: 0.9 * v - 0.1 * g, speed, gradient(logarithms))
    logarithms = jax.tree.map(jnp.add, logarithms, speed)

# %%
# The mean between the points.
new = jnp.linspace(0.2, 3.8, 50)
mean = kernel(logarithms, new, x) @ cho_solve(cho_factor(covariance(logarithms)), y)
assert float(jnp.abs(mean - jnp.sin(3 * new)).max()) < 0.2
print(f"a Gaussian process of {len(x)} points, noise {float(jnp.exp(logarithms['noise'] / 2)):.2f}")
