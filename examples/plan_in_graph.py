"""
A plan in a CUDA graph
======================

A plan is a call that is checked, chosen and compiled beforehand. Calling it only launches its kernels, so
CUDA can capture it in a graph. Small products cost the host less so.

A plan needs arrays in device memory.
"""

import pyblasgpu as pb

try:
    pb.backend_status("cuda")
    import cupy as cp
except (pb.errors.BackendUnavailable, ImportError) as missing:
    print(f"skipped: a plan needs a GPU and CuPy ({missing})")
    raise SystemExit from None

# %%
# The plan is made for arrays of these shapes, strides and dtypes. alpha, beta and the flags are the plan's.

rng = cp.random.default_rng(0)
a, b = rng.standard_normal((64, 64)), rng.standard_normal((64, 64))
y, out = cp.empty((64, 64)), cp.empty((64, 64))
first = pb.plan_gemm(a, b, y)
second = pb.plan_gemm(y, b, out, alpha=2.0)

# %%
# Two products in a row, captured once and replayed with new contents of `a`.

stream = cp.cuda.Stream(non_blocking=True)
cp.cuda.get_current_stream().synchronize()  # the arrays are filled
with stream:
    stream.begin_capture()
    first(a, b, y)
    second(y, b, out)
    graph = stream.end_capture()
    for _ in range(3):
        a += 1
        graph.launch(stream)
stream.synchronize()

assert cp.allclose(out, 2 * a @ b @ b)
print("a graph of two plans was replayed three times; workspace", first.workspace + second.workspace, "bytes")
