"""Ways in which Kurzak et al.'s stencil reads A and B, timed: plain loads, and textures.

``python tuning/papers/reads.py [--dtype s,d] [--layout nn] [--seconds 1m] [--out FOLDER]``

The kernel is the winner of Table 2. The read-only path takes the place of one-dimensional textures, and
`textured` has two-dimensional ones. The bits of the results are compared with those by plain loads.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu import gemm
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import Device
from pyblasgpu.kernels.gemm.simt import STEM, GemmSimt
from pyblasgpu.operands import Operand
from pyblasgpu.options import parse_count
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.measure import flops
from pyblasgpu.tuning.worker_bench import Job
from pyblasgpu.types import DTYPES, Dtype
from tuning.papers.device_time import device_seconds
from tuning.papers.experiment import Experiment, Kernel, Rows
from tuning.papers.kurzak import LAYOUTS, winner_of_table_2
from tuning.papers.kurzak_timed import SIZE, config_of
from tuning.papers.study import Figure, Study, add_options, names_in, run_study
from tuning.papers.textured import product

__all__ = ["STUDY", "main", "rate"]

WAYS = PLAIN, READ_ONLY, TEXTURE = "plain", "read-only", "2D texture"


def rate(letter: str, layout: str, way: str, n: int) -> float:
    """TFLOP/s of the kernel of Table 2 at order `n`, its operands read in one of `WAYS`.

    Raises
    ------
    RuntimeError
        Where the bits are not those of plain loads.
    """
    import cupy

    rng, dtype = cupy.random.default_rng(n), DTYPES[letter]
    a, b = (_random(rng, n, dtype, order) for order in layout)
    out, expected = (cupy.zeros((n, n), dtype.name, order="F") for _ in range(2))
    winner = winner_of_table_2(letter, layout)
    plain, read_only = (config_of(letter, layout, winner, texture) for texture in (False, True))

    def by(config: GemmSimt, target: Any) -> None:
        with override(STEM, config):
            gemm(a, b, out=target)

    by(plain, expected)
    with ExitStack() as held:
        if way == TEXTURE:
            operands = [_operand(each, dtype) for each in (a, b, out)]
            enqueue = held.enter_context(product(plain, 1, operands[0], operands[1], 0, operands[2]))
            call = partial(_on_current_stream, enqueue)
        else:
            call = partial(by, read_only if way == READ_ONLY else plain, out)
        seconds = device_seconds(call, [])
    if not bool((out == expected).all()):
        raise RuntimeError(f"{letter}gemm {layout} of order {n}, {way}: other bits than by plain loads")
    return flops("gemm", dtype, (n, n, n)) / seconds / 1e12


def _on_current_stream(enqueue: Callable[[int], None]) -> None:
    import cupy

    enqueue(cupy.cuda.get_current_stream().ptr)


def _random(rng: Any, n: int, dtype: Dtype, order: str) -> Any:
    reals = rng.standard_normal((n, n * dtype.reals_per_element), dtype.real)
    matrix = reals.view(dtype.name)
    return matrix if order == "t" else matrix.T


def _operand(matrix: Any, dtype: Dtype) -> Operand:
    row_stride, col_stride = (step // dtype.itemsize for step in matrix.strides)
    rows, cols = matrix.shape
    return Operand(matrix.data.ptr, rows, cols, row_stride, col_stride, dtype)


def _kernels(options: argparse.Namespace, device: Device) -> Iterable[Kernel]:
    for layout in options.layout:
        for letter in options.dtype:
            winner = winner_of_table_2(letter, layout)
            yield from ((STEM, config_of(letter, layout, winner, texture)) for texture in (False, True))


def _row(run: Experiment, letter: str, layout: str, n: int) -> dict[str, Any]:
    """The rates of one GEMM, as JSON holds them."""
    rates = {}
    for way in WAYS:
        job = Job("gemm", letter, layout, (("reads", way),))
        found = run.remembered(job, (n, n, n), partial(rate, letter, layout, way, n))
        if found is not None:
            rates[way] = round(found, 3)
    w = config_of(letter, layout, winner_of_table_2(letter, layout))
    return {
        "dtype": letter,
        "layout": layout,
        "n": n,
        "tile": f"{w.BLK_M}×{w.BLK_N}×{w.BLK_K}",
        "rates": rates,
    }


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    pairs = [(letter, layout) for layout in options.layout for letter in options.dtype]
    return {"results": [_row(run, letter, layout, options.n) for letter, layout in run.in_turn(pairs)]}


def table(results: Rows, device: str) -> Table:
    """A GEMM a row: TFLOP/s by way."""
    made = Table("GEMM", "n", "tile", *WAYS, title=f"TFLOP/s by reads on {device}")
    for row in results:
        rates = [f"{row['rates'][way]:.2f}" if way in row["rates"] else "" for way in WAYS]
        made.add_row(f"{row['dtype']}gemm {row['layout']}", str(row["n"]), row["tile"], *rates)
    return made


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    return [table(made["results"], made["device"])]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    return []


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=list(DTYPES), type=names_in(DTYPES), help="s,d,c,z; default: all")
    parser.add_argument("--layout", default=["nn"], type=names_in(LAYOUTS), help="nn,nt,tn,tt; default: nn")
    parser.add_argument("--n", type=parse_count, default=SIZE, help="order (%(default)s)")
    add_options(parser, "1m")
    return parser.parse_args(arguments)


STUDY = Study("reads", _parse, _kernels, _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/reads.py"], main))
