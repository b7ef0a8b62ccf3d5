"""
A Gaussian process trained in PyTorch
=====================================

The length scale, the variance and the noise of a Gaussian process are found by gradients of its likelihood.
`inv_quad_logdet` has both terms of the likelihood; its gradient is an inverse from the Cholesky factor.

It runs on the GPU if PyTorch has one, else on tensors in host memory.
"""

try:
    import torch
except ImportError:
    print("skipped: this example needs PyTorch")
    raise SystemExit from None

from pyblasgpu.torch import cholesky, cholesky_solve, inv_quad_logdet

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_default_dtype(torch.float64)
torch.set_default_device(device)
torch.manual_seed(0)

# %%
# Points of a noisy function, and the logarithms of what is to be found.

x = torch.rand(300, 1) * 4
y = torch.sin(3 * x) + 0.1 * torch.randn(300, 1)
length, variance, noise = parameters = [torch.zeros((), requires_grad=True) for _ in range(3)]


def kernel(one, other):
    return variance.exp() * torch.exp(-0.5 * ((one - other.mT) / length.exp()) ** 2)


def covariance():
    return kernel(x, x) + noise.exp() * torch.eye(len(x))


# %%
# Each step factors the covariance once.

optimizer = torch.optim.Adam(parameters, lr=0.1)
for _ in range(60):
    optimizer.zero_grad()
    quad, logdet = inv_quad_logdet(covariance(), y)
    loss = 0.5 * (quad + logdet) / len(x)
    loss.backward()
    optimizer.step()

# %%
# The mean between the points, by the factor of the last covariance.

with torch.no_grad():
    new = torch.linspace(0.2, 3.8, 50)[:, None]
    mean = kernel(new, x) @ cholesky_solve(y, cholesky(covariance()))
    deviation = float((noise / 2).exp())
assert float((mean - torch.sin(3 * new)).abs().max()) < 0.2
print(f"a Gaussian process of {len(x)} points, noise {deviation:.2f}")
