"""Defects planted in the kernels that copy, pack and add up, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import pytest

from pyblasgpu.types import Region

from . import test_grouped
from .kernel_checks import COPIES, MIRROR, TRIANGLE, ZEROS, pack, ragged, split_k_reduce, symmetrize
from .planting import assert_caught, parameters

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers and waits
    ("copy.copy_scaled_kernel", "alpha_i)\n            cuda.syncthreads()", "alpha_i)", COPIES),
    ("copy.split_k_reduce", "acc, 0)\n        cuda.syncthreads()", "acc, 0)", split_k_reduce()),
    ("copy.symmetrize", "wait()\n        cuda.syncthreads()", "wait()", symmetrize()),
    ("copy.symmetrize", "wait()\n        cuda.syncthreads()", "cuda.syncthreads()", symmetrize()),
    ("copy.ragged_copy", "cuda.syncthreads()", "pass", ragged()),
    # edges
    ("copy.ragged_copy", "(row < m) & (col < n)", "(row < m)", ragged()),
    ("copy.ragged_copy", "(row < rows) & (col < cols)", "(row < rows)", ragged()),
    ("copy.ragged_copy", "is_beyond)", "False)", ragged()),
    ("copy.ragged_copy", "| (row >= col)", "| True", ragged("d", test_grouped.check_factors)),
    ("copy.ragged_copy", "-im if options & CONJUGATE", "im if options & CONJUGATE", ragged("z")),
    ("copy.copy_scaled_kernel", "(i < rows) & (j < cols)", "(i < rows) & (j <= cols)", COPIES),
    ("copy.split_k_reduce", "(row < m) & (col < n)", "(row <= m) & (col < n)", split_k_reduce(beta=0.0)),
    ("copy.split_k_reduce", "(row < m) & (col < n)", "(row < m)", split_k_reduce(m=12, beta=0.0)),
    ("copy.split_k_reduce", "inside & (u < count)", "inside", split_k_reduce()),
    ("copy.split_k_reduce", "inside & (u < count)", "u < count", split_k_reduce()),
    ("copy.split_k_reduce", "here < ldp * n", "here < ldp * (n - 1)", split_k_reduce()),
    ("copy.split_k_reduce", "min(partials - begin, per_slice)", "per_slice", split_k_reduce(partials=10)),
    ("copy.split_k_reduce", "quotient(partials + slices - 1, slices)", "quotient(partials, slices)", split_k_reduce()),
    ("copy.symmetrize", "ok = (i < rows) & (j < cols)", "ok = j < cols", symmetrize(n=17)),
    ("copy.symmetrize", "ok = (i < rows) & (j < cols)", "ok = i < rows", symmetrize(n=17)),
    ("copy.symmetrize", "return (i < rows) & (j < cols)", "return (j < cols)", symmetrize()),
    ("copy.symmetrize", "return (i < rows) & (j < cols)", "return (i < rows)", symmetrize(region=Region.UPPER)),
    ("copy.symmetrize", "(n + BLK - 1) // BLK", "n // BLK", symmetrize()),
    ("copy.pack", "(i < rows) & (kk < depth)", "(kk < depth)", pack(by_rows=False)),
    ("copy.pack", "(i < rows) & (kk < depth)", "(i < rows)", pack()),
    ("copy.pack", "(i < rows) & (kk < depth)", "(i <= rows) & (kk < depth)", pack()),
    ("copy.pack", "(left >= REACH) | (left <= 0)", "True", pack("d", gap=1)),
    ("copy.pack", "(left >= REACH) | (left <= 0)", "True", pack("d", deep=True, k=31, by_rows=False, gap=1)),
    ("copy.pack", "(x < across) & (y < deep)", "x < across", pack()),
    ("copy.pack", "(x < across) & (y < deep)", "y < deep", pack(extent=40)),
    ("copy.pack", "uint32(extent + (BLK - 1))", "uint32(extent)", pack()),
    ("copy.pack", "uint32(k + (BLK_K - 1))", "uint32(k)", pack()),
    # what must not be read
    ("copy.pack", "int32(extent - row) if i < BLK else int32(0)", "int32(extent - row)", pack()),
    ("copy.copy_scaled_kernel", "real(0) if options & ZERO else tile", "tile", ZEROS),
    ("copy.split_k_reduce", "& in_region(row, col, 0, options)", "", split_k_reduce(m=9, n=9, region=Region.LOWER)),
    ("copy.split_k_reduce", "needed(row - col, options)", "needed(col - row, options)", split_k_reduce(m=9, n=9, region=Region.LOWER)),
    ("copy.split_k_reduce", "(options & HERMITIAN != 0) & (row == col)", "False", split_k_reduce("z", m=9, n=9, region=Region.HERMITIAN_LOWER)),
    ("copy.split_k_reduce", "old[1] = real(0)", "pass", split_k_reduce("z", m=9, n=9, region=Region.HERMITIAN_LOWER)),
    ("copy.copy_scaled_kernel", "(options & HERMITIAN != 0) & (i + x * ROWS", "False & (i + x * ROWS", TRIANGLE),
    ("copy.copy_scaled_kernel", "tile[to], tile[to + 1] = alpha * re, real(0)", "pass", TRIANGLE),
    ("copy.split_k_reduce", "ok & reads_c", "ok", split_k_reduce(beta=0.0)),
    ("copy.split_k_reduce", "(beta_i != real(0))", "False", split_k_reduce("z", beta=2j)),
    ("copy.symmetrize", "& in_region(i, j, shift, options)", "", symmetrize()),
    ("copy.symmetrize", "real(0) if i + shift == j else im", "im", symmetrize("z", region=Region.HERMITIAN_LOWER)),
    ("copy.symmetrize", "ok & reads_c", "ok", symmetrize(beta=0.0)),
    ("copy.symmetrize", "(beta_i != real(0))", "False", symmetrize("z", beta=2j)),
    # conjugation and complex arithmetic
    ("copy.copy_scaled_kernel", "real(-1) if options & CONJUGATE else real(1)", "real(1)", COPIES),
    ("copy.split_k_reduce", "alpha * re - alpha_i * im", "alpha * re + alpha_i * im", split_k_reduce("c", alpha=1 - 2j)),
    ("copy.split_k_reduce", "+ beta_i * old[0]", "- beta_i * old[0]", split_k_reduce("z", beta=1j)),
    ("copy.symmetrize", "- other[1]", "+ other[1]", symmetrize("c", region=Region.HERMITIAN_UPPER)),
    ("copy.symmetrize", "- beta_i * old[2 * x + 1]", "+ beta_i * old[2 * x + 1]", symmetrize("c", beta=1 - 2j)),
    ("copy.pack", "options & CONJUGATE", "False", pack("c", conj=True)),
    ("copy.pack", "sign * vector[v * REALS + 1]", "vector[v * REALS + 1]", pack("z", conj=True)),
    # places and strides
    ("copy.copy_scaled_kernel", "ok & (row + shift > col)", "ok", MIRROR),
    ("copy.copy_scaled_kernel", "mirrored and options & HERMITIAN", "False", MIRROR),
    ("copy.copy_scaled_kernel", "(col0 * d_rs + row0 * d_cs)", "(row0 * d_rs + col0 * d_cs)", MIRROR),
    ("copy.copy_scaled_kernel", "row_stride, col_stride = col_stride, row_stride", "pass", MIRROR),
    # products in place
    ("copy.copy_scaled_kernel", "row0 * d_rs + col0 * d_cs", "row0 * d_cs + col0 * d_rs", COPIES),
    ("copy.split_k_reduce", "u * stride * REALS", "u * stride", split_k_reduce("c")),
    ("copy.split_k_reduce", "p = offset(p, UNROLL * stride", "p = offset(p, stride", split_k_reduce()),
    ("copy.split_k_reduce", "begin * stride_p + here", "begin * stride_p + first", split_k_reduce()),
    ("copy.split_k_reduce", "(s * tile + e) * REALS + 1", "(s * tile + e) * REALS", split_k_reduce("z")),
    ("copy.split_k_reduce", "(s * tile + e) * REALS]", "e * REALS]", split_k_reduce()),
    ("copy.split_k_reduce", "col * ldc + row", "col * ldp + row", split_k_reduce(m=14)),
    ("copy.split_k_reduce", "first - col0 * ldp", "first", split_k_reduce()),
    ("copy.symmetrize", "row0 * ldw + col0", "col0 * ldw + row0", symmetrize()),
    ("copy.symmetrize", "batch * stride_w + row0", "row0", symmetrize(batch=2)),
    ("copy.symmetrize", "batch * stride_c", "batch * stride_w", symmetrize(batch=2)),
    ("copy.symmetrize", "line + x * LINES", "line", symmetrize()),
    ("copy.symmetrize", "tile, (i * LD + j) * REALS)", "tile, (j * LD + i) * REALS)", symmetrize()),
    ("copy.symmetrize", "x * REALS + part, c", "part, c", symmetrize("z")),
    ("copy.pack", "int64(panel) * BLK + i", "int64(panel) * (VECTORS * VEC) + i", pack()),
    ("copy.pack", "x - panel * VECTORS", "x", pack()),
    ("copy.pack", "y - k_tile * THREAD_TILES", "y", pack()),
    ("copy.pack", "fast = uint32(block - slow * blocks)", "fast = block", pack()),
    ("copy.pack", "x * X + t // SIDE % X", "x * X + t // SIDE", pack()),
    ("copy.pack", "t // (SIDE * X) * SIDE + t % SIDE", "t // (SIDE * X) * SIDE", pack(by_rows=False)),
    ("copy.pack", "n // NEXT * (NEXT * DEEP)", "n // NEXT * DEEP", pack("d", deep=True, by_rows=False)),
    ("copy.pack", "n % NEXT * RUN", "n % NEXT", pack("d", deep=True, by_rows=False)),
    ("copy.pack", "line // VEC * STEP", "line // VEC", pack("z", deep=True, by_rows=False)),
    ("copy.pack", "(load * STEP + run)", "kk", pack("c", deep=True, by_rows=False)),
    ("copy.pack", "(load * VEC + v) * RUN + run", "kk * VEC + v", pack("d", deep=True, by_rows=False)),
    ("copy.pack", "line * STEP) if BY_ROWS", "line) if not BY_ROWS", pack("d", deep=True)),
    ("copy.pack", "kk * k_step) * REALS + first % REALS", "kk * k_step) * REALS", pack("z", shift=1)),
    ("copy.pack", "(step == 1) & uncut", "uncut", pack(deep=True, step=(2, 1))),
    ("copy.pack", "is_wide(s) &", "True &", pack(shift=1)),
    ("copy.pack", "is_wide(offset(s, ld * REALS))", "True", pack("d")),
    ("copy.pack", "REALS == 1 or is_whole(s)", "True", pack("c", shift=1)),
    ("copy.pack", "row * s_rs + col * s_ks", "row * s_rs", pack()),
    ("copy.pack", "k_tile * d_ss", "k_tile * d_ts", pack()),
    ("copy.pack", "kk * d_ks + i", "i", pack()),
    ("copy.pack", "batch * stride_d + panel", "batch * stride_s + panel", pack(batch=2)),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
