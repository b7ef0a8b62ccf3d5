"""Launch lists of Level 1 that compute with NumPy, at the addresses of a fake device."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from fake_routines import elements


def sizes(x):
    """What ASUM adds and IAMAX compares."""
    return abs(x.real) + abs(x.imag)


def computed(alpha, beta, operation, conj, operands) -> None:
    """What the launches of an operation leave."""
    *vectors, v = (elements(operand) for operand in operands)
    x = vectors[0] if vectors else v
    if operation in ("scal", "copy"):
        v[...] = alpha * x
    elif operation == "axpy":
        v[...] = alpha * x + (vectors[1] if len(vectors) == 2 else v)
    elif operation == "swap":
        x[...], v[...] = v.copy(), x.copy()
    elif operation == "rot":
        x[...], v[...] = alpha.real * x + alpha.imag * v, beta.real * x + beta.imag * v
    elif operation == "dot":
        v[...] = ((x.conj() if conj else x) * vectors[1]).sum(1, keepdims=True)
    elif operation == "iamax":
        v[...] = sizes(x).argmax(1)[:, None] if x.size else -1
    elif operation == "nrm2":
        v[...] = np.linalg.norm(x, axis=1, keepdims=True)
    else:
        v[...] = sizes(x).sum(1, keepdims=True)


def level1_reduce(fake, grid, pointers, numbers) -> None:
    """Dot products of real vectors, a batch."""
    n, bits, incx, incy, stride_x, stride_y, stride_out = numbers
    config, batch = fake.source.config, grid[2]
    assert grid == (config.grid(n), 1, batch) and not bits and dict(fake.source.flags)["operation"] == "dot"
    x = fake.view(pointers[0], n, 1, incx, 1, batch, stride_x)
    y = fake.view(pointers[1], n, 1, incy, 1, batch, stride_y)
    fake.view(pointers[4], 1, 1, 1, 1, batch, stride_out)[:, 0] = (x * y).sum(1)


class Launches:
    """A launch list that computes with NumPy at the addresses of a run."""

    def __init__(self, operation, conj, operands):
        self.operation, self.conj, self.operands = operation, conj, operands

    def bound(self, alpha, beta=0):
        return lambda bases, stream: self.run(bases, alpha, beta, stream=stream)

    def run(self, bases, alpha, beta=0, *, stream):
        placed = [operand._replace(pointer=base) for operand, base in zip(self.operands, bases, strict=True)]
        computed(alpha, beta, self.operation, self.conj, placed)


LEVEL1 = SimpleNamespace(
    launch_list=lambda operation, alpha, *operands: Launches(operation, False, operands),
    reduce_launch_list=lambda operation, conj, *operands: Launches(operation, conj, operands),
)
