"""``pyblasgpu explain``: the Configs of a call, and its kernels as Python, PTX and SASS."""

from __future__ import annotations

import ast
import json
import re

import pytest

from pyblasgpu import cli
from pyblasgpu.api.explain import explain, sources_of
from pyblasgpu.gpu import backend
from pyblasgpu.gpu.device import current, described_by_driver, known, stand_in
from pyblasgpu.operands import Operand
from pyblasgpu.routine import Routine
from pyblasgpu.routine_table import ROUTINES
from pyblasgpu.types import Diag, Side, Trans, Uplo

EXPLAINED = [row.stem for row in ROUTINES.values() if row.is_explained]
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


@pytest.mark.parametrize("routine", [stem for stem in EXPLAINED if ROUTINES[stem].group != "level3"])
def test_vectors_and_factors_are_explained_with_their_grids(routine):
    """Every launch has a Config and a grid, of one matrix and of a batch."""
    for letter, batch in (("s", 1), ("z", 3)):
        rows = explain(routine, letter, 96, device="h200", batch=batch)
        kernels = {what for what, value, _ in rows if "dtype=" in value}
        assert {what for what, *_ in rows if what.startswith("grid of ")} == {f"grid of {k}" for k in kernels}
        _, sources = sources_of(routine, letter, 96, device="h200", batch=batch)
        assert {source.name for source in sources} == kernels and sources


#: The launch lists of routines and their operands: vectors x of m and y of n, pivots p, a of m by n, a square
#: s of order m, l of m by k, q of k by m, r of k by n, f of n by k, t of order n, and 1 for a number.
LISTS = {
    "copy scal axpy swap rot": "level1 x x",
    "nrm2 asum iamax": "level1 x 1",
    "dot": "level1 x x 1",
    "gemv": "gemv a y x",
    "ger": "ger x y a",
    "symv hemv": "symv s x x",
    "syr her": "syr x s",
    "syr2 her2": "syr2 x x s",
    "trmv": "trmv s x x",
    "trsv": "trsm s x",
    "potrf": "potrf 1 s",
    "potrs": "potrs s a",
    "posv": "potrf 1 s, potrs s a",
    "potri": "potri 1 s",
    "trtri": "trtri 1 s",
    "trtrs": "trtrs 1 s a",
    "lauum": "lauum s",
    "getrf": "getrf p 1 a",
    "getrs": "getrs x s a",
    "gesv": "getrf x 1 s, getrs x s a",
    "getri": "getri 1 x s",
    "laswp": "laswp p a",
    "geqrf": "geqrf p a",
    "geqp3": "geqp3 y p a",
    "gelqf": "lq p a",
    "orglq": "lq h a",
    "ormlq": "lq h q a",
    "orgqr": "orgqr h a",
    "ormqr": "ormqr h l a",
    "sytrf hetrf": "sytrf p 1 s",
    "sytrs hetrs": "sytrs x s a",
    "sytri hetri": "sytri 1 x s",
    "sysv hesv": "sytrf x 1 s, sytrs x s a",
    "syevd": "syevd 1 x s",
    "gesdd": "gesdd 1 p u v a",
    "gemm": "gemm l r a",
    "trmm": "trmm s a",
    "trsm": "trsm s a",
    "symm hemm": "symm s a a",
    "syrk herk": "syrk f t",
    "syr2k her2k": "syr2k f f t",
    "gemmtr": "gemmtr f r t",
}
FLAGS = {
    "uplo": Uplo.LOWER,
    "side": Side.LEFT,
    "diag": Diag.NON_UNIT,
    "trans": Trans.NO,
    "backwards": False,
    "first": 0,
    "vectors": False,
    "rook": False,
    "clean": False,
    "is_new_output": False,
    "method": None,
}


@pytest.mark.parametrize("routine", EXPLAINED)
@pytest.mark.parametrize(("m", "n"), [(30, 7), (7, 30)])
def test_the_operands_of_every_routine(routine, m, n, monkeypatch):
    """Also where they are not square; each operand is a batch on the device that is meant."""
    made, k, ordinal = [], 5, stand_in(known("h200")).ordinal

    def recorder(row):
        def launch_list(*arguments, **flags):
            operands = [each for each in arguments if isinstance(each, Operand)]
            assert {each.batch for each in operands} == {3} and {each.device for each in operands} == {
                ordinal
            }
            made.append((row.launches, *((each.rows, each.cols) for each in operands)))
            assert flags.pop("hermitian", False) == routine.startswith("he")
            assert flags == {flag: FLAGS[flag] for flag in flags}

        return launch_list

    monkeypatch.setattr(Routine, "launch_list", property(recorder))
    if ROUTINES[routine].is_square:
        m = n
    given = {1: (m,), 2: (m, n), 3: (m, n, k)}
    count = 1 if ROUTINES[routine].group == "level1" else 3 if "k" in ROUTINES[routine].dims else 2
    assert sources_of(routine, "z", *given[count], device="h200", batch=3)[1] == []
    shapes = {"x": (m, 1), "y": (n, 1), "p": (min(m, n), 1), "a": (m, n), "s": (m, m), "1": (1, 1)}
    shapes |= {"l": (m, k), "r": (k, n), "f": (n, k), "t": (n, n), "h": (k, 1), "q": (k, m)}
    shapes |= {"u": (m, min(m, n)), "v": (min(m, n), n)}
    (expected,) = (text for names, text in LISTS.items() if routine in names.split())
    words = [text.split() for text in expected.split(", ")]
    names = [re.sub(r"^\.routines\.(\w+\.)?|:.*", "", name) for name, *_ in made]
    assert names == [name for name, *_ in words]
    assert [each[1:] for each in made] == [tuple(map(shapes.get, operands)) for _, *operands in words]


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


@pytest.mark.parametrize(
    ("call", "shape", "title"),
    [
        ("daxpy", "1000", "daxpy, 1000"),
        ("ziamax", "77", "ziamax, 77"),
        ("dgemv", "30", "dgemv, 30 x 30"),
        ("dgemv", "30X4", "dgemv, 30 x 4"),
        ("cpotrf", "96", "cpotrf, 96 x 96"),
        ("strsm", "96x5", "strsm, 96 x 5"),
        ("dgemm", "64", "dgemm, 64 x 64 x 64"),
        ("dgemm", "64x3", "dgemm, 64 x 3 x 64"),
        ("ssyrk", "64x64x5", "ssyrk, 64 x 64 x 5"),
    ],
)
def test_the_title_has_the_extents_of_the_call(call, shape, title, capsys):
    assert cli.main(["explain", call, shape, "--device", "h200"]) == 0
    assert capsys.readouterr().out.splitlines()[0].strip() == title


@pytest.mark.parametrize(
    ("call", "shape", "text"),
    [
        ("daxpy", "10x20", "axpy has no n, and n=20 is given"),
        ("dnrm2", "10x10", "nrm2 has no n, and n=10 is given"),
        ("dpotrf", "10x10x10", "potrf has no k, and k=10 is given"),
        ("dtrsm", "10x20x30", "trsm has no k, and k=30 is given"),
        ("dsymm", "10x20x30", "symm has no k, and k=30 is given"),
        ("dgetri", "10x20", "the matrix of getri is square, not 10 by 20"),
        ("dherk", "10x20", "the result of herk is square, not 10 by 20"),
    ],
)
def test_extents_that_a_call_has_not(call, shape, text, capsys):
    assert cli.main(["explain", call, shape, "--device", "h200"]) == 2
    assert capsys.readouterr().err == f"pyblasgpu explain: {text}\n"


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
