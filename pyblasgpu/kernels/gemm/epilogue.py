"""Store of a block's sums to C: scaled, added to what is there, whole tiles by vectors, edges by elements."""

from __future__ import annotations

from ...gpu.backend import device_function, ptx, unrolled
from ..common.options import CONJUGATE, HERMITIAN, PREFETCH_C
from ..common.region import contains_tile, rows_of_column
from ..common.smem_tile import SmemTile
from ..common.tile_iterators import l2_prefetcher
from .config import GemmConfig
from .product import Product

__all__ = ["c_prefetcher", "epilogue", "reals_read"]

READ_AHEAD = 16  # reals of C that a thread reads before it writes any
READ_AHEAD_PERSISTENT = 8
#: Registers of a thread of a persistent block that reads several elements at edges before it writes them.
WHOLE_READ = 128


def epilogue(config: GemmConfig, product: Product, triangular: bool | None = False):
    """``write(...)``: C := alpha acc + beta C, of the tile that begins at `c`; without beta C is not read.
    `options` select the triangle of C, if the kernel is `triangular`, or whether one is (None), and whether
    acc is conjugated.

    What is beyond `rows` and `cols`, or the triangle, is left alone. A tile that is whole is written without
    a check of each element, by vectors where C is aligned for them.
    """
    BLK_M, BLK_N, RUN, REALS = config.BLK_M, config.BLK_N, product.run, config.dtype_facts.reals_per_element
    real, aligned = ptx.REALS[config.dtype_facts.real], ptx.is_aligned(RUN * REALS)
    overwrite, update = (_writer(config, product, reads_c, RUN, triangular) for reads_c in (False, True))
    overwrite_edge, update_edge = (
        _writer(config, product, reads_c, 0, triangular) for reads_c in (False, True)
    )
    # with vectors next to masks, FMAs of complex numbers lose the order of their registers: 12 % of the time
    BY_ELEMENTS = triangular is True and config.dtype == "c" and config.has_many_sums
    covers_tile = contains_tile(BLK_M, BLK_N, triangular)

    @device_function
    def is_covered(shift, options):
        return False if BY_ELEMENTS else covers_tile(shift, options)

    @device_function
    def write(c, acc, old, ldc, t, rows, cols, shift, options, alpha, alpha_i, beta, beta_i):
        # alpha conj(acc) is the sum of other products with the same alpha: the sign goes with alpha
        sign = real(-1) if options & CONJUGATE else real(1)
        scalars = alpha, alpha_i, sign * alpha, sign * alpha_i, beta, beta_i
        # the branches are outside the unrolled columns
        reads_c = (beta != real(0)) | (beta_i != real(0))
        if rows >= BLK_M and cols >= BLK_N and is_covered(shift, options) and aligned(c) and ldc % RUN == 0:
            if reads_c:
                update(0, c, acc, old, ldc, t, rows, cols, shift, options, scalars)
            else:
                overwrite(0, c, acc, old, ldc, t, rows, cols, shift, options, scalars)
        elif reads_c:
            update_edge(0, c, acc, old, ldc, t, rows, cols, shift, options, scalars)
        else:
            overwrite_edge(0, c, acc, old, ldc, t, rows, cols, shift, options, scalars)

    return write


def c_prefetcher(config: GemmConfig):
    """``prefetch(c, ldc, t, rows, cols, options, beta, beta_i)``: prefetch the tile that begins at `c`
    into L2, where it will be read and the options say so.

    The epilogue reads a few elements at a time, and would wait for memory each time.
    """
    tile = SmemTile(config.dtype_facts, config.BLK_M, config.BLK_N, config.threads, 1, 1, 0, False)
    real, prefetch_lines = ptx.REALS[config.dtype_facts.real], l2_prefetcher(tile, config.threads)

    @device_function
    def prefetch(c, ldc, t, rows, cols, options, beta, beta_i):
        if options & PREFETCH_C != 0 and ((beta != real(0)) | (beta_i != real(0))):
            prefetch_lines(c, ldc, t, rows, cols)

    return prefetch


def reals_read(config: GemmConfig, run: int, triangular: bool | None = False) -> int:
    """Reals of C that a thread reads, `run` rows at a time, before it writes any of them; 0: one, at edges.

    A store keeps the loads after it from beginning before it, since it may be what they read. A persistent
    block has fewer registers for them, as it holds the first fragments of the next tile. At edges one that
    is alone has none to spare, nor has one that leaves a thread fewer than `WHOLE_READ`, nor have
    ordinary blocks in masks of a triangle.
    """
    width = max(run, 1) * config.dtype_facts.reals_per_element
    in_flight = READ_AHEAD_PERSISTENT if config.persistent else READ_AHEAD
    is_full = config.is_full or config.thread_registers < WHOLE_READ if config.persistent else triangular
    if run == 0 and is_full:
        in_flight = width
    most, vectors = max(in_flight // width, 1), config.THR_M * config.THR_N // max(run, 1)
    return width * next(count for count in range(min(most, vectors), 0, -1) if vectors % count == 0)


def _writer(config: GemmConfig, product: Product, reads_c: bool, run: int, triangular: bool | None):
    """``write(0, ...)``: all of the thread, `run` rows of a column at a time; 0: one, and none beyond the
    edges or the triangle.
    """
    REALS, THR_M, RUN = config.dtype_facts.reals_per_element, config.THR_M, max(run, 1)
    EDGE, COMPLEX, WIDTH = run == 0, config.dtype_facts.is_complex, RUN * REALS
    ALL, rows_of = triangular is False, rows_of_column(triangular)
    MAY_BE_REAL, FULL = EDGE and COMPLEX and not ALL, ALL and (config.is_full or not config.persistent)
    VECTORS, TOGETHER = THR_M // RUN, reals_read(config, run, triangular) // WIDTH if reads_c else 1
    int32, int64, real = ptx.types.int32, ptx.types.int64, ptx.REALS[config.dtype_facts.real]
    row_of, col_of, fma = product.row, product.col, ptx.fma
    read, store = ptx.load_global(WIDTH, False), ptx.store_global_vector(WIDTH)

    @device_function
    def coords(vector, t):
        return row_of(vector % VECTORS * RUN, t), col_of(vector // VECTORS, t)

    @device_function
    def is_there(row, col, rows, cols, shift, options):
        if not EDGE:
            return True
        if FULL:  # of registers: rows of a column would take more
            return (int32(row) < rows) & (int32(col) < cols)
        first, end = rows_of(int32(col), rows, cols, shift, options)
        return (int32(row) < end) & (ALL or first <= int32(row))

    @device_function
    def is_real(row, col, shift, options):
        """Whether it is on a Hermitian diagonal."""
        return (options & HERMITIAN != 0) & (row + shift == col) if MAY_BE_REAL else False

    @device_function
    def fetch(i, first, c, old, ldc, t, rows, cols, shift, options):
        row, col = coords(first + i, t)
        ok = is_there(row, col, rows, cols, shift, options)
        read(old, i * WIDTH, c, (int64(col) * ldc + row) * REALS, ok)
        if MAY_BE_REAL and is_real(row, col, shift, options):
            old[i * WIDTH + 1] = real(0)

    @device_function
    def scale(i, x, y, acc, old, scalars):
        alpha, alpha_i, signed, signed_i, beta, beta_i = scalars
        x, y = x + i * REALS, y + i * REALS
        if COMPLEX:
            re = alpha * acc[x] - signed_i * acc[x + 1]
            im = signed * acc[x + 1] + alpha_i * acc[x]
            if reads_c:
                re += beta * old[y] - beta_i * old[y + 1]
                im += beta * old[y + 1] + beta_i * old[y]
            acc[x], acc[x + 1] = re, im
        elif reads_c:  # the compiler would fuse one product or the other, not the same in all kernels
            acc[x] = fma(alpha, acc[x], beta * old[y])
        else:
            acc[x] = alpha * acc[x]

    scale_run = unrolled(RUN, scale)

    @device_function
    def put(i, first, c, acc, old, ldc, t, rows, cols, shift, options, scalars):
        row, col = coords(first + i, t)
        x = (first + i) * WIDTH
        scale_run(0, x, i * WIDTH, acc, old, scalars)
        if MAY_BE_REAL and is_real(row, col, shift, options):
            acc[x + 1] = real(0)
        store(c, (int64(col) * ldc + row) * REALS, acc, x, is_there(row, col, rows, cols, shift, options))

    fetch_all, put_all = unrolled(TOGETHER, fetch), unrolled(TOGETHER, put)

    @device_function
    def write(group, c, acc, old, ldc, t, rows, cols, shift, options, scalars):
        first = group * TOGETHER
        if reads_c:
            fetch_all(0, first, c, old, ldc, t, rows, cols, shift, options)
        put_all(0, first, c, acc, old, ldc, t, rows, cols, shift, options, scalars)

    return unrolled(VECTORS * config.THR_N // TOGETHER, write)
