"""``pyblasgpu explain``: the Configs of a call, and its kernels as Python, PTX and SASS."""

from __future__ import annotations

import ast
import json

import pytest

from pyblasgpu import cli
from pyblasgpu.api.explain import explain, sources_of
from pyblasgpu.api.explained_calls import EXPLAINED
from pyblasgpu.gpu import backend
from pyblasgpu.gpu.device import current, described_by_driver, known, stand_in

CALL = ["explain", "dgemm", "1024x512x96", "--device", "h200"]


@pytest.fixture(autouse=True)
def forget_descriptions():
    yield
    described_by_driver.cache_clear()


@pytest.fixture
def disassembler(monkeypatch, tmp_path):
    """Stand-in of nvdisasm, which prints how it was called."""
    from cuda import pathfinder

    program = tmp_path / "nvdisasm"
    program.write_text('#!/bin/sh\ntest -s "$2" && echo "disassembled by $1"\n')
    program.chmod(0o755)
    monkeypatch.setattr(pathfinder, "find_nvidia_binary_utility", lambda name: str(program))


def test_a_call_on_a_card_that_is_not_here_is_explained(capsys):
    assert cli.main([*CALL, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["what"].startswith("gemm_") and "dtype='d'" in row["value"] and row["origin"]
    assert cli.main(CALL) == 0
    assert "dgemm, 1024 x 512 x 96" in capsys.readouterr().out


@pytest.mark.parametrize("routine", EXPLAINED)
def test_vectors_and_factors_are_explained_with_their_grids(routine):
    """Every launch has a Config and a grid, of one matrix and of a batch."""
    for letter, batch in (("s", 1), ("z", 3)):
        rows = explain(routine, letter, 96, device="h200", batch=batch)
        kernels = {what for what, value, _ in rows if "dtype=" in value}
        assert {what for what, *_ in rows if what.startswith("grid of ")} == {f"grid of {k}" for k in kernels}
        _, sources = sources_of(routine, letter, 96, device="h200", batch=batch)
        assert {source.name for source in sources} == kernels and sources


def test_the_workspace_of_a_factor_is_told():
    """Cholesky's panels need none; an inverse is kept beside the triangle until `info` is known."""
    needed = {}
    for name in ("potrf", "trtri"):
        ((value, _),) = (
            rest for what, *rest in explain(name, "d", 1000, device="h200") if what == "workspace"
        )
        needed[name] = int(value.removesuffix(" bytes"))
    assert needed["potrf"] == 0 and needed["trtri"] >= 8 * 1000**2


def test_what_is_not_square_is_refused():
    with pytest.raises(ValueError, match="explain: the matrix of potrf is square, not 3 by 4"):
        explain("potrf", "d", 3, 4, device="h200")
    assert explain("getrf", "d", 30, 4, device="h200") and explain("posv", "d", 30, 1, device="h200")


@pytest.mark.parametrize("routine", ["gemm", "potrf", "dot"])
@pytest.mark.parametrize("extent", [0, -5, 1.5, "x"])
def test_extents_are_counts(routine, extent):
    with pytest.raises(ValueError, match=r"explain: m=.* is no positive integer"):
        explain(routine, "d", extent, device="h200")


def test_an_unknown_routine_is_named_before_a_device_is_looked_for():
    with pytest.raises(ValueError, match="explain: routine 'gemmm' is none of gemm, trmm"):
        explain("gemmm", "d", 5)


def test_a_vector_goes_by_its_length(capsys):
    assert cli.main(["explain", "sgemv", "1024x512", "--device", "h200", "--json"]) == 0
    first, second, third = json.loads(capsys.readouterr().out)
    assert third["what"] == "workspace" and int(third["value"].split()[0]) >= 0
    assert first["what"] == "gemv" and second["what"] == "grid of gemv" and " x 1 x 1" in second["value"]
    assert cli.main(["explain", "znrm2", "1000000", "--device", "h200"]) == 0
    assert "level1_reduce" in capsys.readouterr().out


def test_a_description_has_a_number_where_nothing_runs():
    once, again = (stand_in(known("a100")) for _ in range(2))
    assert once is again and once.ordinal < 0 and current(once.ordinal) is once
    assert stand_in(once) is once and once.name == known("a100").name


def test_the_source_is_python_with_the_values_of_its_config(capsys):
    assert cli.main([*CALL, "--source"]) == 0
    text = capsys.readouterr().out
    ast.parse(text)
    _, (source,) = sources_of("gemm", "d", 1024, 512, 96, device="h200")
    assert f"#   BLK_M = {source.config.BLK_M}\n" in text
    assert text.index("# the kernel, pyblasgpu/kernels/gemm/") < text.index("# function 1, ")
    assert "# (4) body" in text and "calls, one after the other" in text


@pytest.mark.parametrize("call", ["strsm", "ztrmm", "csyrk"])
def test_every_kernel_of_a_call_has_a_text(call, capsys):
    assert cli.main(["explain", call, "600", "--device", "h200", "--source"]) == 0
    text = capsys.readouterr().out
    ast.parse(text)
    _, sources = sources_of(call[1:], call[0], 600, 600, device="h200")
    assert text.count("# the kernel, ") == len(sources)


def test_files_hold_the_ptx(tmp_path, capsys):
    assert (
        cli.main(["explain", "ssymm", "64", "--device", "h200", "--ptx", "--out", str(tmp_path / "new")]) == 0
    )
    files = sorted((tmp_path / "new").iterdir())
    assert capsys.readouterr().out.split() == [str(file) for file in files]
    for file in files:
        assert file.suffix == ".ptx" and ".target sm_90a" in file.read_text()


def test_machine_instructions_are_nvdisasms(disassembler, capsys):
    assert cli.main(["explain", "strsm", "8x1", "--device", "h200", "--sass", "--json"]) == 0
    for kernel in json.loads(capsys.readouterr().out):
        assert kernel["sass"].endswith("disassembled by -c\n")


def test_without_nvdisasm_a_line_says_so(monkeypatch, capsys):
    from cuda import pathfinder

    monkeypatch.setattr(pathfinder, "find_nvidia_binary_utility", lambda name: None)
    assert cli.main([*CALL, "--sass"]) == 2
    assert "nvdisasm, which is not here" in capsys.readouterr().err


def test_the_simulator_has_no_ptx(monkeypatch, capsys):
    monkeypatch.setattr(backend, "SIMULATED", True)
    assert cli.main([*CALL, "--ptx"]) == 2
    assert "no PTX in a process of Numba's simulator" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["gemm", "64"],
        ["dgbmv", "64"],
        ["dgemm", "64x64x64x64"],
        ["dgemm", "0"],
        ["dgemm", "8", "--ptx", "--sass"],
    ],
)
def test_wrong_use(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main(["explain", *arguments])
    assert exit.value.code == 2
    capsys.readouterr()
