"""The command line: ``pyblasgpu info | demo | explain | build | tune | report | wisdom | bench``.

Exit code 0: done. 1: done, and a check failed. 2: wrong use, or it cannot run on this machine. Results go
to stdout, progress and complaints to stderr.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from . import __version__, terminal
from .errors import BackendUnavailable
from .options import (
    ROUTINES,
    Command,
    parse_amount,
    parse_architectures,
    parse_batches,
    parse_benchmarked,
    parse_call,
    parse_count,
    parse_device,
    parse_dtypes,
    parse_duration,
    parse_families,
    parse_layouts,
    parse_part,
    parse_prefixed,
    parse_routines,
    parse_shape,
    parse_shapes,
    parse_size_classes,
    parse_sizes,
    parse_splits,
    parse_stages,
    parse_strategy,
    parse_tuned,
    parse_tuned_device,
    parse_variants,
    parse_whole,
)
from .types import DTYPES

__all__ = ["main", "parser"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (``sys.argv[1:]`` if None) names; returns the exit code."""
    words = ["pyblasgpu"]

    def run() -> int:
        options = parser().parse_args(argv)
        words.append(options.command)
        return options.run(options)

    return terminal.guarded(words, run)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; each command's options name the function that runs it."""
    parser = argparse.ArgumentParser(prog="pyblasgpu", description="A GPU BLAS written in Python.")
    parser.add_argument("--version", action="version", version=f"pyblasgpu {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=Command)

    def command(name: str, run: Callable[[argparse.Namespace], int], summary: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=summary)
        added.add_argument("--json", action="store_true", help="print JSON for machines, not a table")
        added.set_defaults(run=run)
        return added

    command("info", _info, "Print what was found: devices, versions, tuned values, folders.")
    demo = command("demo", _demo, "Run GEMM, TRMM and TRSM in s, d, c, z, check and time them.")
    demo.add_argument("--verbose", action="store_true", help="also print the Configs in full")
    demo.add_argument("--n", type=parse_count, help="order of the matrices (4096 on a GPU, 1024 on a CPU)")
    _add_explain(command("explain", _explain, "Print the kernels of a call, and their text."))
    _add_build(command("build", _build, "Compile kernels ahead, so that no call waits for a compiler."))
    _add_tune(command("tune", _tune, "Find the best kernel configurations for this device."))
    _add_report(command("report", _report, "Show what a tuning run has recorded."))
    _add_wisdom(command("wisdom", _wisdom, "List, locate, export, import or forget tuned values."))
    _add_bench(command("bench", _bench, "Time this library and cuBLAS side by side."))
    return parser


def _add_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "call",
        type=parse_call,
        metavar="ROUTINE",
        help="with its dtype: dgemm, strsm, zherk, sgemv, dpotrf, ...",
    )
    parser.add_argument(
        "shape", type=parse_shape, metavar="N|MxN|MxNxK", help="extents of the result, and k; of a vector N"
    )
    parser.add_argument(
        "--device",
        type=parse_device,
        metavar="D",
        help="number or name; also of one that is not here: h200, ...",
    )
    parser.add_argument("--batch", type=parse_count, default=1, metavar="N", help="matrices (1)")
    parser.add_argument(
        "--method", choices=("3m", "tensor"), help="of products: 3m for complex ones, or on tensor cores"
    )
    text = parser.add_mutually_exclusive_group()
    for name, what in (
        ("source", "Python, with the values that the Config gives it"),
        ("ptx", "PTX, by the compiler"),
        ("sass", "machine instructions, by nvdisasm"),
    ):
        text.add_argument(
            f"--{name}", dest="text", action="store_const", const=name, help=f"the kernels as text: {what}"
        )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="of a file for each kernel (stdout)")


def _add_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--arch",
        type=parse_architectures,
        metavar="sm_XX,...",
        help="architectures; no GPU is needed (those of the devices here)",
    )
    parser.add_argument("-j", "--jobs", type=parse_count, metavar="N", help="processes (one a core)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="of the archives (the user's)")


def _add_tune(parser: argparse.ArgumentParser) -> None:
    _add_scope(parser, parse_prefixed)
    efforts = ("quick", "normal", "exhaustive")
    parser.add_argument(
        "--effort", choices=efforts, default="normal", help="how many candidates are timed (normal)"
    )
    parser.add_argument(
        "--strategy",
        type=parse_strategy,
        metavar="NAME",
        help="how they are searched (likely; with --effort exhaustive: exhaustive)",
    )
    parser.add_argument(
        "--budget",
        type=parse_duration,
        metavar="TIME",
        help="stop after 90s, 10m, 2h, ... (quick: 140s, normal: 14m)",
    )
    parser.add_argument("--resume", action="store_true", help="go on with an earlier run of this effort")
    parser.add_argument("--report", metavar="FOLDER", help="also write tables and plots there")
    parser.add_argument(
        "--dry-run", action="store_true", help="only count what each rule removes; needs no GPU"
    )
    parser.add_argument("--compile", action="store_true", help="in a dry run, let the compiler prune too")
    parser.add_argument(
        "--scipy",
        action="store_true",
        help="only find from which size on patch_scipy sends calls to the device",
    )
    for name, kind, what in (
        ("threads", parse_whole, "resident threads of a multiprocessor"),
        ("blocks", parse_whole, "resident blocks of a multiprocessor"),
        ("reuse", parse_amount, "FMAs for each element loaded"),
        ("score", parse_part, "part of the best estimate that a candidate's must reach, 0 to 1"),
    ):
        parser.add_argument(f"--min-{name}", type=kind, metavar="X", help=f"guideline: {what}")
    parser.add_argument("--family", type=parse_families, metavar="F,F,...", help="kernel families (all)")
    parser.add_argument(
        "--layout", type=parse_layouts, metavar="L,L,...", help="how operands lie: nn, nt, ... (all)"
    )
    parser.add_argument(
        "--size",
        type=parse_size_classes,
        metavar="C,C,...",
        help="size classes: tiny, low_rank, few, ... (all)",
    )
    parser.add_argument(
        "--stage",
        type=parse_stages,
        metavar="S,S,...",
        help="of a run: kernels, trsm_fused, algorithms (all)",
    )
    parser.add_argument(
        "--device",
        type=parse_tuned_device,
        metavar="D",
        help="number or name of the device (0), or cpu; in a dry run also of one that is not here: h200, ...",
    )


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
    parser.add_argument("--routine", type=parse_tuned, metavar="R,R,...", help="of forget (all)")
    parser.add_argument("--dtype", type=parse_dtypes, metavar="T,T,...", help="of forget (all)")


def _add_bench(parser: argparse.ArgumentParser) -> None:
    _add_scope(parser, parse_benchmarked)
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
        "--shapes",
        type=parse_shapes,
        metavar="MxNxK,...|awkward|lu|between",
        help="products of these extents instead of --sizes; awkward: skinny, long and odd ones; lu: those of "
        "block LU; between: at which nothing is tuned",
    )
    parser.add_argument(
        "--batched",
        type=parse_batches,
        default=(),
        metavar="COUNTxN,COUNTxMxNxK,...",
        help="strided batches instead of --sizes: of products, and with M = K of systems of trsm",
    )
    parser.add_argument(
        "--rhs",
        type=parse_sizes,
        default=(),
        metavar="R,R,...",
        help="trmm and trsm with so many columns of B (rows, from the right) instead of square ones",
    )
    parser.add_argument(
        "--splits",
        type=parse_splits,
        default=(),
        metavar="S,S,...",
        help="time products with their k in so many slices too; 0: by stream-K",
    )
    parser.add_argument(
        "--packed", action="store_true", help="time products with their operands packed, and not, too"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the results go as JSON (by device)")
    parser.add_argument("--plot", action="store_true", help="also draw TFLOP/s over n, beside the JSON")


def _add_scope(parser: argparse.ArgumentParser, names: Callable[[str], Sequence[str]] | None = None) -> None:
    """The options that name routines and dtypes; argparse parses a default that is a string."""
    routines, dtypes = ",".join(ROUTINES), ",".join(DTYPES)
    parser.add_argument(
        "--routine", type=names or parse_routines, default=routines, metavar="R,R,...", help="(%(default)s)"
    )
    parser.add_argument("--dtype", type=parse_dtypes, default=dtypes, metavar="T,T,...", help="(%(default)s)")


@contextmanager
def _advising(advice: str) -> Iterator[None]:
    """Add `advice` to the error where a device is unavailable."""
    try:
        yield
    except BackendUnavailable as missing:
        raise BackendUnavailable(f"{str(missing).rstrip('.')}; {advice}") from None


def _info(options: argparse.Namespace) -> int:
    from . import info

    facts = info.collect()
    if options.json:
        print(json.dumps(facts, indent=2))
    else:
        info.show(facts, terminal.console(terminal.WIDTH))
    return 0


def _demo(options: argparse.Namespace) -> int:
    from . import demo

    with terminal.console(stderr=True).status("") as status:
        rows = list(demo.collect(options.n, progress=status.update))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        demo.show(rows, terminal.console(terminal.WIDTH), options.verbose)
    return 0 if all(row.passed for row in rows) else 1


def _explain(options: argparse.Namespace) -> int:
    from . import explain_command

    with _advising("name a card that need not be here, as in --device h200"):
        return explain_command.main(options)


def _build(options: argparse.Namespace) -> int:
    from . import build

    return build.main(options)


def _tune(options: argparse.Namespace) -> int:
    from .tuning import command as tune_command

    with _advising("--dry-run with --device h200, and --device cpu, need no GPU"):
        return tune_command.main(options)


def _report(options: argparse.Namespace) -> int:
    from .tuning import command as tune_command

    with _advising("name a recorded sweep, which needs no GPU"):
        return tune_command.show_report(options)


def _wisdom(options: argparse.Namespace) -> int:
    from .tuning import wisdom

    return wisdom.main(options)


def _bench(options: argparse.Namespace) -> int:
    from .bench import command

    return command.main(options)
