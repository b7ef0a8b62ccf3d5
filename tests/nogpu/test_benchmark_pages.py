"""The benchmarks pages, README's table and the plots are made from the committed results."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def benchmarks():
    spec = spec_from_file_location("make_benchmarks", DOCS / "make_benchmarks.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look it up
    spec.loader.exec_module(module)
    return module


def test_figures_are_those_of_the_committed_results(benchmarks):
    """`python docs/make_benchmarks.py` after new results."""
    groups = benchmarks.measured(benchmarks.RESULTS)
    pages = benchmarks.pages(groups)
    assert {path: path.read_text() for path in pages} == pages
    assert {benchmarks.PAGE, *(DOCS / "benchmarks").glob("*.md")} == set(pages)
    assert not any("NaN" in path.read_text() for path in benchmarks.RESULTS.rglob("*.json"))  # no JSON
    readme = benchmarks.README.read_text()
    assert readme == benchmarks.with_table(readme, groups)


def test_plots_are_those_of_the_committed_results(benchmarks):
    """Each names the commits that it shows, and the page shows each."""
    plots = pytest.importorskip("benchmark_plots", reason="needs matplotlib, the extra plot")
    groups = benchmarks.measured(benchmarks.RESULTS)
    card = benchmarks.card(groups)
    each = {name: draw(groups, benchmarks.RESULTS, card) for name, draw in plots.PLOTS.items()}
    drawn = {name: plot for name, plot in each.items() if plot.source or name != "frameworks"}
    shown = re.findall(r"images/benchmarks/(\w+)\.svg", benchmarks.PAGE.read_text())
    assert sorted(shown) == sorted(drawn) == sorted(path.stem for path in benchmarks.IMAGES.glob("*.svg"))
    files = {benchmarks.IMAGES / f"{name}.svg": plot for name, plot in drawn.items()}
    for path, plot in {benchmarks.HEADLINE: plots.headline(groups, card), **files}.items():
        assert plot.source and f"<dc:source>{plot.source}<" in path.read_text(), path.name


def test_plots_have_one_look(benchmarks):
    """One legend outside of all panels; a vendor's curve is dashed and ours is not."""
    plots = pytest.importorskip("benchmark_plots", reason="needs matplotlib, the extra plot")
    groups = benchmarks.measured(benchmarks.RESULTS)
    for name, draw in plots.PLOTS.items():
        figure = draw(groups, benchmarks.RESULTS, benchmarks.card(groups)).figure
        assert len(figure.legends) == 1 and not any(axis.get_legend() for axis in figure.axes), name
        for line in (line for axis in figure.axes for line in axis.get_lines()):
            vendor = re.search("cuBLAS|cublas|cuSOLVER|PyTorch|a copy", line.get_label())
            assert (line.get_linestyle() == "--") == bool(vendor), (name, line.get_label())


def run(date: str, tflops: float, **record) -> str:
    machine = {"device": "A card", "date": date, "commit": date.replace("-", "")}
    case = {"routine": "trsm", "dtype": "d", "variant": "LLNN", "m": 512, "n": 512, "cublas_tflops": 1.0}
    return json.dumps({**machine, "results": [{**case, "tflops": tflops, **record}]})


def test_the_newest_rates_on_tensor_cores(benchmarks, tmp_path):
    folder = tmp_path / "a-card"
    folder.mkdir()
    assert not list(benchmarks.tensor_tables(tmp_path, "A card"))
    for date, tflops in (("2026-02-02", 150.0), ("2026-01-01", 90.0)):
        rates = {way: {"tflops": tflops, "units": 2.5} for way in ("vendor", "fma", "mode")}
        cases = [{"routine": "trsm", "n": 4096, "columns": 128, "ratio": 1.0, **rates}, {"problem": "none"}]
        machine = {"device": "A card", "date": date, "commit": "abcdef012"}
        (folder / f"{date}.json").write_text(json.dumps({**machine, "cases": cases}))
    row = "| trsm | 4096 | 128 | 150.0 | 150.0 | 150.0 | 1.00 | 2.5 | abcdef0 |"
    assert [line for line in benchmarks.tensor_tables(tmp_path, "A card") if "4096" in line] == [row]


def test_the_newest_measurement_of_a_case_counts(benchmarks, tmp_path):
    folder = tmp_path / "a-card"
    folder.mkdir()
    (folder / "a.json").write_text(run("2026-02-02", 3.0))
    (folder / "b.json").write_text(run("2026-01-01", 2.0))
    (folder / "c.json").write_text(run("2026-01-01", 8.0, n=32))
    (folder / "other.json").write_text('{"series": []}')
    groups = benchmarks.measured(tmp_path)
    assert {key: [case.ratio() for case in cases] for key, cases in groups.items()} == {
        ("A card", "trsm", "square"): [3.0],
        ("A card", "trsm", "few"): [8.0],
    }


def test_steps_of_frameworks(benchmarks, tmp_path, monkeypatch):
    """A table, a section and a plot, once a card has run them; of each case the newest counts."""
    folder = tmp_path / "a-card"
    folder.mkdir()
    assert not list(benchmarks.framework_tables(tmp_path, "A card"))
    for date, ratio in (("2026-02-02", 3.0), ("2026-01-01", 2.0)):
        row = {"part": "steps", "by": "torch", "way": "patched", "dtype": "d", "n": 512, "ratio": ratio}
        call = {"part": "operators", "call": "inv", "dtype": "d", "n": 64, "recorded": True, "ratio": 0.5}
        lists = {
            "steps": [row, {**row, "n": 64, "ratio": 12.0}, {"part": "steps", "skipped": "none"}],
            "operators": [{**call, "ours_us": 20.0, "own_us": 10.0}],
            "gradients": [{**call, "part": "gradients", "recorded": None, "ours_us": 50.0, "own_us": 60.0}],
            "first": [{**row, "part": "first", "way": "torch", "first": 2.5, "second": 0.01}],
        }
        machine = {"device": "A card", "date": date, "commit": "abcdef012", "frameworks": {}}
        (folder / f"{date}.json").write_text(json.dumps({**machine, **lists}))
    lines = list(benchmarks.framework_tables(tmp_path, "A card"))
    assert "| PyTorch | `patch_torch` | d | 12.00 | 3.00 | **6.00** |" in lines
    assert "| inv | 20 / 10 | 50 / 60 |" in lines and lines[-1].startswith("Measured at abcdef0 ")
    assert any(line.endswith("| 2.5 | 0.0100 |") for line in lines)
    monkeypatch.setattr(benchmarks, "card", lambda groups: "A card")
    monkeypatch.setattr(benchmarks, "readme_table", lambda *_: "")
    page = "\n".join(benchmarks._page({}, tmp_path, ["A card"]))
    assert "images/benchmarks/frameworks.svg" in page and "a_card.md#pytorch-and-jax" in page
    plots = pytest.importorskip("benchmark_plots", reason="needs matplotlib, the extra plot")
    drawn = plots.PLOTS["frameworks"]({}, tmp_path, "A card")
    points = [list(line.get_ydata()) for axis in drawn.figure.axes for line in axis.get_lines()]
    assert drawn.source == "abcdef0" and [12.0, 3.0] in points


def test_contests(benchmarks, tmp_path):
    """A table a routine, with what each shape took; what was inaccurate is left out."""
    folder = tmp_path / "a-card"
    folder.mkdir()
    assert not list(benchmarks.contest_tables(tmp_path, "A card"))
    case = {"routine": "qr", "count": 8, "m": 20, "n": 10, "dtype": "s", "ours_ms": 2.0, "torch_ms": 4.0}
    rows = [{**case, "ratio": 2.0}, {**case, "m": 10, "ratio": 8.0}, {**case, "dtype": "d", "ratio": 3.0}]
    rows += [{**case, "m": 5, "ratio": 99.0, "problem": "inaccurate"}]
    rows += [{**case, "routine": "geqp3", "m": 10, "ratio": 4.0, "scipy_ms": 8.0}]
    rows[-1].pop("torch_ms")
    run = {"device": "A card", "date": "2026-01-01", "commit": "abcdef012", "results": rows}
    (folder / "a.json").write_text(json.dumps(run))
    lines = list(benchmarks.contest_tables(tmp_path, "A card"))
    assert "| 8 of 20 × 10 | 2 / 4, **2.00** | 2 / 4, **3.00** |" in lines
    assert "| mean, least | **2.00**, 2.00 | **3.00**, 3.00 |" in lines and "99.00" not in "".join(lines)
    assert "| mean, least | **8.00**, 8.00 |  |" in lines and "| reduced Q and R, tall | s | d |" in lines
    assert "| 8 of 10 × 10 | 2 / 8, **4.00** |  |" in lines  # of a rival other than PyTorch
    assert not list(benchmarks.vendor_tables(tmp_path, "A card"))


def potrf(letter, uplo, n, ours, theirs, **other):
    return {"routine": "potrf", "letter": letter, "uplo": uplo, "n": n, "batch": 1, "ratio": theirs / ours,
            "ours_us": ours, "cusolver_us": theirs, **other}  # fmt: skip


@pytest.mark.parametrize(
    "records",
    [
        [potrf("d", "LOWER", 512, 2.0, 3.0), potrf("d", "UPPER", 512, 2.0, 5.0)],
        [
            potrf("d", "LOWER", 512, 2.0, 3.0),
            potrf("d", "UPPER", 512, 2.0, 5.0, cusolver_other_triangle_us=3.0),
        ],
    ],
    ids=["of two records", "of one"],
)
def test_the_upper_triangle_has_the_vendors_lower_as_a_rival(benchmarks, tmp_path, records):
    folder = tmp_path / "a-card"
    folder.mkdir()
    document = {"device": "A card", "date": "2026-02-02", "commit": "abcdef012", "results": records}
    (folder / "a.json").write_text(json.dumps(document))
    made = {case.routine: case.ratio for case in sys.modules["vendor_tables"].ratios(tmp_path, "A card")}
    faster = "potrf, upper, over cuSOLVER's faster triangle"
    assert made == {"potrf, lower": 1.5, "potrf, upper": 2.5, faster: 1.5}


def test_means_name_the_orders_that_they_cover(benchmarks, tmp_path):
    """By dtype where they differ, with the least ratio; `gemm3m` may be of another run."""
    folder = tmp_path / "a-card"
    folder.mkdir()
    orders = {"s": (512, 1024, 2048), "d": (512, 1024, 2048), "z": (1024, 4096)}
    rows = [potrf(letter, "LOWER", n, 1024.0, float(n)) for letter in orders for n in orders[letter]]
    product = {"m": 4096, "n": 4096, "k": 4096, "tflops": 6.0, "ratio": 2.5}
    rival = {"routine": "gemm3m", "dtype": "z", "variant": "NN", "n": 4096, "cublas_tflops": 4.0}
    machine = {"device": "A card", "date": "2026-02-02", "commit": "abcdef012"}
    (folder / "a.json").write_text(json.dumps({**machine, "results": rows, "zgemm": [product]}))
    (folder / "b.json").write_text(json.dumps({**machine, "results": [rival]}))
    text = benchmarks.readme_table((), tmp_path, "A card")
    assert "| Cholesky, `potrf`, lower, orders 512 to 2048 (z: 1024 and 4096) | 1.00 (0.50) |" in text
    assert "| the same over cuBLAS's `gemm3m`, orders 4096 |  |  |  | 1.50 (1.50) |" in text


def test_a_row_of_the_readme_needs_results(benchmarks, tmp_path):
    """TRMM out of place has a row where cuBLAS was timed so, and else none."""
    folder = tmp_path / "a-card"
    folder.mkdir()
    cases = {"gemm": {"k": 4096}, "trsm": {}, "trmm": {}}
    sizes = {"m": 4096, "n": 4096, "dtype": "d", "variant": "NN", "tflops": 3.0, "cublas_tflops": 2.0}
    records = [{"routine": name, **sizes, **more} for name, more in cases.items()]
    records.append({**records[1], "m": 16, "n": 16, "batch": [100]})
    machine = {"device": "A card", "date": "2026-02-02", "commit": "abcdef012", "arch": "sm_90"}
    machine |= {"multiprocessors": 1, "driver": "1", "cublas": 130100, "clocks": {}}

    def ratios(records) -> list[list[float]]:
        (folder / "a.json").write_text(json.dumps({**machine, "results": records}))
        rows = benchmarks.readme_rows(benchmarks.measured(tmp_path))
        return [[ratio for _, ratio, _ in row.measured] for row in rows]

    assert ratios(records) == [[1.5], [1.5], [], [1.5], [1.5]]
    records[2]["cublas_out_of_place_tflops"] = 6.0
    assert ratios(records) == [[1.5], [1.5], [0.5], [1.5], [1.5]]
    page = "\n".join(benchmarks.bench_tables(benchmarks.measured(tmp_path), "A card"))
    assert "| dtrmm | 3 / 2 / 6 | **1.50 (1.50); 0.50 (0.50)** |" in page


def test_results_of_another_commit_than_their_name_are_marked(benchmarks, tmp_path):
    folder = tmp_path / "a-card"
    folder.mkdir()
    seconds = {"a program": {"64": {"scipy": 2.0, "patched": 1.0}}}
    for commit, marked in (("bbbbbbb0123", "bbbbbbb"), ("ccccccc0123+", "ccccccc+")):
        document = {"date": "2026-02-02", "commit": commit, "seconds": seconds}
        (folder / "2026-02-02-bbbbbbb-programs.json").write_text(json.dumps(document))
        assert f"Measured at {marked}." in list(benchmarks.machine_tables(tmp_path, "A card"))
        (folder / "a.json").write_text(run("2026-02-02", 3.0).replace("20260202", commit))
        (cases,) = benchmarks.measured(tmp_path).values()
        assert sys.modules["bench_cases"].commits(cases) == marked


def test_the_newest_run_on_several_cards_counts(benchmarks, tmp_path):
    folder = tmp_path / "a-card"
    folder.mkdir()
    for date, commit, seconds in (("2026-02-02", "bbb", 4.0), ("2026-01-01", "aaa", 8.0)):
        row = {"routine": "gemm", "dtype": "d", "n": 10**4, "where": "host", "cards": 1, "speedup": 1.0}
        rows = [{**row, "seconds": seconds}, {**row, "cards": 2, "seconds": seconds / 2, "speedup": 2.0}]
        text = json.dumps({"about": {"date": date}, "rows": rows})
        (folder / f"{date}-{commit}-several-cards.json").write_text(text)
    lines = list(benchmarks.machine_tables(tmp_path, "A card"))
    assert "| GEMM | 10000 | on the host | 0.5 | 2.00 |  |  |  |  |" in lines


@pytest.mark.parametrize("took, ratio", [(14.0, "7.0"), (16.0, "")])
def test_a_first_call_of_the_vendor_is_no_rival(benchmarks, tmp_path, took, ratio):
    """`host_problems.seconds` runs what takes over 15 s once."""
    folder = tmp_path / "a-card"
    folder.mkdir()
    row = {"routine": "syrk", "dtype": "d", "n": 10**4, "speedup": 1.0}
    rows = [{**row, "where": "host", "cards": count, "seconds": 2.0} for count in (1, 2)]
    rows.append({**row, "where": "cublas", "cards": 1, "seconds": took})
    text = json.dumps({"about": {"date": "2026-02-02"}, "rows": rows})
    (folder / "2026-02-02-aaa-several-cards.json").write_text(text)
    (line,) = (line for line in benchmarks.machine_tables(tmp_path, "A card") if line.startswith("| SYRK"))
    assert line.split(" | ")[5].strip() == ratio


def test_dasks_time_is_the_median_of_calls_after_the_first(benchmarks, tmp_path):
    folder = tmp_path / "a-card"
    folder.mkdir()
    row = {"routine": "gemm", "seconds": 3.0}
    each = {"dask, cupy": [1.0, 5.0, 2.0, 4.0], "dask, numpy": [7.0]}
    rows = [{**row, "by": by, "each": times} for by, times in each.items()] + [{**row, "by": "engine"}]
    text = json.dumps({"about": {"date": "2026-02-02", "n": 64, "chunk": 8}, "rows": rows})
    (folder / "2026-02-02-aaa-dask-cards.json").write_text(text)
    assert "| GEMM | 64 | 8 | 4 | 3 | 3 |" in list(benchmarks.machine_tables(tmp_path, "A card"))
