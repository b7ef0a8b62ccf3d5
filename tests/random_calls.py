"""Random calls on a described device: the kernels that their launch lists name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from pyblasgpu.gpu.build.compile import KernelSource
from pyblasgpu.gpu.device import Device, stand_ins
from pyblasgpu.operands import Operand
from pyblasgpu.routines import level1
from pyblasgpu.routines.lapack import (
    determinants,
    gels,
    geqp3,
    geqrf,
    gesv,
    getrf,
    getri,
    getrs,
    lauum,
    lq,
    orgqr,
    ormqr,
    potrf,
    potri,
    potrs,
    sytrf,
    sytri,
    sytrs,
    trtri,
    trtrs,
)
from pyblasgpu.routines.level2 import gemv, ger, symv
from pyblasgpu.routines.level3 import gemm, gemmtr, symm, syr2k, syrk, trmm, trsm
from pyblasgpu.types import DTYPES, Diag, Dtype, Side, Trans, Uplo

#: Those that are drawn, the frequent ones more often.
ROUTINES = (
    *["gemm"] * 4, *["trmm", "trsm"] * 2, "symm", "syrk", "syr2k", "gemmtr", "gemv", "ger", "symv", "level1",
    "reduce", "potrf", "potrs", "potri", "lauum", "trtri", "trtrs", "getrf", "determinants", "gesv", "getrs",
    "getri", "geqrf", "orgqr", "ormqr", "gelqf", "gels", "geqp3", "sytrf", "sytrs", "sytri",
)  # fmt: skip
LARGEST_OF_BATCH = 300  # rows or columns
LARGEST_AT_ONCE = 64  # rows of matrices whose batch is factored at once, however many they are
ONE_BY_ONE = 50  # larger ones, of which each is factored by the same kernels


def on(device: Device, monkeypatch) -> None:
    """Have all routines take `device` for the current one."""
    monkeypatch.setitem(stand_ins, 0, device)


class Call(NamedTuple):
    """A call as it was drawn, and the kernels that it launches."""

    what: tuple
    kernels: tuple[KernelSource, ...]


def calls(count: int, seed: int, only: tuple[str, ...] = ROUTINES) -> Iterator[Call]:
    """So many random calls, the same for the same seed."""
    drawn = _Draw(random.Random(seed), only)
    for _ in range(count):
        yield drawn.call()


class _Draw:
    def __init__(self, chance: random.Random, only: tuple[str, ...]):
        self._chance, self._only = chance, only
        self._dtype, self._batch = DTYPES["s"], 1

    def call(self) -> Call:
        chance = self._chance
        name = chance.choice(self._only)
        self._dtype = DTYPES[chance.choice("sdcz")]
        self._batch = chance.choice([chance.randint(2, 1000), 10_000]) if chance.random() < 0.2 else 1
        m, n, k = (self._extent() for _ in range(3))
        launches = getattr(self, name)(m, n, k)
        kernels = tuple(entry.source for entry in launches.entries) if launches else ()
        return Call((name, self._dtype.letter, self._batch, m, n, k), kernels)

    def _extent(self) -> int:
        chance = self._chance
        kinds = (
            chance.randint(1, 80),
            chance.randint(1, 600),
            int(2 ** chance.uniform(0, 13)),
            1 << chance.randint(0, 12),
            chance.randint(1, 4096),
        )
        extent = chance.choice(kinds)
        return min(extent, LARGEST_OF_BATCH) if self._batch > 1 else extent

    def _matrix(self, rows: int, cols: int, out: bool = False, dtype: Dtype | None = None) -> Operand:
        """By rows or by columns, sometimes with steps, with any leading stride and alignment."""
        chance, dtype = self._chance, dtype or self._dtype
        by_rows, pad = chance.random() < 0.4, chance.choice([0, 0, 0, 1, 2, 3, 4, 8, 16])
        step = 1 if chance.random() < 0.93 else chance.choice([2, 3] if out else [2, 3, -1])
        lead = (cols if by_rows else rows) * abs(step) + pad
        strides = (lead, step) if by_rows else (step, lead)
        size = dtype.itemsize // dtype.reals_per_element
        pointer = (1 << 30) + (0 if chance.random() < 0.7 else chance.choice([1, 2, 3]) * size)
        conj = not out and dtype.is_complex and chance.random() < 0.4
        apart = 0 if not out and chance.random() < 0.05 else lead * (rows if by_rows else cols) + pad
        return Operand(pointer, rows, cols, *strides, dtype, conj, self._batch, apart)

    def _limit_batch(self, rows: int) -> None:
        if rows > LARGEST_AT_ONCE:
            self._batch = min(self._batch, ONE_BY_ONE)

    def _vector(self, count: int) -> Operand:
        return self._matrix(count, 1)

    def _beta(self) -> int:
        return self._chance.choice([0, 2])

    def _uplo(self) -> Uplo:
        return self._chance.choice(list(Uplo))

    def _hermitian(self) -> bool:
        return self._dtype.is_complex and self._chance.random() < 0.5

    def gemm(self, m, n, k):
        named = {"c": "3m", "z": "3m", "s": "tensor"}.get(self._dtype.letter)
        method = named if self._chance.random() < 0.1 else None
        operands = self._matrix(m, k), self._matrix(k, n), self._beta(), self._matrix(m, n, out=True)
        return gemm.launch_list(2, *operands, method)

    def _triangle(self, routine, m, n):
        side, diag = self._chance.choice(list(Side)), self._chance.choice(list(Diag))
        order = m if side is Side.LEFT else n
        operands = self._matrix(order, order), self._matrix(m, n, out=True)
        return routine.launch_list(2, *operands, side=side, uplo=self._uplo(), diag=diag)

    def trmm(self, m, n, k):
        return self._triangle(trmm, m, n)

    def trsm(self, m, n, k):
        return self._triangle(trsm, m, n)

    def symm(self, m, n, k):
        self._batch, side = 1, self._chance.choice(list(Side))
        order = m if side is Side.LEFT else n
        a = self._matrix(order, order)._replace(conj=False)
        b = self._matrix(m, n)._replace(conj=False)
        flags = {"side": side, "uplo": self._uplo(), "hermitian": self._hermitian()}
        return symm.launch_list(2, a, b, self._beta(), self._matrix(m, n, out=True), **flags)

    def syrk(self, n, _, k):
        flags = {"uplo": self._uplo(), "hermitian": self._hermitian()}
        return syrk.launch_list(2, self._matrix(n, k), self._beta(), self._matrix(n, n, out=True), **flags)

    def syr2k(self, n, _, k):
        a, b = (self._matrix(n, k)._replace(conj=False) for _ in range(2))
        flags = {"uplo": self._uplo(), "hermitian": self._hermitian()}
        return syr2k.launch_list(2, a, b, self._beta(), self._matrix(n, n, out=True), **flags)

    def gemmtr(self, n, _, k):
        operands = self._matrix(n, k), self._matrix(k, n), self._beta(), self._matrix(n, n, out=True)
        return gemmtr.launch_list(2, *operands, uplo=self._uplo())

    def gemv(self, m, n, _):
        self._batch = 1
        a, x, y = self._matrix(m, n), self._vector(n), self._matrix(m, 1, out=True)
        return gemv.launch_list(2, a, x._replace(conj=False), self._beta(), y)

    def ger(self, m, n, _):
        self._batch = 1
        x, y = self._vector(m)._replace(conj=False), self._vector(n)
        return ger.launch_list(2, x, y, self._matrix(m, n, out=True))

    def symv(self, n, *_):
        self._batch = 1
        a, x = (each._replace(conj=False) for each in (self._matrix(n, n), self._vector(n)))
        y, flags = self._matrix(n, 1, out=True), {"uplo": self._uplo(), "hermitian": self._hermitian()}
        return symv.launch_list(2, a, x, self._beta(), y, **flags)

    def level1(self, n, *_):
        self._batch, operation = 1, self._chance.choice(["copy", "scal", "axpy", "swap", "rot"])
        count = {"axpy": 3}.get(operation, 2)
        vectors = [self._matrix(n, 1, out=True) for _ in range(count)]
        return level1.launch_list(operation, 2, *vectors)

    def reduce(self, n, *_):
        self._batch = 1
        x, y = (self._vector(n)._replace(conj=False) for _ in range(2))
        out = Operand(1 << 30, 1, 1, 1, 1, self._dtype)
        return level1.reduce_launch_list("dot", self._hermitian(), x, y, out)

    def _facts(self, count: int = 1) -> Operand:
        """The places of pivots or of what LAPACK returns."""
        apart = max(count, 4)
        return Operand(1 << 29, count, 1, 1, apart, self._dtype, False, self._batch, apart)

    def potrf(self, n, *_):
        return potrf.launch_list(self._facts(), self._matrix(n, n, out=True), uplo=self._uplo())

    def potrs(self, n, r, _):
        operands = self._matrix(n, n)._replace(conj=False), self._matrix(n, r, out=True)
        return potrs.launch_list(*operands, uplo=self._uplo())

    def potri(self, n, *_):
        return potri.launch_list(self._facts(), self._matrix(n, n, out=True), uplo=self._uplo())

    def trtrs(self, n, r, _):
        info, t, b, x = self._facts(), self._matrix(n, n), self._matrix(n, r), self._matrix(n, r, out=True)
        return trtrs.apart_launch_list(info, t, b, x, uplo=self._uplo(), diag=Diag.NON_UNIT)

    def lauum(self, n, *_):
        return lauum.launch_list(self._matrix(n, n, out=True), uplo=self._uplo())

    def trtri(self, n, *_):
        diag = self._chance.choice(list(Diag))
        return trtri.launch_list(self._facts(), self._matrix(n, n, out=True), uplo=self._uplo(), diag=diag)

    def getrf(self, m, n, _):
        self._limit_batch(m)
        return getrf.launch_list(self._facts(min(m, n)), self._facts(), self._matrix(m, n, out=True))

    def determinants(self, n, *_):
        lu = self._matrix(n, n)
        outputs = self._facts(1), self._facts(1)
        if self._chance.random() < 0.5:
            return determinants.determinants_launch_list(outputs[0], self._facts(n), lu)
        return determinants.signs_launch_list(*outputs, self._facts(n), lu)

    def gesv(self, n, r, _):
        self._limit_batch(n)
        info, a = self._facts(), self._matrix(n, n)
        if self._chance.random() < 0.5:
            return gesv.inverse_launch_list(info, a, self._matrix(n, n, out=True))
        return gesv.solution_launch_list(info, a, self._matrix(n, r), self._matrix(n, r, out=True))

    def getrs(self, n, r, _):
        lu, b = self._matrix(n, n)._replace(conj=False), self._matrix(n, r, out=True)
        return getrs.launch_list(self._facts(n), lu, b, trans=self._chance.choice(list(Trans)[:3]))

    def getri(self, n, *_):
        return getri.launch_list(self._facts(), self._facts(n), self._matrix(n, n, out=True))

    def sytrf(self, n, *_):
        flags = {"uplo": self._uplo(), "hermitian": self._hermitian()}
        return sytrf.launch_list(self._facts(n), self._facts(), self._matrix(n, n, out=True), **flags)

    def sytri(self, n, *_):
        flags = {"uplo": self._uplo(), "hermitian": self._hermitian()}
        return sytri.launch_list(self._facts(), self._facts(n), self._matrix(n, n, out=True), **flags)

    def sytrs(self, n, r, _):
        flags = {"uplo": self._uplo(), "hermitian": self._hermitian()}
        ldu = self._matrix(n, n)._replace(conj=False)
        return sytrs.launch_list(self._facts(n), ldu, self._matrix(n, r, out=True), **flags)

    def geqrf(self, m, n, _):
        return geqrf.launch_list(self._facts(min(m, n)), self._matrix(m, n, out=True))

    def geqp3(self, m, n, _):
        return geqp3.launch_list(self._facts(n), self._facts(min(m, n)), self._matrix(m, n, out=True))

    def gelqf(self, m, n, _):
        return lq.factors_launch_list(self._facts(min(m, n)), self._matrix(m, n, out=True))

    def gels(self, m, n, columns):
        a, b = self._matrix(m, n)._replace(conj=False), self._matrix(max(m, n), columns, out=True)
        trans = self._chance.choice([Trans.NO, Trans.CONJ])
        return gels.solution_launch_list(self._facts(), self._facts(min(m, n)), a, b, trans=trans)

    def orgqr(self, *extents):
        k, n, m = sorted(extents)
        return orgqr.launch_list(self._facts(k), self._matrix(m, n, out=True))

    def ormqr(self, order, others, k):
        k, side = min(order, k), self._chance.choice(list(Side))
        shape = (order, others) if side is Side.LEFT else (others, order)
        reflectors = self._matrix(order, k)._replace(conj=False)
        trans = self._chance.choice([Trans.NO, Trans.CONJ])
        return ormqr.launch_list(
            self._facts(k), reflectors, self._matrix(*shape, out=True), side=side, trans=trans
        )
