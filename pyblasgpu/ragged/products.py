"""Products of unequal sizes, C := alpha A B + beta C each, in a launch for each layout that is among them.

A block finds its product and its tile in a table, which is made here and copied in one transfer. Products of
long k begin first, so that the last blocks are short ones. A product of matrices without neighbours in memory
is a call of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..dispatch import leaf
from ..gpu import launch, tables, workspace
from ..gpu.build.compile import KernelSource
from ..gpu.device import Device, current
from ..kernels import compile_ahead
from ..kernels.common.options import options_of
from ..kernels.common.problem_table import ROW_WORDS
from ..kernels.gemm.grouped import STEM, TILES, GemmGrouped, source
from ..routines.level3 import gemm
from ..types import Dtype
from .matrices import Matrices, Table

__all__ = ["Prepared", "Products"]

#: Elements that large tiles may compute for each of small ones: they read half as much for a product.
MOST_WASTE = 1.5


class Products(NamedTuple):
    """Products of one dtype: A m x k, B k x n and C m x n, op() applied, and the scalars of each.

    Attributes
    ----------
    a, b, c : Matrices
    alpha, beta : numpy.ndarray, shape (n,)
    """

    a: Matrices
    b: Matrices
    c: Matrices
    alpha: np.ndarray
    beta: np.ndarray

    @classmethod
    def of(cls, a: Matrices, b: Matrices, c: Matrices, alpha: np.ndarray, beta: np.ndarray) -> Products:
        """Return the products of a call whose arrays are those of all A, of all B, and of all C."""
        a, b, c = (each.numbered(place * len(alpha)) for place, each in enumerate((a, b, c)))
        return cls(a, b, c, alpha, beta)

    @property
    def depths(self) -> np.ndarray:
        """Extent k of each."""
        return self.a.cols

    def take(self, which: np.ndarray) -> Products:
        """Return the products that an index or a mask selects."""
        a, b, c, *others = self
        return Products(a.take(which), b.take(which), c.take(which), *(each[which] for each in others))


class _Launch(NamedTuple):
    """A launch but for addresses.

    Attributes
    ----------
    scalars, problems, owners : int
        Distances of its parts in the table.
    numbers : numpy.ndarray of int64, shape (n, 3)
        The places of A, B and C among the arrays of the call.
    """

    source: KernelSource
    blocks: int
    scalars: int
    problems: int
    owners: int
    numbers: np.ndarray


class Prepared:
    """Launches of products, at any addresses that are multiples of an element's size.

    Parameters
    ----------
    products : Products
    dtype : Dtype
    device : int

    Attributes
    ----------
    is_movable : bool
        Whether it may run at other addresses: no product is a call of its own.
    """

    def __init__(self, products: Products, dtype: Dtype, device: int):
        self.dtype, self.device = dtype, device
        products, is_served = _by_columns(_with_work(products), dtype.itemsize)
        self._alone, table = products.take(~is_served), Table()
        self.is_movable = bool(is_served.all())
        self._launches = list(_launches(products.take(is_served), dtype, device, table))
        self._table = table.bytes()
        self._kernels: list[launch.Kernel] | None = None

    def run(self, pointers: np.ndarray, stream: int) -> None:
        """Enqueue the products with the arrays of the call at `pointers`; the device's context is current."""
        for i in range(len(self._alone.alpha)):
            _run_alone(self._alone, i, self.dtype, self.device, stream)
        if not self._launches:
            return
        if self._kernels is None:
            compile_ahead.ensure_compiled([each.source for each in self._launches], self.device)
            self._kernels = [launch.kernel(each.source, self.device) for each in self._launches]
        table, origins = self._table.copy(), []
        for each in self._launches:
            at = pointers[each.numbers]
            origins.append(int(at[0, 2]))
            size = len(at) * ROW_WORDS * 4
            rows = table[each.problems : each.problems + size].view(np.int64).reshape(len(at), -1)
            rows[:, :3] = (at - origins[-1]) // self.dtype.real_size
        room = workspace.take(table.nbytes, self.device, stream)
        try:
            tables.send(table, room.address, stream)
            for kernel, each, origin in zip(self._kernels, self._launches, origins, strict=True):
                parts = (room.address + at for at in (each.scalars, each.problems, each.owners))
                kernel.launch((each.blocks, 1, 1), stream, (origin, *parts), (), ())
        finally:
            workspace.give(room)


def _with_work(products: Products) -> Products:
    """Return the products that change something. Where A B counts for nothing, k is 0, so that neither is
    read. alpha is a zero that leaves beta C as it is.
    """
    a, b, c, alpha, beta = products
    is_scaled = (alpha == 0) | (products.depths == 0)
    has_work = (c.rows > 0) & (c.cols > 0) & ~(is_scaled & (beta == 1))
    if has_work.all() and not is_scaled.any():
        return products
    nothing = [c._replace(shapes=c.shapes * kept) for kept in ([1, 0], [0, 1])]
    a, b = (x.replaced(is_scaled, other) for x, other in zip((a, b), nothing, strict=True))
    alpha = np.where(is_scaled, np.where(beta == 0, 0.0, -0.0), alpha)
    return Products(a, b, c, alpha, beta).take(has_work)


def _by_columns(products: Products, itemsize: int) -> tuple[Products, np.ndarray]:
    """Return the products with each C by columns, transposed if need be, and those that the kernel serves."""
    a, b, c, alpha, beta = products
    flips, everywhere = ~c.by_columns(itemsize), np.ones(len(alpha), bool)
    a, b, c = (x.transposed(flips) for x in (a, b, c))
    a, b = a.replaced(flips, b), b.replaced(flips, a)
    readable = [
        x.by_columns(itemsize) | x.transposed(everywhere).by_columns(itemsize) | (a.cols == 0) for x in (a, b)
    ]
    return Products(a, b, c, alpha, beta), c.by_columns(itemsize) & readable[0] & readable[1]


def _run_alone(products: Products, i: int, dtype: Dtype, device: int, stream: int) -> None:
    """Enqueue a product as a call of its own."""
    a, b, c = (x.operand(i, dtype, device) for x in products[:3])
    alpha, beta = products.alpha[i].item(), products.beta[i].item()
    launches = gemm.launch_list(alpha, a, b, beta, c)
    if launches is not None:
        launches.run([a.pointer, b.pointer, c.pointer], alpha, beta, stream=stream)


def _launches(products: Products, dtype: Dtype, device: int, table: Table) -> Iterator[_Launch]:
    """Yield a launch for each layout and conjugation, their rows and owners added to the table."""
    itemsize = dtype.itemsize
    trans_a, trans_b = (~x.by_columns(itemsize) & (x.shapes > 0).all(axis=1) for x in products[:2])
    conj = (products.a.conj != products.b.conj) & dtype.is_complex
    kinds = trans_a * 4 + trans_b * 2 + conj
    for kind in np.unique(kinds):
        which = np.flatnonzero(kinds == kind)
        which = which[np.argsort(-products.depths[which], kind="stable")]
        layout, shapes = (bool(kind & 4), bool(kind & 2)), products.c.shapes[which]
        config = _config(dtype, layout, shapes, current(device))
        yield _launch(products.take(which), config, bool(kind & 1), table)


def _config(dtype: Dtype, layout: tuple[bool, bool], shapes: np.ndarray, device: Device) -> GemmGrouped:
    """Return the Config for products of this layout; `shapes` are those of C.

    Tiles are large where little of them is beyond the edges, and they fill the device.
    """
    fixed: GemmGrouped = leaf.fixed(STEM, dtype.letter, device).on(device)
    small, large = (replace(fixed, BLK=tile, trans_a=layout[0], trans_b=layout[1]) for tile in TILES)
    few, many = (int(config.blocks(*shapes.T).sum()) for config in (large, small))
    is_wasteful = few * large.BLK**2 > MOST_WASTE * many * small.BLK**2
    return small if is_wasteful or few < device.sm_count else large


def _launch(products: Products, config: GemmGrouped, conj: bool, table: Table) -> _Launch:
    a, b, c, alpha, beta = products
    facts = config.dtype_facts
    blocks = config.blocks(c.rows, c.cols)
    rows = np.zeros((len(alpha), ROW_WORDS // 2), np.int64)
    for place, x in enumerate((a, b, c)):
        along = config.trans_a if x is a else config.trans_b if x is b else False
        rows[:, 3 + place] = x.strides[:, 0 if along else 1]
    words = rows.view(np.int32)
    words[:, 12], words[:, 13], words[:, 14] = c.rows, c.cols, a.cols
    words[:, 15] = np.where(a.conj & facts.is_complex, options_of(conj=True), 0)
    words[:, 16] = np.cumsum(blocks) - blocks
    scalars = np.stack((alpha.real, alpha.imag, beta.real, beta.imag), 1).astype(facts.real)
    owners = np.repeat(np.arange(len(alpha), dtype=np.int32), blocks)
    places = table.add(scalars), table.add(rows), table.add(owners)
    numbers = np.stack((a.numbers, b.numbers, c.numbers), 1)
    return _Launch(source(config, conj), len(owners), *places, numbers)
