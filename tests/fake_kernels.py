"""Kernels that are none: each launch is computed with NumPy in host memory, as the kernel's text promises.

What the kernels demand of their arguments is checked. With them routines, recursion and launch lists run at
any size; only the kernels themselves do not.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import fake_cholesky
import fake_eigen
import fake_gemv
import fake_grouped
import fake_ldl
import fake_level1
import fake_lu
import fake_qr
import fake_residues
import fake_triangles
import numpy as np
from fake_device import without_contexts
from fake_routines import STAND_INS, elements
from region_mask import mask

from pyblasgpu.frontend.calls.lazy_routines import launch_list_of
from pyblasgpu.gpu import lanes, launch, tables, workspace
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.kernels import compile_ahead
from pyblasgpu.kernels.common.options import (
    BY_ROWS,
    CONJUGATE,
    HERMITIAN,
    MIRRORED,
    OVERWRITE,
    READS_Y,
    SLICES_BIT,
    STRICT,
    TRIANGLE,
    UNIT,
    UPPER,
    ZERO,
    options_of,
)
from pyblasgpu.kernels.common.tile_schedule import TileSchedule
from pyblasgpu.kernels.copy.packing import Packing
from pyblasgpu.kernels.gemm.form import Form
from pyblasgpu.operands import Operand
from pyblasgpu.routine import Routine
from pyblasgpu.routines.joined_lists import joined
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.reference import exact_triangular, integers, packed, read_part, triangle
from pyblasgpu.types import DTYPES, Diag, Region, Side, Uplo, dtype_of

MAX_GRID = (2**31 - 1, 65535, 65535)


#: The package's own launch lists, and how they are joined, which `fake_device` replaces.
LAUNCH_LIST, JOINED = vars(Routine)["launch_list"], joined
OUT_OF_ROWS = {name: resolve_name(name) for name in STAND_INS}


def operand(array: np.ndarray, dtype, conj: bool = False) -> Operand:
    """A NumPy array of shape (rows, cols) or (batch, rows, cols) as an operand, in place."""
    *batch_shape, rows, cols = array.shape
    steps = [stride // array.itemsize for stride in array.strides]
    batch, batch_stride = (batch_shape[0], steps[0]) if batch_shape else (1, 0)
    return Operand(array.ctypes.data, rows, cols, *steps[-2:], dtype, conj, batch, batch_stride, owner=array)


def times(alpha: complex, array: np.ndarray) -> np.ndarray:
    """A product in which NaN stays in its part where alpha is real."""
    if not np.iscomplexobj(array) or np.imag(alpha) != 0:
        return alpha * array
    product = np.empty_like(array)
    product.real, product.imag = np.real(alpha) * array.real, np.real(alpha) * array.imag
    return product


class Kernels:
    """Stands for `launch.kernel`.

    Attributes
    ----------
    launches : list of (str, tuple, int)
        Kernel, grid and stream of each launch.
    pdl : list of bool
        Whether each may be started before the one before it is over.
    sizes : list of int
        Bytes of each workspace.
    """

    def __init__(self):
        self.launches: list[tuple[str, tuple[int, int, int], int]] = []
        self.pdl: list[bool] = []
        self.sizes: list[int] = []
        self.held = 0

    def __call__(self, source, device):
        return FakeKernel(self, source)

    def take(self, nbytes, device, stream, flags=False):
        assert nbytes > 0 or flags
        self.sizes.append(nbytes)
        self.held += 1
        memory = np.full(nbytes + 256, 0xFF, np.uint8)
        return SimpleNamespace(address=memory.ctypes.data + -memory.ctypes.data % 256, memory=memory)

    def give(self, room):
        self.held -= 1


class FakeKernel:
    def __init__(self, log: Kernels, source):
        self.log, self.source = log, source
        self.dtype, self.flags = source.config.dtype_facts, dict(source.flags)

    def launch(self, grid, stream, pointers, integers, reals, pdl=False):
        codes, arguments = self.source.parameters, (*pointers, *integers, *reals)
        assert len(arguments) == len(codes)
        assert all(1 <= extent <= limit for extent, limit in zip(grid, MAX_GRID))
        for code, value in zip(codes, arguments):
            assert isinstance(value, Real if code == "r" else int)
            assert code != "i" or -(2**31) <= value < 2**31
        self.log.launches.append((self.source.name, grid, stream))
        self.log.pdl.append(pdl)
        count = codes.count("p") + codes.count("w")
        scalars = [complex(*arguments[i : i + 2]) for i in range(len(codes) - len(reals), len(codes), 2)]
        numbers = arguments[count : len(arguments) - len(reals)]
        with np.errstate(all="ignore"):
            getattr(self, self.source.name)(grid, arguments[:count], numbers, *map(self.number, scalars))

    def number(self, scalar: complex):
        return np.dtype(self.dtype.name).type(scalar if self.dtype.is_complex else scalar.real)

    def view(self, pointer, rows, cols, row_stride, col_stride, batch, batch_stride, conj=False):
        assert pointer % self.dtype.real_size == 0
        described = Operand(
            pointer, rows, cols, row_stride, col_stride, self.dtype, conj, batch, batch_stride
        )
        return elements(described)

    def gemm_simt(self, grid, pointers, numbers, alpha, beta=None):
        config, batch = self.source.config, grid[2]
        if "triangle" in self.flags:
            if self.flags.get("solved"):
                self._solve_at_once(grid, pointers, numbers, alpha, beta)
            else:
                self._multiply_at_once(grid, pointers, numbers, alpha)
            return
        region, conj = self._region(numbers[3]), bool(numbers[3] & CONJUGATE)
        if config.persistent:
            (*pointers, _, _), batch, numbers = self._walked(grid, pointers, numbers, region)
        m, n, k, _, k_all, lda, ldb, ldc, *batch_strides = numbers
        assert config.persistent or grid[:2] == (config.grid(m, n, region), 1)
        assert self.flags["form"] in (Form.of(region), Form.EITHER)
        last = k_all - (batch - 1) * k
        assert 0 < last <= k
        if config.packed:
            assert last == k
            operands = zip(config.packings, pointers, (m, n), (lda, ldb), batch_strides)
            a, b = (self._packed(*each, k, batch) for each in operands)
            c = self.view(pointers[2], m, n, 1, ldc, batch, batch_strides[2])
            self._update(c, alpha * (a @ b.swapaxes(1, 2)), beta, region)
            return
        strides = _steps(lda, config.trans_a), _steps(ldb, config.trans_b), (1, ldc)
        for first, count, depth in ((0, batch - 1, k), (batch - 1, 1, last)):
            shapes, conjs, views = ((m, depth), (depth, n), (m, n)), (False, self.flags["conj"], False), []
            for pointer, shape, steps, step, conj_it in zip(pointers, shapes, strides, batch_strides, conjs):
                begin = pointer + first * step * self.dtype.itemsize
                views.append(self.view(begin, *shape, *steps, count, step, conj_it))
            a, b, c = views
            self._update(c, alpha * ((a @ b).conj() if conj else a @ b), beta, region)

    gemm_mma = gemm_simt

    def _solve_at_once(self, grid, pointers, numbers, alpha, factor):
        """`trsm_fused`: T X = alpha C, or X T = alpha C, where C is first B, or C plus a multiple of B."""
        (m, n, options, ldt, ldb, ldc), (t, b, c, _), config = numbers, pointers, self.source.config
        uplo, of = self._region(options).uplo, "a" if self.flags["triangle"].on_left else "b"
        transposed, conj = (config.trans_a, config.trans_b)[of == "b"], self.flags["conj"]
        assert grid == (config.grid(m, n), 1, 1)
        order = m if of == "a" else n
        t = self.view(t, order, order, *_steps(ldt, transposed), 1, 0, conj)
        assert (b == c) == (not options & OVERWRITE)
        b, c = self.view(b, m, n, 1, ldb, 1, 0), self.view(c, m, n, 1, ldc, 1, 0)
        if options & READS_Y:
            c += factor * b
        elif options & OVERWRITE:
            c[...] = b
        if of == "b":
            t, c, uplo = t.swapaxes(1, 2), c.swapaxes(1, 2), uplo.flipped
        if uplo is Uplo.UPPER:
            t, c = t[:, ::-1, ::-1], c[:, ::-1]
        self._solve(read_part(t, Uplo.LOWER, Diag.UNIT if options & UNIT else Diag.NON_UNIT), c, alpha)

    def diagonal_blocks(self, grid, pointers, numbers):
        """The diagonal blocks of T, stored as T is, zero beyond the triangle; flags of zero."""
        order, block, count, options, ldt, t_step, copy_step = numbers
        t = self.view(pointers[0], order, order, *_steps(ldt, not options & BY_ROWS), grid[2], t_step)
        t = read_part(t, self._region(options).uplo, Diag.UNIT if options & UNIT else Diag.NON_UNIT)
        steps, size = _steps(block, not options & BY_ROWS), self.dtype.itemsize
        for z, each in enumerate(t):
            at = pointers[1] + z * copy_step * size
            copy = self.view(at, block, block, *steps, -(-order // block), block**2)
            copy[...] = 0
            for number, first in enumerate(range(0, order, block)):
                part = each[first : first + block, first : first + block]
                copy[number, : len(part), : len(part)] = part
        if count:
            self.view(pointers[2], count, 1, 1, count, 1, 0)[...] = 0

    def _multiply_at_once(self, grid, pointers, numbers, alpha):
        """`trmm_fused`: C := alpha T B, or alpha B T."""
        m, n, *_ = numbers
        config = self.source.config
        assert grid == (config.grid(m, n), 1, 1)
        self._multiply_by_triangle(config, self.flags["triangle"].on_left, pointers, numbers, alpha)

    def _multiply_by_triangle(self, config, of_a, pointers, numbers, alpha):
        m, n, options, ldt, ldb, ldc = numbers
        assert (pointers[3] == pointers[4]) == (not options & OVERWRITE)
        order, by_rows = (m, config.trans_a) if of_a else (n, config.trans_b)
        block = config.BLK_M if of_a else config.BLK_N
        t = self.view(pointers[0], order, order, *_steps(ldt, by_rows), 1, 0)
        t = read_part(t, self._region(options).uplo, Diag.NON_UNIT)[0]
        copy = self.view(pointers[1], block, block, *_steps(block, by_rows), -(-order // block), block**2)
        for number, first in enumerate(range(0, order, block)):
            part = t[first : first + block, first : first + block]
            part[...] = copy[number, : len(part), : len(part)]
        t = t.conj() if self.flags.get("conj") else t
        b = self.view(pointers[3], m, n, 1, ldb, 1, 0)[0]
        c = self.view(pointers[4], m, n, 1, ldc, 1, 0)[0]
        c[...] = alpha * (t @ b if of_a else b @ t)

    def trmm_stack(self, grid, pointers, numbers, alpha):
        """`trmm_fused` of each matrix."""
        *numbers, t_step, blocks_step, flags_step, b_step, c_step = numbers
        config, size = self.source.config, self.dtype.itemsize
        assert grid[:2] == (config.grid(*numbers[:2]), 1)
        for z in range(grid[2]):
            steps = (
                t_step * size,
                blocks_step * size,
                flags_step * self.dtype.real_size,
                b_step * size,
                c_step * size,
            )
            at = [pointer + z * step for pointer, step in zip(pointers, steps, strict=True)]
            self._multiply_by_triangle(config.product, config.on_left, at, numbers, alpha)

    def _walked(self, grid, pointers, numbers, region):
        """Arguments of an ordinary product, from those of a persistent one."""
        m, n, k, options, tiles, rounds, run, longer, *strides = numbers
        config, (blocks, *others) = self.source.config, grid
        k_tiles, per_matrix = -(-k // config.BLK_K), config.grid(m, n, region)
        batch = tiles // per_matrix
        schedule = TileSchedule(blocks, tiles, rounds, run, longer)
        assert others == [1, 1] and tiles == batch * per_matrix
        assert schedule in (
            TileSchedule.of_whole_tiles(blocks, tiles),
            TileSchedule.stream_k(blocks, tiles, k_tiles),
        )
        return pointers, batch, (m, n, k, options, batch * k, *strides)

    def _packed(self, packing, pointer, extent, lead, step, k, batch):
        """The matrices of a packed operand: shape (batch, extent, k)."""
        size = packing.size(extent, k)
        assert pointer % 16 == 0 and lead == packing.stride(extent, k) and step in (0, size)
        elements = self.view(pointer, size, 1, 1, 1, batch, step)[:, :, 0]
        i, kk = np.ogrid[:extent, :k]
        return elements[:, packing.offset(i, kk, extent, k)]

    @staticmethod
    def _region(options):
        """The region that options tell."""
        bits = options & (TRIANGLE | UPPER | HERMITIAN | STRICT)
        return next(region for region in Region if options_of(region) == bits)

    def _update(self, c, value, beta, region):
        """Compute the kernel's part of the matrices `c` := value + beta c."""
        if region.hermitian:
            for matrix in (value, c):
                diagonal = np.arange(min(c.shape[1:]))
                matrix[:, diagonal, diagonal] = matrix[:, diagonal, diagonal].real
        np.copyto(c, value + beta * c if beta != 0 else value, where=mask(region, *c.shape[1:]))

    def pack(self, grid, pointers, numbers):
        extent, k, options, *steps, _, _, _, source_step, target_step = numbers
        config, conj = self.source.config, bool(options & CONJUGATE)
        names = [name for name in ("cbl", "rbl", "row") if not (name == "row" and config.PAD)]
        packings = (Packing(name, config.BLK, config.BLK_K, config.PAD) for name in names)
        packing = next(each for each in packings if tuple(numbers[5:8]) == each.steps(extent, k))
        assert grid[:2] == (config.grid(extent, k), 1) and pointers[1] % 16 == 0
        source = self.view(pointers[0], extent, k, *steps, grid[2], source_step, conj)
        target = self.view(pointers[1], packing.size(extent, k), 1, 1, 1, grid[2], target_step)
        for matrix, into in zip(source, target):
            into[:, 0] = packed(packing, matrix)

    def split_k_reduce(self, grid, pointers, numbers, alpha, beta):
        m, n, count, options, lead, ldc, step = numbers
        config = replace(self.source.config, SLICES=options >> SLICES_BIT)
        assert grid == (config.grid(lead, n), 1, 1)
        # it reads 16 bytes at a time, whole columns and what lies between them
        assert not any(stride * self.dtype.itemsize % 16 for stride in (lead, step)) and pointers[0] % 16 == 0
        assert pointers[1] % self.dtype.itemsize == 0 and m <= lead and n * lead <= step
        partials = self.view(pointers[0], m, n, 1, lead, count, step)
        c = self.view(pointers[1], m, n, 1, ldc, 1, 0)
        self._update(c, alpha * sum(partials[1:], start=partials[0])[None], beta, self._region(options))

    def symmetrize(self, grid, pointers, numbers, beta):
        n, options, lead, *steps, w_step, c_step = numbers
        region = self._region(options)
        assert grid[:2] == (self.source.config.grid(n, region), 1)
        assert pointers[0] % 16 == 0 and lead * self.dtype.itemsize % 16 == 0 and n <= lead
        w = self.view(pointers[0], n, n, 1, lead, grid[2], w_step)
        mirrored = w.swapaxes(1, 2)
        c = self.view(pointers[1], n, n, *steps, grid[2], c_step)
        self._update(c, w + (mirrored.conj() if region.hermitian else mirrored), beta, region)

    def copy_scaled(self, grid, pointers, numbers, alpha):
        m, n, options, *steps, source_step, target_step = numbers
        region, zero, conj = self._region(options), bool(options & ZERO), bool(options & CONJUGATE)
        assert grid[:2] == (self.source.config.grid(m, n), 1)
        source = self.view(pointers[0], m, n, *steps[:2], grid[2], source_step, conj)
        target = self.view(pointers[1], m, n, *steps[2:], grid[2], target_step)
        scaled = np.zeros_like(target) if zero else times(alpha, source)
        if region.hermitian and not zero:
            diagonal = np.arange(m)
            scaled[:, diagonal, diagonal] = (alpha * source.real)[:, diagonal, diagonal].real
        np.copyto(target, scaled, where=mask(region, m, n))
        if options & MIRRORED:
            other = scaled.conj() if region.hermitian else scaled
            np.copyto(target, other.swapaxes(1, 2), where=mask(Region.STRICT_LOWER, m, n).T)

    def _leaf(self, grid, pointers, numbers):
        n, r, options, *steps, t_step, b_step, c_step = numbers
        assert grid[:2] == (self.source.config.grid(r), 1) and n <= self.source.config.ORDER
        t, b = self._triangle(pointers[:2], n, r, options, steps[:4], grid[2], t_step, b_step)
        return t, b, self.view(pointers[2], n, r, *steps[4:], grid[2], c_step)

    def _triangle(self, pointers, n, r, options, steps, batch=1, t_step=0, b_step=0):
        assert all(pointer % self.dtype.itemsize == 0 for pointer in pointers)
        assert self.flags.get("conj", bool(options & CONJUGATE)) == bool(options & CONJUGATE)
        t = self.view(pointers[0], n, n, *steps[:2], batch, t_step, bool(options & CONJUGATE))
        b = self.view(pointers[1], n, r, *steps[2:], batch, b_step)
        return read_part(t, Uplo.LOWER, Diag.UNIT if options & UNIT else Diag.NON_UNIT), b

    def trmm_leaf(self, grid, pointers, numbers, alpha):
        t, b, c = self._leaf(grid, pointers, numbers)
        for row in reversed(range(b.shape[1])):
            c[:, row] = alpha * (t[:, row, None, : row + 1] @ b[:, : row + 1])[:, 0]

    def trmm_small(self, grid, pointers, numbers, alpha):
        n, r, options, *arranged, batch, t_rs, t_cs, b_rs, b_cs, c_rs, c_cs, t_step, b_step, c_step = numbers
        arrangement = self.source.config.arrangement(n, r)
        assert (*arrangement,) == (*arranged,) and grid == (arrangement.grid(r, batch), 1, 1)
        steps = t_rs, t_cs, b_rs, b_cs
        all_t, all_b = self._triangle(pointers[:2], n, r, options, steps, batch, t_step, b_step)
        all_c = self.view(pointers[2], n, r, c_rs, c_cs, batch, c_step)
        for first in range(0, n, arrangement.order):
            rows = slice(first, first + arrangement.order)
            for t, b, c in zip(all_t, all_b, all_c, strict=True):
                c[rows] = alpha * (t[rows, rows] @ b[rows])

    def trsm_fma(self, grid, pointers, numbers, alpha):
        t, b, x = self._leaf(grid, pointers, numbers)
        x[...] = b.copy()
        self._solve(t, x, alpha)

    def _solve(self, t, b, alpha):
        b *= alpha
        wide = np.clongdouble if self.dtype.is_complex else np.longdouble
        for row in range(b.shape[1]):
            # wide: NumPy's complex division overflows where the divisor is denormal
            b[:, row] = (b[:, row].astype(wide) / t[:, row, row, None]).astype(b.dtype)
            b[:, row + 1 :] -= t[:, row + 1 :, row, None] * b[:, row, None]

    trsm_mma = trsm_fma

    def trsm_small(self, grid, pointers, numbers, alpha):
        t, b, x = self._leaf(grid, pointers, numbers)
        if numbers[2] & READS_Y:
            x += alpha * b
            self._solve(t, x, 1)
        else:
            self.trsm_fma(grid, pointers, numbers, alpha)

    def trsv(self, grid, pointers, numbers, alpha):
        n, r, options, *steps = numbers
        config = self.source.config
        assert grid == (config.grid(n), 1, 1) and r <= config.COLS
        assert config.shared_bytes <= known("h200").shared_per_block
        b = self.view(pointers[2], n, r, *steps[2:4], 1, 0).copy()
        t, x = self._triangle(pointers[::3], n, r, options, (*steps[:2], *steps[4:]))
        x[...] = b
        self._solve(t, x, alpha)

    level1_reduce = fake_level1.level1_reduce
    gemv, ger, symv_small = fake_gemv.gemv, fake_gemv.ger, fake_gemv.symv_small

    jacobi_eigh, jacobi_svd = fake_eigen.jacobi_eigh, fake_eigen.jacobi_svd
    jacobi_columns, jacobi_thread = fake_eigen.jacobi_columns, fake_eigen.jacobi_thread
    svd_correction, svd_results = fake_eigen.svd_correction, fake_eigen.svd_results
    sytrd, tridiagonal_merge = fake_eigen.sytrd, fake_eigen.tridiagonal_merge
    band_chase, sytrd_resident = fake_eigen.band_chase, fake_eigen.sytrd_resident
    ormtr = fake_eigen.ormtr
    geqp3, geqrf_panel, geqrf_tall = fake_qr.geqp3, fake_qr.geqrf_panel, fake_qr.geqrf_tall
    geqp3_panel = fake_qr.geqp3_panel
    geqrf_small = fake_qr.geqrf_small
    sytrf_panel, ldl_triangle, ldl_rows = fake_ldl.sytrf_panel, fake_ldl.ldl_triangle, fake_ldl.ldl_rows
    larft_leaf, orhr_leaf, reflector_copy = fake_qr.larft_leaf, fake_qr.orhr_leaf, fake_qr.reflector_copy
    getrf_panel, getrf_small, getrs_small = fake_lu.getrf_panel, fake_lu.getrf_small, fake_lu.getrs_small
    getrf_column, determinant, gesv_small = fake_lu.getrf_column, fake_lu.determinant, fake_lu.gesv_small
    potrf_leaf, potrf_panel = fake_cholesky.potrf_leaf, fake_cholesky.potrf_panel
    potrf_small = fake_cholesky.potrf_small
    pivot_scales, pack_residues = fake_residues.pivot_scales, fake_residues.pack_residues
    gemm_int8, combine_residues = fake_residues.gemm_int8, fake_residues.combine_residues
    row_scales, gemm_int8_guarded = fake_residues.row_scales, fake_residues.gemm_int8_guarded
    laswp, pivot_moves, restore = fake_lu.laswp, fake_lu.pivot_moves, fake_lu.restore
    pivot_order, permute_rows = fake_lu.pivot_order, fake_lu.permute_rows
    trtri_leaf, lauum_leaf = fake_triangles.trtri_leaf, fake_triangles.lauum_leaf
    zero_diagonal = fake_triangles.zero_diagonal
    gemm_grouped, ragged_copy = fake_grouped.gemm_grouped, fake_grouped.ragged_copy


def _steps(ld: int, by_rows: bool) -> tuple[int, int]:
    """Elements from one row to the next, and from one column."""
    return (ld, 1) if by_rows else (1, ld)


class Graph:
    """Launches that are enqueued at each launch of the graph, and not when it is made."""

    def __init__(self, enqueue, device, by_priority=False):
        self._enqueue = enqueue

    def launch(self, stream):
        self._enqueue(stream)
        return True


def install(monkeypatch) -> Kernels:
    """Put the stand-ins where the routines look; the device is described as an H200."""
    kernels = Kernels()
    without_contexts(monkeypatch)
    monkeypatch.setattr(compile_ahead, "ensure_compiled", lambda sources, ordinal: None)
    monkeypatch.setattr(launch, "kernel", kernels)
    monkeypatch.setattr(launch, "Graph", Graph)
    monkeypatch.setattr(launch, "is_captured", lambda stream: False)
    monkeypatch.setattr(lanes, "side_stream", lambda device, stream: None)
    monkeypatch.setattr(workspace, "take", kernels.take)
    monkeypatch.setattr(workspace, "give", kernels.give)
    monkeypatch.setattr(tables, "send", fake_grouped.send)
    monkeypatch.setitem(stand_ins, 0, known("h200"))
    monkeypatch.setattr("pyblasgpu.routines.launch_list.cache", {})
    return kernels


def install_below(monkeypatch) -> Kernels:
    """Put the stand-ins below the package's own launch lists, on the device of `fake_device.install`."""
    monkeypatch.setattr(Routine, "launch_list", LAUNCH_LIST)
    monkeypatch.setattr("pyblasgpu.routines.joined_lists.joined", JOINED)
    for name, function in OUT_OF_ROWS.items():
        monkeypatch.setattr(name, function)
    for module in ("api.linalg.host", "frontend.calls.lazy_routines"):
        monkeypatch.setattr(f"pyblasgpu.{module}.launch_list_of", launch_list_of)
    return install(monkeypatch)


def check_trsm(letter, order, others, side, uplo, diag, b_order="F", out_order=None) -> None:
    """A TRSM of integers with the stand-ins is exact; of a unit triangle the diagonal is NaN. With an
    `out_order` into NaN, in that order.
    """
    m, n = (order, others) if side is Side.LEFT else (others, order)
    case = TriangularCase(DTYPES[letter], m, n, side, uplo, diag=diag)
    rng = np.random.default_rng(2)
    a, x = triangle(rng, case), integers(rng, (m, n), case.dtype)
    a[rng.random(a.shape) < 0.95] *= 0  # so that sums stay small enough to be exact
    a[np.diag_indices(order)] = np.nan if diag is Diag.UNIT else -1
    b = np.array(exact_triangular(case, a, x, alpha=1), order=b_order)
    t, target = (operand(each, case.dtype) for each in (np.asfortranarray(a), b))
    out = np.full_like(b, np.nan, order=out_order) if out_order else b
    operands = (t, target, operand(out, case.dtype)) if out_order else (t, target)
    launches = launch_list_of("trsm")(2, *operands, side=side, uplo=uplo, diag=diag)
    launches.run([each.pointer for each in operands], 2, stream=5)
    np.testing.assert_array_equal(out, 2 * x)


def run(routine: Any, *arrays: np.ndarray, **flags: Any) -> None:
    """A routine by its launch list on arrays, integers in elements of the last one's dtype."""
    dtype = dtype_of(arrays[-1].dtype)
    operands = [operand(array, dtype) for array in arrays]
    launches = getattr(routine, "launch_list", routine)(*operands, **flags)
    launches.run([each.pointer for each in operands], 1.0, stream=0)
