"""
TRSM in place on a PyTorch stream
=================================

A triangular system is solved in the memory of its right-hand sides, on a stream of PyTorch's. The call
returns at once. What PyTorch queues on that stream afterwards sees the solution.

Without a GPU the same call runs on PyTorch's host tensors, without a stream.
"""

import contextlib

import pyblasgpu as pb

try:
    import torch
except ImportError:
    print("skipped: this example needs PyTorch")
    raise SystemExit from None

on_gpu = torch.cuda.is_available()
device = "cuda" if on_gpu else "cpu"
if not on_gpu:
    print("no GPU here: host tensors, no stream")

# %%
# A lower triangle with a large diagonal. Elements above the diagonal are never read, so they may be NaN.

torch.manual_seed(0)
n, columns = 500, 40
kind = {"dtype": torch.float64, "device": device}
lower = torch.tril(torch.randn(n, n, **kind)) / n + 2 * torch.eye(n, **kind)
above = torch.triu(torch.ones(n, n, device=device, dtype=torch.bool), 1)
a = lower.masked_fill(above, float("nan"))
x = torch.randn(n, columns, **kind)
b = lower @ x

# %%
# Within ``torch.cuda.stream`` the library takes PyTorch's current stream. ``out=b`` solves in place: `b`
# becomes x.

stream = torch.cuda.Stream() if on_gpu else None
if stream is not None:
    stream.wait_stream(torch.cuda.current_stream())  # b is made before the call reads it
with torch.cuda.stream(stream) if stream is not None else contextlib.nullcontext():
    solution = pb.trsm(a, b, lower=True, out=b)
    error = (b - x).abs().max()

# %%
# ``stream=`` names a stream for one call, as ``pb.trsm(a, b, lower=True, out=b, stream=stream)``.

assert solution is b
if stream is not None:
    stream.synchronize()
assert float(error) < 1e-12
print(f"solved {n} x {n} in place with {columns} right-hand sides, largest error {float(error):.1e}")
