"""The command line: ``pyblasgpu info | demo | tune | report | wisdom | bench``.

Exit code 0: done. 1: done, and a check failed. 2: wrong use, or it cannot run on this machine. Results go
to stdout, progress and complaints to stderr.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from . import __version__, terminal
from .database import FAMILIES, sizes_of
from .errors import PyblasgpuError
from .types import DTYPES, dtype_of

__all__ = [
    "main", "parse_count", "parse_device", "parse_dtypes", "parse_listed", "parse_shapes",
    "parse_seconds", "parse_sizes", "parse_variants",
]  # fmt: skip

ROUTINES = ("gemm", "trmm", "trsm")
#: What is benchmarked too where it is asked for.
OTHERS = ("gemm3m", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr")
#: Columns of a table that goes into a file or a pipe.
WIDTH = 140
MOST = 2**63 - 1  # of a number that is counted with


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (``sys.argv[1:]`` if None) names; returns the exit code."""
    words = ["pyblasgpu"]

    def run() -> int:
        options = _parser().parse_args(argv)
        words.append(options.command)
        return options.run(options)

    return terminal.guarded(words, run)


class _Command(argparse.ArgumentParser):
    """One whose options may stand before, between and after its other arguments."""

    _between = False

    def parse_known_args(self, args=None, namespace=None):
        if self._between:
            return super().parse_known_args(args, namespace)
        self._between = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._between = False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyblasgpu", description="A GPU BLAS written in Python.")
    parser.add_argument("--version", action="version", version=f"pyblasgpu {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=_Command)

    def command(name: str, run, summary: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=summary)
        added.add_argument("--json", action="store_true", help="print JSON for machines, not a table")
        added.set_defaults(run=run)
        return added

    command("info", _info, "Print what was found: devices, versions, database, folders.")
    demo = command("demo", _demo, "Run GEMM, TRMM and TRSM in s, d, c, z, check and time them.")
    demo.add_argument("--n", type=parse_count, help="order of the matrices (4096 on a GPU, 1024 on a CPU)")
    _add_tune(command("tune", _tune, "Find the best kernel configurations for this device."))
    _add_report(command("report", _report, "Show what a tuning run has recorded."))
    _add_wisdom(command("wisdom", _wisdom, "List, locate, hand on, take in or forget tuned values."))
    _add_bench(command("bench", _bench, "Time this library and cuBLAS side by side."))
    return parser


def _add_tune(parser: argparse.ArgumentParser) -> None:
    _add_scope(parser, _prefixed)
    efforts = ("quick", "normal", "exhaustive")
    parser.add_argument("--effort", choices=efforts, default="normal", help="how many candidates are timed")
    parser.add_argument(
        "--strategy", type=_strategy, metavar="NAME",
        help="how they are searched (likely; with --effort exhaustive: exhaustive)",
    )  # fmt: skip
    parser.add_argument(
        "--budget", type=_duration, metavar="TIME",
        help="stop after 90s, 10m, 2h, ... (quick: 140s, normal: 14m)",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on with an earlier run of this effort")
    parser.add_argument("--report", metavar="FOLDER", help="also write tables and plots there")
    parser.add_argument(
        "--dry-run", action="store_true", help="only count what each rule removes; needs no GPU"
    )
    parser.add_argument("--compile", action="store_true", help="in a dry run, let the compiler prune too")
    for name, kind, what in (
        ("threads", _whole, "resident threads of a multiprocessor"),
        ("blocks", _whole, "resident blocks of a multiprocessor"),
        ("reuse", _amount, "FMAs for each element loaded"),
        ("score", _part, "part of the best estimate that a candidate's must reach, 0 to 1"),
    ):
        parser.add_argument(f"--min-{name}", type=kind, metavar="X", help=f"guideline: {what}")
    parser.add_argument("--family", type=_families, metavar="F,F,...", help="kernel families (all)")
    parser.add_argument(
        "--layout", type=_layouts, metavar="L,L,...", help="how operands lie: nn, nt, ... (all)"
    )
    parser.add_argument(
        "--size", type=_size_classes, metavar="C,C,...", help="size classes: tiny, low_rank, few, ... (all)"
    )
    parser.add_argument(
        "--stage",
        type=_stages,
        metavar="S,S,...",
        help="of a run: kernels, stop_sizes, solvers, methods (all)",
    )
    parser.add_argument(
        "--device", type=parse_device, metavar="D",
        help="number or name of the device (0); in a dry run also of one that is not here: h200, ...",
    )  # fmt: skip


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sweeps", nargs="*", metavar="SWEEP", help="recorded sweeps (that of the device here)"
    )
    parser.add_argument("--out", dest="report", metavar="FOLDER", help="write tables and plots there")


def _add_wisdom(parser: argparse.ArgumentParser) -> None:
    actions = ("list", "where", "export", "import", "forget")
    parser.add_argument("action", choices=actions)
    parser.add_argument("file", nargs="?", help="of export (else stdout) and import")
    parser.add_argument("--device", metavar="D", help="number or name of the device (0)")
    parser.add_argument("--routine", type=_routines, metavar="R,R,...", help="of forget (all)")
    parser.add_argument("--dtype", type=parse_dtypes, metavar="T,T,...", help="of forget (all)")


def _add_bench(parser: argparse.ArgumentParser) -> None:
    _add_scope(parser, _benchmarked)
    sizes, variants = "256,512,1024,2048,4096,8192", "NN,TN,LLNN,LL,LN,LNN"
    parser.add_argument(
        "--sizes",
        type=parse_sizes,
        default=sizes,
        metavar="N,N,...",
        help="orders of the matrices (%(default)s)",
    )
    parser.add_argument(
        "--variants",
        type=parse_variants,
        default=variants,
        metavar="V,V,...",
        help="trans_a trans_b of gemm, side uplo trans diag of trmm and trsm, side uplo of symm and hemm, "
        "uplo trans of syrk, herk, syr2k and her2k, uplo trans_a trans_b of gemmtr (%(default)s)",
    )
    parser.add_argument(
        "--shapes", type=parse_shapes, metavar="MxNxK,...|awkward|between",
        help="products of these extents instead of --sizes; awkward: skinny, long and odd ones; between: at "
        "which nothing is tuned",
    )  # fmt: skip
    parser.add_argument(
        "--batched", type=_batches, default=(), metavar="COUNTxN,COUNTxMxNxK,...",
        help="strided batches instead of --sizes: of products, and with M = K of systems of trsm",
    )  # fmt: skip
    parser.add_argument(
        "--rhs", type=parse_sizes, default=(), metavar="R,R,...",
        help="trmm and trsm with so many columns of B (rows, from the right) instead of square ones",
    )  # fmt: skip
    parser.add_argument(
        "--splits", type=_splits, default=(), metavar="S,S,...",
        help="time products with their k in so many chunks too; 0: with their last tiles parted",
    )  # fmt: skip
    parser.add_argument(
        "--packed", action="store_true", help="time products with their operands packed, and not, too"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the results go as JSON (by device)")
    parser.add_argument("--plot", action="store_true", help="also draw TFLOP/s over n, beside the JSON")


def _add_scope(parser: argparse.ArgumentParser, names: Callable[[str], Sequence[str]] | None = None) -> None:
    """The options that name routines and dtypes; argparse parses a default that is a string."""
    routines, dtypes = ",".join(ROUTINES), ",".join(DTYPES)
    parser.add_argument(
        "--routine", type=names or _routines, default=routines, metavar="R,R,...", help="(%(default)s)"
    )
    parser.add_argument("--dtype", type=parse_dtypes, default=dtypes, metavar="T,T,...", help="(%(default)s)")


def parse_listed(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names in a list, each once; of letters and routines in any case."""
    items = tuple(dict.fromkeys(item.strip() for item in text.split(",")))
    found = tuple(next((name for name in known if name == item.lower()), item) for item in items)
    for item in found:
        if item not in known:
            raise argparse.ArgumentTypeError(f"{item!r} is none of {', '.join(known)}")
    return found


def parse_device(text: str) -> str:
    """A number, or the name of a device that is here or known; the driver is asked later."""
    from .gpu import device

    if not text.strip().isdecimal():
        try:
            device.named(text)
        except ValueError as unknown:
            raise argparse.ArgumentTypeError(str(unknown)) from None
    return text


def _routines(text: str) -> tuple[str, ...]:
    return parse_listed(text, ROUTINES)


def _benchmarked(text: str) -> tuple[str, ...]:
    return parse_listed(text, (*ROUTINES, *OTHERS))


def _prefixed(text: str) -> tuple[str, ...]:
    """Routines, in all dtypes asked for ('gemm') or in their own ('sgemm')."""
    return parse_listed(text, (*ROUTINES, *(dtype + name for dtype in DTYPES for name in ROUTINES)))


def parse_dtypes(text: str) -> tuple[str, ...]:
    return parse_listed(",".join(_letter_of(item.strip()) for item in text.split(",")), tuple(DTYPES))


def _letter_of(dtype: str) -> str:
    """The BLAS's letter of a dtype ('s', 'S', 'float32'); what is none stays as it is."""
    try:
        return dtype if dtype.lower() in DTYPES else dtype_of(dtype).letter
    except TypeError:
        return dtype


def _strategy(text: str) -> str:
    from .tuning.strategies import STRATEGIES

    if text not in STRATEGIES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(STRATEGIES)}")
    return text


def _families(text: str) -> tuple[str, ...]:
    return parse_listed(text, tuple(FAMILIES))


def _layouts(text: str) -> tuple[str, ...]:
    return parse_listed(
        text, tuple(dict.fromkeys(name for family in FAMILIES.values() for name in family.layouts))
    )


def _size_classes(text: str) -> tuple[str, ...]:
    return parse_listed(text, tuple(dict.fromkeys(size for stem in FAMILIES for size in sizes_of(stem))))


def _stages(text: str) -> tuple[str, ...]:
    from .tuning.tuner import STAGES

    return parse_listed(text, STAGES)


def parse_variants(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.upper().split(",")))


def parse_sizes(text: str) -> tuple[int, ...]:
    return tuple(parse_count(item) for item in text.split(","))


def _splits(text: str) -> tuple[int, ...]:
    return tuple(_whole(item) for item in text.split(","))


def parse_shapes(text: str) -> tuple[tuple[int, ...], ...] | str:
    """(m, n, k) of each, or the name of a list."""
    if text.isalpha():
        return text
    shapes = tuple(tuple(parse_count(extent) for extent in item.split("x")) for item in text.split(","))
    if any(len(shape) != 3 for shape in shapes):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of MxNxK")
    return shapes


def _batches(text: str) -> tuple[tuple[int, ...], ...]:
    """(m, n, k, batch) of each."""
    found = []
    for item in text.split(","):
        count, *extents = (parse_count(extent) for extent in item.split("x"))
        if len(extents) not in (1, 3):
            raise argparse.ArgumentTypeError(f"{item!r} is neither COUNTxN nor COUNTxMxNxK")
        found.append((*(extents * 3)[:3], count))
    return tuple(found)


def parse_count(text: str) -> int:
    found = _integer(text)
    if not 0 < found <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive integer")
    return found


def _whole(text: str) -> int:
    found = _integer(text)
    if not 0 <= found <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from 0 on")
    return found


def _integer(text: str) -> int:
    """Its value; -1 for what is none, or has a sign."""
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) <= len(str(MOST)) else -1


def _amount(text: str) -> float:
    found = _number(text)
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return found


def _part(text: str) -> float:
    found = _number(text)
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 1")
    return found


def _number(text: str) -> float:
    """Its value; NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_seconds(text: str) -> float:
    found = _number(text)
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return found


def _duration(text: str) -> float:
    """Seconds of '90', '90s', '10m' or '2h'."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    seconds = _number(number) * (unit or 1)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 90s, 10m, 2h")
    return seconds


def _info(options: argparse.Namespace) -> int:
    from . import info

    facts = info.collect()
    if options.json:
        print(json.dumps(facts, indent=2))
    else:
        info.show(facts, terminal.console(WIDTH))
    return 0


def _demo(options: argparse.Namespace) -> int:
    from . import demo

    with terminal.console(stderr=True).status("") as status:
        rows = list(demo.collect(options.n, progress=status.update))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        demo.show(rows, terminal.console(WIDTH))
    return 0 if all(row.passed for row in rows) else 1


def _tune(options: argparse.Namespace) -> int:
    from .execution import routine
    from .tuning import run

    return run.main(options, routine)


def _report(options: argparse.Namespace) -> int:
    from .tuning import run

    return run.show_report(options)


def _wisdom(options: argparse.Namespace) -> int:
    from .tuning import wisdom

    return wisdom.main(options)


def _bench(options: argparse.Namespace) -> int:
    root = Path(__file__).resolve().parents[1]
    if not (root / "benchmarks" / "run.py").is_file():
        raise PyblasgpuError(
            "the benchmarks are not part of the installed package; clone the repository and run "
            "`pip install -e .` there"
        )
    sys.path.insert(0, str(root))
    return importlib.import_module("benchmarks.run").main(options)
