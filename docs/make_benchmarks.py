"""Write the benchmarks pages, README's table and the plots from the committed results.

``python docs/make_benchmarks.py`` after new files in ``benchmarks/results``; the plots need Matplotlib.

The first page has README's table and the plots of one card, the newest. A page a device has all tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "figures"))

from bench_cases import OUT_OF_PLACE, VENDOR, Groups, measured, newest_device
from bench_tables import bench_tables
from contest_tables import contest_tables
from error_tables import error_table
from framework_tables import framework_tables
from gemm_tensor_tables import gemm_tensor_tables
from machine_tables import machine_tables
from readme_table import Row, readme_table
from tensor_tables import tensor_tables
from vendor_tables import vendor_tables

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE, README = DOCS / "benchmarks.md", ROOT / "README.md"
IMAGES, HEADLINE = DOCS / "images" / "benchmarks", DOCS / "images" / "trsm.svg"
BEGIN, END = "<!-- made by docs/make_benchmarks.py -->", "<!-- end -->"

CONTEST, FRAMEWORKS = "QR, eigenvalues and singular values", "PyTorch and JAX"
#: Sections of the page: heading, text, plots with what they show, and the heading of the tables.
SECTIONS = (
    (
        "GEMM",
        "TFLOP/s over the order. cuBLAS runs on the same arrays.",
        {"gemm": "TFLOP/s of GEMM over n, pyblasgpu and cuBLAS, in four dtypes"},
        "gemm-square-matrices",
    ),
    (
        "TRSM and TRMM",
        "Both libraries work in place. cuBLAS's TRMM is mostly faster out of place, a line of its own.",
        {
            "trsm": "TFLOP/s of TRSM over n, pyblasgpu and cuBLAS, in four dtypes",
            "trmm": "TFLOP/s of TRMM over n, pyblasgpu and cuBLAS in place and out of place",
        },
        "trsm-square-matrices",
    ),
    (
        "Symmetric products",
        "Hermitian variants are in the tables.",
        {"symmetric": "TFLOP/s of SYRK, SYR2K and SYMM over n, pyblasgpu and cuBLAS"},
        "syrk-square-matrices",
    ),
    (
        "Tensor cores",
        '[`method="tensor"`](guide/numerics.md#tensor-cores-for-float32) keeps the bounds of the dtype. '
        "Packing is part of the time.",
        {
            "gemm_tensor": "TFLOP/s of GEMM over n, on tensor cores, by default, and of cuBLAS",
            "tensor_level3": "times the vendor's rate over n, a line a routine",
        },
        "products-on-tensor-cores",
    ),
    (
        "Cholesky and LU",
        "cuSOLVER's time over ours: above the dashed line pyblasgpu is faster.",
        {"factors": "cuSOLVER's time over ours, over n, for GETRF and POTRF"},
        "vectors-factorizations-and-solves",
    ),
    (
        "Batches of small matrices",
        "Time of `torch.linalg` over ours, for batches that fill the card. Solves have four columns.",
        {"batches": "PyTorch's time over ours, over n, a line a routine"},
        "vectors-factorizations-and-solves",
    ),
    (
        CONTEST,
        "Times of `torch.linalg` over ours on the batches of public contests and on tall matrices.",
        {},
        "qr-eigenvalues-and-singular-values",
    ),
    (
        FRAMEWORKS,
        "A step of a Gaussian process's training, by [operators](guide/pytorch.md), "
        "[programs unchanged](guide/torch_programs.md) and [JAX](guide/jax.md).",
        {"frameworks": "PyTorch's and JAX's own time over ours, over n, a line a way"},
        "pytorch-and-jax",
    ),
    (
        "Levels 1 and 2",
        "Memory bounds these routines, so a copy of as many bytes is the measure: "
        "vectors of 10⁸ elements, matrices of order 16384.",
        {"bandwidth": "bytes per second of each routine over those of a copy"},
        "memory-bandwidth",
    ),
    (
        "Matrices in host memory",
        "TFLOP/s, transfers included, on one card and on several.",
        {
            "host_memory": "TFLOP/s over n from host memory: pyblasgpu, cuBLAS with copies, cublasXt",
            "several_cards": "times the rate of one card over n, a line a routine",
        },
        "several-cards",
    ),
    (
        "The closed list of kernels",
        "Calls choose from a [closed list](design/dispatch.md#the-catalogue) that can be built ahead. "
        "The plot has the time with all Configs that were ever tuned over the time with the list.",
        {"closed_list": "share of the cases over the ratio of times, a line a list of calls"},
        "the-closed-list-of-kernels",
    ),
)


# ------------------------------------------------------------------------------------------------- pages


def pages(groups: Groups, results: Path = RESULTS) -> dict[Path, str]:
    """The page, and a page for each device."""
    devices = list(dict.fromkeys(key[0] for key in groups))
    made = {device_page(device): "\n".join(_tables(groups, results, device)) for device in devices}
    return {PAGE: "\n".join(_page(groups, results, devices)), **made}


def device_page(device: str) -> Path:
    """The page of a device."""
    return DOCS / "benchmarks" / f"{_stem(device)}.md"


def _stem(device: str) -> str:
    return device.lower().replace(" ", "_").removeprefix("nvidia_")


def _page(groups: Groups, results: Path, devices: list[str]) -> Iterator[str]:
    device = card(groups)
    yield from ("# Benchmarks", "", BEGIN, "", "```{toctree}", ":hidden:", "")
    yield from (*(f"{each} <benchmarks/{_stem(each)}>" for each in devices), "```", "")
    yield from (readme_table(readme_rows(groups), results, device), "")
    yield "Each number is a geometric mean of the vendor's time over ours, with the least in brackets."
    yield "`gemm3m` was timed in another run. Above 1 pyblasgpu is faster."
    yield "[Measuring](measuring.md) says how it is measured."
    yield "`pyblasgpu bench` measures your card."
    links = ", ".join(f"[{each}](benchmarks/{_stem(each)}.md)" for each in devices)
    yield from ("", f"All tables, with the commit of each: {links}.")
    tables = set(_tables(groups, results, device))
    for heading, text, plots, anchor in SECTIONS:
        if heading in (CONTEST, FRAMEWORKS) and f"## {heading}" not in tables:
            continue  # the card has not run them
        yield from ("", f"## {heading}", "", text)
        for name, shown in plots.items():
            yield from ("", f"![{device}: {shown}](images/benchmarks/{name}.svg)")
        yield from ("", f"[Tables](benchmarks/{_stem(device)}.md#{anchor})")
    yield from ("", END, "")


def _tables(groups: Groups, results: Path, device: str) -> Iterator[str]:
    yield from (f"# {device}", "", BEGIN, "")
    yield "In tables of TFLOP/s each cell is pyblasgpu / cuBLAS, on the same data, with cold caches."
    yield "A mean is the geometric mean of ours / cuBLAS, with the least in brackets."
    yield "Of TRMM a third rate and a second mean are those of cuBLAS out of place, where that was timed."
    yield "[Measuring](../measuring.md) says how."
    yield "Of each case the newest measurement counts, and the commit is named."
    yield from bench_tables(groups, device)
    yield from (*gemm_tensor_tables(results, device), *tensor_tables(results, device))
    yield from (*vendor_tables(results, device), *machine_tables(results, device))
    yield from (*contest_tables(results, device), *framework_tables(results, device))
    yield from (*error_table(results, device), "", END, "")


def card(groups: Groups) -> str:
    """The device of the plots: that of the newest GEMM."""
    return newest_device(groups, "gemm", "square")


# ------------------------------------------------------------------------------------------------ README


def readme_rows(groups: Groups) -> Iterator[Row]:
    """README's rows of what `pyblasgpu bench` has timed."""
    rows = [
        ("GEMM, all layouts", "gemm", "square", 2048, VENDOR),
        ("TRSM, as many right-hand sides", "trsm", "square", 0, VENDOR),
        ("TRMM over cuBLAS's out of place, as many columns", "trmm", "square", 0, OUT_OF_PLACE),
        ("TRMM over cuBLAS's in place, as many columns", "trmm", "square", 0, VENDOR),
        ("TRSM, batches of small triangles", "trsm", "batched", 0, VENDOR),
    ]
    for label, routine, kind, least, rate in rows:
        device = newest_device(groups, routine, kind)
        ratios = [
            (case.record["dtype"], case.ratio(rate), case.record["m"])
            for case in groups[device, routine, kind]
            if rate in case.record and case.record["n"] >= least
        ]
        yield Row(label, device, ratios)


def with_table(readme: str, groups: Groups) -> str:
    """README with its table."""
    return between_markers(readme, readme_table(readme_rows(groups), RESULTS, card(groups)))


def between_markers(text: str, made: str) -> str:
    """`text` with `made` between the two markers."""
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{made}\n{END}{rest.split(END, 1)[1]}"


def main(arguments: list[str]) -> int:
    """Write all; returns the exit code."""
    if arguments:
        raise SystemExit(__doc__)
    from benchmark_plots import PLOTS, headline

    from pyblasgpu.bench import style

    groups = measured(RESULTS)
    made = {**pages(groups), README: with_table(README.read_text(encoding="utf-8"), groups)}
    for path, text in made.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    IMAGES.mkdir(exist_ok=True)
    drawn_all = {name: draw(groups, RESULTS, card(groups)) for name, draw in PLOTS.items()}
    drawings = {IMAGES / f"{name}.svg": drawn for name, drawn in drawn_all.items() if drawn.source}
    for path, drawn in {HEADLINE: headline(groups, card(groups)), **drawings}.items():
        style.save(drawn.figure, path, drawn.source)
    for path in (*made, HEADLINE, *drawings):
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
