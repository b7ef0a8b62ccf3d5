"""
A Gaussian process trained in PyTorch
=====================================

Length scale, variance and noise are found by gradients of the likelihood. `inv_quad_logdet` has both of its
terms, by one Cholesky factor. It runs on the GPU if PyTorch has one, else on tensors in host memory.
"""

try:
    import torch
except ImportError:
    print("skipped: this example needs PyTorch")
    raise SystemExit from None
from pyblasgpu.torch import cholesky, cholesky_solve, inv_quad_logdet

torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
x = torch.rand(300, 1) * 4
y = torch.sin(3 * x) + 0.1 * torch.randn(300, 1)
length, variance, noise = logarithms = [torch.zeros((), requires_grad=True) for _ in range(3)]


def kernel(one, other):
    return variance.exp() * torch.exp(-0.5 * ((one - other.mT) / length.exp()) ** 2)


optimizer = torch.optim.Adam(logarithms, lr=0.1)
for _ in range(60):
    covariance = kernel(x, x) + noise.exp() * torch.eye(len(x))
    loss = 0.5 * sum(inv_quad_logdet(covariance, y)) / len(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
# The mean between the points.
new = torch.linspace(0.2, 3.8, 50)[:, None]
mean = kernel(new, x) @ cholesky_solve(y, cholesky(covariance))
assert (mean - torch.sin(3 * new)).abs().max() < 0.2
print(f"a Gaussian process of {len(x)} points, noise {(noise / 2).exp().item():.2f}")
