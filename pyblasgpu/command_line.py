"""The options of the command line, and their help."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import __version__
from .options import (
    ROUTINES,
    Command,
    add_help,
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
    parse_patches,
    parse_prefixed,
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

__all__ = ["make_parser"]


def make_parser(runs: Mapping[str, Callable[[argparse.Namespace], int]]) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Parameters
    ----------
    runs : mapping of str to callable
        The function that runs each command; it is the attribute ``run`` of the command's options.
    """
    parser = argparse.ArgumentParser(
        prog="pyblasgpu",
        description="Inspect, tune and time pyblasgpu, a GPU BLAS written in Python.",
        epilog="Example: pyblasgpu info",
        add_help=False,
    )
    add_help(parser)
    parser.add_argument(
        "--version",
        action="version",
        version=f"pyblasgpu {__version__}",
        help="Print the version, and exit. Example: --version",
    )
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="command",
        parser_class=Command,
        help="Choose one of these commands. Example: pyblasgpu info",
    )

    def command(name: str, summary: str, example: str) -> argparse.ArgumentParser:
        epilog = f"Example: pyblasgpu {name} {example}".rstrip()
        added = commands.add_parser(name, help=summary, description=summary, epilog=epilog)
        added.add_argument(
            "--json", action="store_true", help="Print JSON for machines, not a table. Example: --json"
        )
        added.set_defaults(run=runs[name])
        return added

    command("info", "Print what was found: devices, versions, tuned values, folders.", "")
    demo = command("demo", "Run GEMM, TRMM and TRSM in s, d, c and z, check them and time them.", "--n 2048")
    demo.add_argument(
        "--verbose", action="store_true", help="Print the Configs of kernels in full too. Example: --verbose"
    )
    demo.add_argument(
        "--n",
        type=parse_count,
        help="Set the order of the matrices. The default is 4096 on a GPU and 1024 on a CPU. "
        "Example: --n 2048",
    )
    explained = "Print the kernels of a call with their Configs, or the kernels' text."
    _add_explain(command("explain", explained, "dgemm 4096 --device h200"))
    built = "Compile kernels ahead, so that no call waits for a compiler."
    _add_build(command("build", built, "--arch sm_90"))
    _add_tune(command("tune", "Find the best kernel Configs of a device.", "--routine dgemm --budget 10m"))
    _add_report(command("report", "Show what a tuning run has recorded.", "--out report"))
    kept = "List, locate, export, import or forget the tuned values of this user."
    _add_wisdom(command("wisdom", kept, "export mine.json --device h200"))
    timed = "Time this library and cuBLAS side by side."
    _add_bench(command("bench", timed, "--routine gemm --dtype d --plot"))
    run = "Run a program with SciPy, PyTorch and CuPy patched, and print what ran where."
    _add_run(command("run", run, "script.py --its-option"))
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--patch",
        type=parse_patches,
        metavar="P,P,...",
        help="Patch these of scipy, numpy, torch and cupy, once the program imports them. The default is all "
        "but numpy. Example: --patch scipy,torch",
    )
    parser.add_argument(
        "--backend",
        choices=("auto", "cuda", "cpu"),
        help="Compute on a GPU (cuda), or on the processor for tests (cpu). The default is auto: nothing is "
        "patched where there is no GPU. Example: --backend cpu",
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="Run a module, with all that follows as its arguments. Example: -m package.module",
    )
    parser.add_argument("script", nargs="?", help="Name the program's file. Example: pyblasgpu run script.py")
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        help="Give the program these arguments. Example: pyblasgpu run script.py --its-option",
    )


def _add_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "call",
        type=parse_call,
        metavar="ROUTINE",
        help="Name the routine with its dtype. Example: pyblasgpu explain strsm 4096x64",
    )
    parser.add_argument(
        "shape",
        type=parse_shape,
        metavar="N|MxN|MxNxK",
        help="Give the extents of the result and k, or the length of a vector. "
        "Example: pyblasgpu explain dgemm 4096x512x96",
    )
    parser.add_argument(
        "--device",
        type=parse_device,
        metavar="D",
        help="Name a device by its number or its name, or a card that is described and not here. The default "
        "is device 0. Example: --device h200",
    )
    parser.add_argument(
        "--batch",
        type=parse_count,
        default=1,
        metavar="N",
        help="Explain a batch of N matrices. The default is 1. Example: --batch 100",
    )
    parser.add_argument(
        "--method",
        choices=("3m", "tensor"),
        help="Compute complex products by three real ones (3m), or products on tensor cores (tensor). "
        "Example: --method tensor",
    )
    text = parser.add_mutually_exclusive_group()
    for name, what in (
        ("source", "Python, with the values that the Config gives it"),
        ("ptx", "PTX, as the compiler writes it"),
        ("sass", "machine instructions, as nvdisasm writes them"),
    ):
        text.add_argument(
            f"--{name}",
            dest="text",
            action="store_const",
            const=name,
            help=f"Print the kernels as {what}. Example: --{name}",
        )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="Write each kernel's text to a file in this folder, not to stdout. Example: --ptx --out kernels",
    )


def _add_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--arch",
        type=parse_architectures,
        metavar="sm_XX,...",
        help="Name the architectures, which need no GPU here. The default is those of the devices here. "
        "Example: --arch sm_80,sm_90",
    )
    parser.add_argument(
        "-j",
        "--jobs",
        type=parse_count,
        metavar="N",
        help="Compile in N processes. The default is one for each core. Example: --jobs 4",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="Write the archives to this folder. The default is the user's. Example: --out archives",
    )


def _add_tune(parser: argparse.ArgumentParser) -> None:
    _add_scope(parser, parse_prefixed)
    parser.add_argument(
        "--effort",
        choices=("quick", "normal", "exhaustive"),
        default="normal",
        help="Choose how many candidates are timed. The default is normal. Example: --effort quick",
    )
    parser.add_argument(
        "--strategy",
        type=parse_strategy,
        metavar="NAME",
        help="Choose how candidates are searched. The default is likely, and with --effort exhaustive it is "
        "exhaustive. Example: --strategy score-first",
    )
    parser.add_argument(
        "--budget",
        type=parse_duration,
        metavar="TIME",
        help="Stop after this time in seconds, minutes or hours. The default is 140s with --effort quick and "
        "14m with normal. Example: --budget 10m",
    )
    parser.add_argument(
        "--resume", action="store_true", help="Go on with an earlier run of this effort. Example: --resume"
    )
    parser.add_argument(
        "--report",
        metavar="FOLDER",
        help="Write tables and plots to this folder too. Example: --report report",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="Only count the candidates that each rule removes, which needs no GPU. Example: --dry-run",
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="Let the compiler remove candidates in a dry run too. Example: --dry-run --compile",
    )
    parser.add_argument(
        "--scipy",
        action="store_true",
        help="Only find the sizes from which patch_scipy sends calls to the device. Example: --scipy",
    )
    parser.add_argument(
        "--torch",
        action="store_true",
        help="Only find the sizes from which patch_torch and patch_cupy serve calls. Example: --torch",
    )
    _add_guidelines(parser)
    _add_search_scope(parser)
    parser.add_argument(
        "--device",
        type=parse_tuned_device,
        metavar="D",
        help="Name the device by its number or its name, or the processor by cpu. A dry run takes a card "
        "that is not here. The default is device 0. Example: --device cpu",
    )


def _add_guidelines(parser: argparse.ArgumentParser) -> None:
    """Add the rules that a candidate must keep."""
    for name, kind, what, example in (
        ("threads", parse_whole, "X resident threads on a multiprocessor", "512"),
        ("blocks", parse_whole, "X resident blocks on a multiprocessor", "2"),
        ("reuse", parse_amount, "X FMAs for each element that is loaded", "8"),
        ("score", parse_part, "an estimate of X, from 0 to 1, times the best one", "0.5"),
    ):
        parser.add_argument(
            f"--min-{name}",
            type=kind,
            metavar="X",
            help=f"Remove candidates that have not at least {what}. Example: --min-{name} {example}",
        )


def _add_search_scope(parser: argparse.ArgumentParser) -> None:
    """Add the options that narrow a search; all are searched by default."""
    for name, kind, metavar, what, example in (
        ("family", parse_families, "F,F,...", "kernels of these families", "gemm_simt,gemm_mma"),
        ("layout", parse_layouts, "L,L,...", "operands that are laid out so", "nn,nt"),
        ("size", parse_size_classes, "C,C,...", "problems of these size classes", "tiny,low_rank"),
        ("stage", parse_stages, "S,S,...", "these stages of a run", "kernels,algorithms"),
    ):
        parser.add_argument(
            f"--{name}",
            type=kind,
            metavar=metavar,
            help=f"Tune only {what}. The default is all. Example: --{name} {example}",
        )


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sweeps",
        nargs="*",
        metavar="SWEEP",
        help="Name recorded sweeps. The default is that of the device here. "
        "Example: pyblasgpu report sweep.jsonl.gz",
    )
    to = "Write tables and plots to this folder. Example: --out report"
    parser.add_argument("--out", dest="report", metavar="FOLDER", help=to)


def _add_wisdom(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=("list", "where", "export", "import", "forget"),
        help="List tuned values, print where they are, write them out, take them in, or drop them. "
        "Example: pyblasgpu wisdom where --device h200",
    )
    parser.add_argument(
        "file",
        nargs="?",
        help="Name the file to export to, by default stdout, or to import from. "
        "Example: pyblasgpu wisdom import theirs.json",
    )
    parser.add_argument(
        "--device",
        metavar="D",
        help="Name the device by its number or its name, or the processor by cpu. The default is device 0, "
        "and all devices of list. Example: --device cpu",
    )
    parser.add_argument(
        "--routine",
        type=parse_tuned,
        metavar="R,R,...",
        help="Forget values of these routines only. Example: pyblasgpu wisdom forget --routine gemm,trsm",
    )
    parser.add_argument(
        "--dtype",
        type=parse_dtypes,
        metavar="T,T,...",
        help="Forget values of these dtypes only. Example: pyblasgpu wisdom forget --dtype s,d",
    )


def _add_bench(parser: argparse.ArgumentParser) -> None:
    _add_scope(parser, parse_benchmarked)
    parser.add_argument(
        "--sizes",
        type=parse_sizes,
        default="256,512,1024,2048,4096,8192",
        metavar="N,N,...",
        help="Time square matrices of these orders. The default is %(default)s. Example: --sizes 1000,2000",
    )
    parser.add_argument(
        "--variants",
        type=parse_variants,
        default="NN,TN,LLNN,LL,LN,LNN",
        metavar="V,V,...",
        help="Time these flags. They are trans_a and trans_b of gemm, side, uplo, trans and diag of trmm and "
        "trsm, side and uplo of symm and hemm, uplo and trans of syrk, herk, syr2k and her2k, and uplo, "
        "trans_a and trans_b of gemmtr. The default is %(default)s. Example: --variants NN,LUTN",
    )
    parser.add_argument(
        "--shapes",
        type=parse_shapes,
        metavar="MxNxK,...|awkward|lu|between",
        help="Time products of these extents, not of --sizes. The extents of awkward are skinny, long and "
        "odd ones, those of lu are of a block LU, and at those of between nothing is tuned. "
        "Example: --shapes 4096x64x4096",
    )
    parser.add_argument(
        "--batched",
        type=parse_batches,
        default=(),
        metavar="COUNTxN,COUNTxMxNxK,...",
        help="Time strided batches of products, not --sizes, and of systems of trsm where M is K. "
        "Example: --batched 1000x32,100x64x8x64",
    )
    parser.add_argument(
        "--rhs",
        type=parse_sizes,
        default=(),
        metavar="R,R,...",
        help="Time trmm and trsm with R columns of B, or R rows from the right, not with a square B. "
        "Example: --rhs 1,64",
    )
    parser.add_argument(
        "--splits",
        type=parse_splits,
        default=(),
        metavar="S,S,...",
        help="Time products with their k in S slices too, and with 0 by stream-K. Example: --splits 2,4",
    )
    parser.add_argument(
        "--packed",
        action="store_true",
        help="Time products with packed operands and without, too. Example: --packed",
    )
    _add_bench_results(parser)


def _add_bench_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="Write the results as JSON to this file. The default is named by the device. "
        "Example: --out gemm.json",
    )
    parser.add_argument(
        "--plot", action="store_true", help="Draw TFLOP/s over n next to the JSON too. Example: --plot"
    )


def _add_scope(parser: argparse.ArgumentParser, names: Callable[[str], Sequence[str]]) -> None:
    """Add the options that name routines and dtypes; argparse parses a default that is a string."""
    parser.add_argument(
        "--routine",
        type=names,
        default=",".join(ROUTINES),
        metavar="R,R,...",
        help="Name the routines. The default is %(default)s. Example: --routine gemm,trsm",
    )
    parser.add_argument(
        "--dtype",
        type=parse_dtypes,
        default=",".join(DTYPES),
        metavar="T,T,...",
        help="Name the dtypes. The default is %(default)s. Example: --dtype s,d",
    )
