"""`ptx.warp_mma` as PTX: its instructions, done on 32 lanes here, multiply what the lanes hold.

The simulator has the intrinsic whole, so it knows nothing of which operand each register is.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from pyblasgpu.gpu.backend import device_function, unrolled
from pyblasgpu.gpu.build.compile import KernelSource
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.intrinsics.mma import SHAPES, elements_per_mma

ptx = pytest.importorskip("pyblasgpu.gpu.intrinsics.ptx")

LANES = 32
G, T = np.divmod(np.arange(LANES), 4)  # of each lane: its group, its place within


def products(counts, *arguments):
    """A kernel acc += a b, of fragments of so many reals; each lane is given addresses of its own."""
    real, cuda, update = ptx.REALS["float64"], ptx.cuda, ptx.warp_mma(*arguments)
    ACC, A, B = counts
    # plain loads and stores, whatever memory they are of
    load_acc, load_a, load_b = (ptx.load_shared(1, count, 1) for count in counts)
    store = ptx.store_shared(1)

    @device_function
    def store_one(i, held, pointer):
        store(pointer, i, held, i)

    store_acc = unrolled(ACC, store_one)

    def kernel(acc, a, b):
        total, left = cuda.local.array(ACC, real), cuda.local.array(A, real)
        right = cuda.local.array(B, real)
        load_acc(total, 0, acc, 0)
        load_a(left, 0, a, 0)
        load_b(right, 0, b, 0)
        update(total, left, right)
        store_acc(0, total, acc)

    source = KernelSource("products", None, (), "float64", "ppp", LANES, 1, 0, lambda: kernel)
    return to_ptx(source, SHAPES[arguments[2]])


def run(text, acc, a, b):
    """Do the PTX on all lanes; each of `acc`, `a`, `b` is [lane, real]."""
    memory, values = dict(zip("012", (acc, a, b), strict=True)), {}
    for line in text[text.index("ld.param") :].splitlines():
        operation, *operands = re.split(r"[\s,;]+", line.strip())
        names = re.findall(r"%[a-z]+\d+", line)
        match re.split(r"\.", operation)[0]:
            case "ld" | "st" if place := re.search(r"\[(%rd\d+)\+?(\d*)\]", line):
                reals = values[place[1]][:, int(place[2] or 0) // 8 :]
                for i, name in enumerate(name for name in names if name != place[1]):
                    if operation.startswith("ld"):
                        values[name] = reals[:, i].copy()
                    else:
                        reals[:, i] = values[name]
            case "ld":
                values[names[0]] = memory[re.search(r"_param_(\d)\]", line)[1]]
            case "cvta" | "mov":
                values[names[0]] = values[names[1]]
            case "add":
                values[names[0]] = values[names[1]] + values[names[2]]
            case "neg":
                values[names[0]] = -values[names[1]]
            case "xor":
                assert operands[-2] == "-9223372036854775808", line
                values[names[0]] = -values[names[1]]
            case "mma":
                multiply(line, values)
            case other:
                assert other in ("", "//", "ret", "}"), line


def multiply(line, values):
    """One instruction: its fragments as the PTX ISA has them (9.7.14.5, "Matrix Fragments" with .f64)."""
    m, k = map(int, re.search(r"m(\d+)n8k(\d+)", line).groups())
    d, a, b, c = (re.findall(r"%[a-z]+\d+", group) for group in re.findall(r"{([^}]*)}", line))
    left, right, total = np.full((m, k), np.nan), np.full((k, 8), np.nan), np.full((m, 8), np.nan)
    for i, name in enumerate(a):
        left[G + 8 * (i % (m // 8)), T + 4 * (i // (m // 8))] = values[name]
    for i, name in enumerate(b):
        right[T + 4 * i, G] = values[name]
    for i, name in enumerate(c):
        total[G + 8 * (i // 2), 2 * T + i % 2] = values[name]
    total = total + left @ right
    for i, name in enumerate(d):
        values[name] = total[G + 8 * (i // 2), 2 * T + i % 2]


def check(m, n, shape, reals_per_element, conj_a=False, conj_b=False, depth=1, first=0, three_m=False):
    """Integers, so that every order of adding gives the same."""
    rng = np.random.default_rng(2026)
    rows, along = elements_per_mma(shape, reals_per_element, three_m)
    rows, along, cols = m * rows, depth * along, 8 * n
    dtype = complex if reals_per_element == 2 else float

    def drawn(*extents):
        return rng.integers(-9, 10, (*extents, reals_per_element)).astype(float).view(dtype)[..., 0]

    a, b, c = drawn(rows, along), drawn(along, cols), drawn(rows, cols)
    # a[step, group] is A[8 group + g, 4 step + t]; b[step, j] is B[4 step + t, 8j + g]
    held_a = [a[8 * i + G, 4 * s + T] for s in range(along // 4) for i in range(rows // 8)]
    held_b = [b[4 * s + T, 8 * j + G] for s in range(along // 4) for j in range(n)]
    # acc[2j + odd, group] is C[8 group + g, 8j + 2t + odd]
    mine = [(8 * i + G, 8 * j + 2 * T + odd) for j in range(n) for odd in range(2) for i in range(rows // 8)]
    held_a, held_b, acc = (
        np.stack(held, axis=1).view(float).reshape(LANES, -1)
        for held in (held_a, held_b, [c[at] for at in mine])
    )
    if three_m:
        acc = np.zeros((LANES, len(mine) * 3))
    acc = np.hstack([np.full((LANES, first), 7.0), acc])
    counts = acc.shape[1], held_a.shape[1], held_b.shape[1]
    run(
        products(counts, m, n, shape, reals_per_element, conj_a, conj_b, depth, first, three_m),
        acc,
        held_a,
        held_b,
    )
    assert (acc[:, :first] == 7.0).all()
    a, b, actual = a.conj() if conj_a else a, b.conj() if conj_b else b, acc[:, first:].copy()
    if three_m:
        sums = a.real @ b.real, a.imag @ b.imag, (a.real + a.imag) @ (b.real + b.imag)
        expected = [each[at] for at in mine for each in sums]
    else:
        actual, expected = actual.view(dtype), [(c + a @ b)[at] for at in mine]
    assert np.array_equal(actual, np.stack(expected, axis=1))


@pytest.mark.parametrize("reals_per_element", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_instruction(shape, reals_per_element):
    check(2, 3, shape, reals_per_element)
    check(1, 2, shape, reals_per_element, depth=2, first=4)


@pytest.mark.parametrize("conj_a, conj_b", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_conjugation(shape, conj_a, conj_b):
    check(1, 1, shape, 2, conj_a, conj_b)


@pytest.mark.parametrize("conj_a, conj_b", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_sums_of_three_products(shape, conj_a, conj_b):
    check(2, 1, shape, 2, conj_a, conj_b, first=4, three_m=True)


def test_both_parts_at_once_take_a_quarter_of_the_instructions_of_a_shape():
    """Half of the rows, half of the k, and one product instead of four."""
    text = products((8, 4, 4), 1, 1, (16, 16), 2)
    assert text.count("mma.sync") == 1
    assert products((16, 4, 2), 1, 1, (16, 4), 2).count("mma.sync") == 4
