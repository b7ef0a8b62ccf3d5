"""
Whitening of PyTorch tensors
============================

Samples are made uncorrelated by the inverse of the Cholesky factor of their covariance. The inverse is never
formed: a triangular solve in place does it.

Without a GPU the same script runs on PyTorch's host tensors.
"""

import pyblasgpu as pb

try:
    import torch
except ImportError:
    print("skipped: this example needs PyTorch")
    raise SystemExit from None

device = "cuda" if torch.cuda.is_available() else "cpu"

# %%
# Samples in rows, with a covariance that is far from the identity.

torch.manual_seed(0)
samples = torch.randn(20000, 64, dtype=torch.float64, device=device)
mixing = torch.eye(64, dtype=torch.float64, device=device) + 0.1 * torch.randn_like(samples[:64])
samples = samples @ mixing + 3

# %%
# `syrk` computes the covariance, one triangle of it, and `cholesky` reads that triangle alone.

centred = samples - samples.mean(0)
covariance = pb.syrk(centred, alpha=1 / (len(samples) - 1), trans="T", lower=True)
factor = pb.linalg.cholesky(covariance, lower=True, overwrite_a=True)

# %%
# w Lᵀ = x is solved from the right, in the memory of the samples.

white = pb.trsm(factor, centred, side="R", lower=True, trans="T", out=centred)

identity = pb.syrk(white, alpha=1 / (len(white) - 1), trans="T", lower=True)
error = (identity - torch.eye(64, dtype=torch.float64, device=device)).tril().abs().max()
assert float(error) < 1e-10
print(f"whitened {len(white)} samples of {white.shape[1]} numbers")
