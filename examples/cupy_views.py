"""
Strided views of CuPy arrays
============================

Rows, columns, blocks and transposes of a larger array go into a call as views. The kernels read them in
place, and write the result into a view of another array. No copy is made. Elements outside of the views are
neither read nor written.

Without CuPy and a GPU the same script runs on NumPy arrays.
"""

import pyblasgpu as pb

if pb.backend_status().backend == "cuda":
    import cupy as xp
else:
    import numpy as xp

    print("no GPU here: NumPy arrays stand in for CuPy's")

# %%
# A block of a larger array, and the transpose of another one. Both are views: `base` is the array that owns
# the memory.

rng = xp.random.default_rng(0)
large = rng.standard_normal((600, 500))
block = large[100:400, :200]
other = rng.standard_normal((200, 300)).T[:, 20:170]
assert block.base is large
assert other.shape == (300, 150)

# %%
# The product goes into a block of an array that is there already. ``trans_a="T"`` transposes without a
# copy, too.

result = xp.full((300, 400), -1.0)
target = result[50:250, 100:250]
pb.gemm(block, other, trans_a="T", alpha=0.5, out=target)

assert xp.allclose(target, 0.5 * block.T @ other)
assert bool((result[:50] == -1).all()) and bool((result[:, :100] == -1).all())

# %%
# Leading dimensions are a batch. Here every second matrix of a stack is multiplied by the same matrix.

stack = rng.standard_normal((20, 64, 64))
products = pb.gemm(stack[::2], stack[0])
assert products.shape == (10, 64, 64)
assert xp.allclose(products, stack[::2] @ stack[0])

print("products of views:", target.shape, products.shape)
