"""Routines computed with NumPy at the addresses of operands: launch lists of the device that is none."""

from __future__ import annotations

import ctypes
import importlib
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs

from pyblasgpu.operands import Operand
from pyblasgpu.types import Diag, Region, Trans, Uplo

__all__ = [
    "FACTORS",
    "STAND_INS",
    "Routines",
    "determinants",
    "elements",
    "factor_launch_list",
    "joined",
    "solve_at_once",
]

NO = Trans.NO


def elements(operand) -> np.ndarray:
    """The matrices of an operand, as a view of shape (batch, rows, cols)."""
    low, high = operand.span()
    if low == high:
        return np.empty((operand.batch, operand.rows, operand.cols), operand.dtype.name)
    memory = np.frombuffer((ctypes.c_char * (high - low)).from_address(low), operand.dtype.name)
    size = operand.dtype.itemsize
    view = np.ndarray(
        (operand.batch, operand.rows, operand.cols),
        operand.dtype.name,
        memory,
        operand.pointer - low,
        tuple(stride * size for stride in (operand.batch_stride, operand.row_stride, operand.col_stride)),
    )
    return view.conj() if operand.conj else view


def cpu(module: str = "level3") -> ModuleType:
    """What computes with NumPy arrays, imported at its first use."""
    return importlib.import_module(f"pyblasgpu.cpu.scipy.{module}")


class Routines:
    """Stand-ins of `pyblasgpu.routines`; each call is recorded."""

    def __init__(self):
        self.calls = []

    def launch_list(self, name):
        """What a row has as its launch list: what calls the stand-in with the addresses of the moment."""

        def prepare(alpha, *operands, **flags):
            scalars = [operand for operand in operands if not isinstance(operand, Operand)]
            fixed = [operand for operand in operands if isinstance(operand, Operand)]

            def run(bases, alpha, *beta, stream):
                placed = [operand._replace(pointer=base) for operand, base in zip(fixed, bases, strict=True)]
                # TRMM and TRSM have no beta
                arguments = (*placed[:-1], *beta, placed[-1]) if scalars else placed
                getattr(self, name)(alpha, *arguments, stream, **flags)

            def bound(*numbers):
                count = 1 + len(scalars)
                return lambda bases, stream: run(bases, *numbers[:count], stream=stream)

            return SimpleNamespace(
                run=run,
                bound=bound,
                uses_of=lambda slot: 2,
                source_region=Region.ALL,
                uses_workspace=False,
            )

        return prepare

    def gemm(self, alpha, a, b, beta, c, stream, *, method=None):
        self.calls.append((f"gemm {method}" if method else "gemm", stream, c.batch))
        assert not c.conj
        cpu().gemm(alpha, elements(a), elements(b), beta, elements(c), NO, NO)

    def trmm(self, *arguments, **flags):
        self._by_triangle("trmm", *arguments, **flags)

    def trsm(self, *arguments, **flags):
        self._by_triangle("trsm", *arguments, **flags)

    def _by_triangle(self, name, alpha, a, *rest, side, uplo, diag):
        *source, b, stream = rest
        self.calls.append((name, stream, b.batch))
        if source:
            elements(b)[...] = elements(*source)
        getattr(cpu(), name)(alpha, elements(a), elements(b), side, uplo, NO, diag)

    def symm(self, alpha, a, b, beta, c, stream, *, side, uplo, hermitian):
        self.calls.append(("symm", stream, c.batch))
        cpu().symm(alpha, elements(a), elements(b), beta, elements(c), side, uplo, hermitian)

    def syrk(self, alpha, a, beta, c, stream, *, uplo, hermitian, is_new_output):
        self.calls.append(("syrk", stream, c.batch))
        cpu().syrk(alpha, elements(a), beta, elements(c), uplo, NO, hermitian, is_new_output)

    def syr2k(self, alpha, a, b, beta, c, stream, *, uplo, hermitian, is_new_output):
        self.calls.append(("syr2k", stream, c.batch))
        cpu().syr2k(alpha, elements(a), elements(b), beta, elements(c), uplo, NO, hermitian, is_new_output)

    def gemmtr(self, alpha, a, b, beta, c, stream, *, uplo, is_new_output):
        self.calls.append(("gemmtr", stream, c.batch))
        cpu().gemmtr(alpha, elements(a), elements(b), beta, elements(c), uplo, NO, NO, is_new_output)

    def copy(self, alpha, a, c, stream):
        self.calls.append(("copy", stream, c.batch))
        elements(c)[...] = alpha * elements(a)


#: Of routines of LAPACK: who computes them, and how many of their first operands are integers.
FACTORS = {
    "potrf": ("cholesky", 1),
    "potri": ("cholesky", 1),
    "trtri": ("cholesky", 1),
    "potrs": ("cholesky", 0),
    "getrf": ("lu", 2),
    "getri": ("lu", 2),
    "getrs": ("lu", 1),
    "geqrf": ("qr", 0),
    "orgqr": ("qr", 0),
    "ormqr": ("qr", 0),
    "geqp3": ("qr", 1),
    "gelqf": ("lq", 0),
    "orglq": ("lq", 0),
    "ormlq": ("lq", 0),
    "laswp": ("lu", 1),
    "sytrf": ("ldl", 2),
    "sytrs": ("ldl", 1),
    "sytri": ("ldl", 2),
    "syevd": ("eigen", 1),
    "gesdd": ("eigen", 1),
}


def compute_factor(name, *held, **flags):
    """A routine of LAPACK, of elements of operands: an integer has the first four bytes of one."""
    module, count = FACTORS[name]
    integers = [np.ascontiguousarray(each).view(np.int32) for each in held[:count]]
    first = [each[..., :1].copy() for each in integers]
    getattr(cpu(module), name)(*first, *held[count:], **flags)
    for each, whole, values in zip(held, integers, first, strict=False):
        whole[..., :1] = values
        each[...] = whole.view(each.dtype)


def eigen_of_source(info, w, a, v, **flags):
    v[...] = a
    compute_factor("syevd", info, w, v, **flags)


def singular_of_source(info, s, u, vh, a, out, **flags):
    compute_factor("gesdd", info, s, u, vh, a, **flags)


def triplets_of_source(info, s, vh, v, a, u, **flags):
    """Whatever the right vectors are that singular values and vectors begin with."""
    assert v.shape[-1] == a.shape[-1] <= a.shape[-2]
    info[...] = 0
    u[...], s[..., 0], rows = np.linalg.svd(a, full_matrices=False)
    vh[...] = rows.reshape(vh.shape)


def factor_launch_list(name):
    """The launch list of a routine of LAPACK: what computes at the addresses of the moment."""

    def prepare(*operands, **flags):
        def run(bases, *_, stream):
            placed = (operand._replace(pointer=base) for operand, base in zip(operands, bases, strict=True))
            compute_factor(name, *map(elements, placed), **flags)

        return SimpleNamespace(
            run=run,
            bound=lambda *_: lambda bases, stream: run(bases, stream=stream),
            uses_of=lambda slot: 2,
            source_region=Region.ALL,
            uses_workspace=False,
        )

    return prepare


def stand_in(compute):
    """The launch list of ``compute(*matrices)``, which computes in the memory of its operands."""

    def prepare(*operands, **flags):
        def run(bases, stream):
            placed = (each._replace(pointer=base) for each, base in zip(operands, bases, strict=True))
            compute(*map(elements, placed), **flags)

        return SimpleNamespace(
            bound=lambda *_: run,
            uses_of=lambda slot: 2,
            run=lambda bases, *_, stream: run(bases, stream),
            source_region=Region.ALL,
            uses_workspace=False,
        )

    return prepare


def first_words(numbers):
    """The first int32 of each number, of matrices of one column."""
    return np.ascontiguousarray(numbers[..., 0]).view(np.int32)[..., :: numbers.itemsize // 4]


def determinants_of_factors(products, *matrices):
    *results, piv, lu = matrices
    diagonal = lu.diagonal(axis1=1, axis2=2)
    moved = first_words(piv) != np.arange(diagonal.shape[-1])
    for result, values in zip(results, determinants(diagonal, moved, products), strict=True):
        result[:, 0, 0] = values


def determinants(diagonal, moved, products):
    """Signs and logarithms of products along the last axis, or the products, in extended precision."""
    wide = diagonal.astype(np.clongdouble if np.iscomplexobj(diagonal) else np.longdouble)
    with np.errstate(all="ignore"):
        sign = np.prod(wide / abs(wide), -1) * (1 - 2 * (moved.sum(-1) % 2))
        logarithm = np.log(abs(wide)).sum(-1)
        singular = (wide == 0).any(-1)
        sign, logarithm = np.where(singular, 0, sign), np.where(singular, -np.inf, logarithm)
        return [sign * np.exp(logarithm)] if products else [sign, logarithm]


def solve_at_once(info, a, b, x):
    """Solutions of stacks by LAPACK, and the numbers of its info."""
    for number, (matrix, right) in enumerate(zip(a, np.broadcast_to(b, x.shape), strict=True)):
        (gesv,) = get_lapack_funcs(("gesv",), (a,))
        _, _, x[number], info[number] = gesv(matrix, right)


def systems_at_once(info, a, *others):
    """`solve_at_once`, with the inverse where there is no right-hand side; each info in an element."""
    (b, x) = others if len(others) > 1 else (np.eye(a.shape[-1]), *others)
    found = np.zeros(len(a), np.int32)
    solve_at_once(found, a, b, x)
    numbers = np.zeros((len(a), info.itemsize // 4), np.int32)
    numbers[:, 0] = found
    info[:, 0, 0] = numbers.view(info.dtype)[:, 0]


def least_squares(info, tau, factors, b, trans):
    """Solutions by LAPACK's routines from factors of matrices, and the numbers of its info."""
    ormqr, trtrs = get_lapack_funcs(("ormqr", "trtrs"), (factors,))
    is_wide, adjoint = factors.shape[1] < factors.shape[2], "C" if factors.dtype.kind == "c" else "T"
    words = np.zeros((len(b), info.itemsize // 4), np.int32)
    for z, x in enumerate(b):
        k, matrix = tau.shape[1], factors[z].conj().T if is_wide else factors[z]
        reflectors, count = (matrix[:, :k], tau[z, :, 0]), 64 * max(x.shape)
        if not k:
            x[...] = 0
            continue
        if is_wide == (trans is not NO):
            x[...] = ormqr("L", adjoint, *reflectors, x, count)[0]
            x[:k], words[z, 0] = trtrs(matrix[:k], x[:k])
        else:
            x[:k], words[z, 0] = trtrs(matrix[:k], x[:k], trans=1 + (adjoint == "C"))
            x[k:] = 0
            x[...] = ormqr("L", "N", *reflectors, x, count)[0]
    info[:, 0, 0] = words.view(info.dtype)[:, 0]


def substitution(info, t, b, x, uplo, diag):
    """Solutions with triangles, and the numbers of LAPACK's info."""
    (trtrs,) = get_lapack_funcs(("trtrs",), (t,))
    words = np.zeros((len(x), info.itemsize // 4), np.int32)
    for z, right in enumerate(np.broadcast_to(b, x.shape)):
        triangle = np.broadcast_to(t, (len(x), *t.shape[1:]))[z]
        x[z], words[z, 0] = trtrs(triangle, right, uplo is Uplo.LOWER, 0, diag is Diag.UNIT)
    info[:, 0, 0] = words.view(info.dtype)[:, 0]


def definite_inverses(factors, x, uplo):
    """Inverses from Cholesky factors, both triangles."""
    (potri,) = get_lapack_funcs(("potri",), (x,))
    for z, factor in enumerate(factors):
        inverse = potri(factor, uplo is Uplo.LOWER)[0]
        inverse = inverse if uplo is Uplo.LOWER else inverse.conj().T
        x[z] = np.tril(inverse) + np.tril(inverse, -1).conj().T


def lu_inverses(piv, factors, x):
    """Inverses from LU factors; of singular ones anything."""
    (getri,) = get_lapack_funcs(("getri",), (x,))
    for z, pivots in enumerate(first_words(piv)):
        x[z] = getri(factors[z], pivots)[0]


def upper_triangles(a, r):
    r[...] = np.triu(a)


#: Launch lists that no row names, and their stand-ins.
STAND_INS = {
    f"pyblasgpu.routines.{name}_launch_list": stand_in(compute)
    for name, compute in {
        "lapack.determinants.signs": partial(determinants_of_factors, False),
        "lapack.determinants.determinants": partial(determinants_of_factors, True),
        "lapack.gesv.solution": systems_at_once,
        "lapack.gesv.inverse": systems_at_once,
        "lapack.gels.solution": least_squares,
        "lapack.trtrs.apart": substitution,
        "lapack.syevd.new": eigen_of_source,
        "lapack.gesdd.new": singular_of_source,
        "lapack.svd_refined.new": triplets_of_source,
        "copies.upper": upper_triangles,
    }.items()
} | {
    f"pyblasgpu.routines.lapack.new_results.{name}": stand_in(compute)
    for name, compute in {"definite_inverse": definite_inverses, "lu_inverse": lu_inverses}.items()
}


def joined(copy, rest, operands):
    """The launches of a copy and of what follows it, of stand-ins."""

    def bound(*numbers):
        first, second = copy.bound(1), rest.bound(*numbers) if rest else None

        def run(bases, stream):
            first(bases[-2:], stream)
            if second is not None:
                second([*bases[:-2], bases[-1]], stream)

        return run

    return SimpleNamespace(
        bound=bound, uses_of=lambda slot: 2, source_region=Region.ALL, uses_workspace=False
    )
