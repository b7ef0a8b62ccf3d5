"""What options take: nonsense is refused with the option's name, and their order does not matter."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest
from fake_device import described

from pyblasgpu import cli, demo, explain
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.gpu import device
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import command as tune_command
from pyblasgpu.tuning import dryrun
from pyblasgpu.tuning.prune import candidates

H200 = known("h200")
QUICK = ("tune", "--dry-run", "--effort", "quick", "--device", "h200")


def refusal(capsys, *arguments):
    """The last line on stderr of a command that is refused."""
    try:
        code = cli.main(list(arguments))
    except SystemExit as exit:
        code = exit.code
    output = capsys.readouterr()
    assert code == 2 and not output.out
    return output.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("option", "values", "takes"),
    [
        ("--min-score", ("nan", "inf", "-0.1", "1.1", "", "x"), "no number from 0 to 1"),
        ("--min-reuse", ("nan", "inf", "-1", "1e999", ""), "no number from 0 on"),
        ("--min-threads", ("-5", "1.5", "nan", "", "1e3", str(2**64)), "no integer from 0 on"),
        ("--min-blocks", ("-1", "two"), "no integer from 0 on"),
        ("--budget", ("0", "-3m", "nan", ""), "no duration"),
        ("--routine", ("", "gemm,", "syrk", "hgemm"), "is none of gemm, trmm, trsm"),
        ("--dtype", ("", "s,,d", "h"), "is none of s, d, c, z"),
        ("--family", ("", "gemm"), "is none of gemm_simt, gemm_mma"),
        ("--layout", ("", "xx", "nn,"), "is none of nn, nt, tn, tt, n, t, any"),
        ("--size", ("", "huge"), "is none of slim_rows"),
        ("--stage", ("", "all"), "is none of kernels"),
        ("--strategy", ("", "luck"), "is none of exhaustive"),
        ("--device", ("", "voodoo", "-1", "h200,h100"), "is none of fermi"),
    ],
)
def test_values_that_an_option_of_tune_does_not_take(option, values, takes, capsys):
    for value in values:
        line = refusal(capsys, *QUICK, f"{option}={value}")
        assert option in line and takes in line, line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--routine trsm --layout nn", ("--layout nn", "trsm", "any")),
        ("--routine strsm --layout nn", ("--layout nn", "trsm", "any")),
        ("--routine gemm,trsm --layout nn", ("--layout nn", "trsm", "any")),
        ("--routine gemm --layout any", ("--layout any", "nn, nt, tn, tt")),
        ("--routine gemm --family gemm_mma --dtype s", ("--family gemm_mma", "gemm_simt")),
        ("--routine gemm --family trsm_fma", ("--family trsm_fma", "gemm_simt, gemm_mma")),
        ("--routine gemm --size few", ("--size few", "low_rank")),
        (
            "--routine gemm,trsm --dtype d --family gemm_mma --size few",
            ("no kernel", "--family gemm_mma", "--size few"),
        ),
    ],
)
def test_combinations_of_which_nothing_is_left(arguments, words, capsys):
    line = refusal(capsys, *QUICK, *arguments.split())
    assert line.startswith("pyblasgpu tune: ") and all(word in line for word in words), line


def test_a_layout_narrows_all_routines_where_none_is_named():
    options = cli.parser().parse_args(["tune", "--layout", "nn", "--dtype", "s"])
    assert dryrun.searches_of(options) == [("gemm_simt", "s", "nn")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("demo --n 0", ("--n", "positive integer")),
        ("demo --n -3", ("--n", "positive integer")),
        ("demo --n 1e3", ("--n", "positive integer")),
        ("demo --n 99999999999999999999", ("--n", "positive")),
        ("bench --sizes 64,-1", ("--sizes", "positive integer")),
        ("bench --rhs 0", ("--rhs", "positive")),
        ("bench --splits -1", ("--splits", "integer from 0 on")),
        ("bench --batched 0x4", ("--batched",)),
        ("bench --variants XX", ("--variants XX", "no routine")),
        ("bench --shapes ugly", ("ugly", "awkward")),
        ("bench --routine gemm3m --dtype s", ("--variants", "gemm3m in s")),
        ("wisdom list x.json", ("list takes no file", "x.json")),
        ("wisdom where x.json", ("takes no file",)),
        ("wisdom list --routine gemm", ("--routine", "forgotten")),
        ("wisdom export --dtype s", ("--dtype",)),
        ("wisdom forget --device h200 --routine syrk", ("--routine", "gemm, trmm, trsm")),
        ("wisdom import", ("import needs the file",)),
        ("wisdom import a b", ("unrecognized arguments: b",)),
        ("wisdom list --device voodoo", ("voodoo", "fermi")),
        ("info x", ("unrecognized arguments: x",)),
    ],
)
def test_nonsense_of_other_commands(arguments, words, capsys, home):
    line = refusal(capsys, *arguments.split())
    assert all(word in line for word in words), line


def test_letters_and_names_may_be_in_capitals():
    options = cli.parser().parse_args(["tune", "--routine", "SGEMM, trsm", "--dtype", "S,D"])
    assert options.routine == ("sgemm", "trsm") and options.dtype == ("s", "d")


@pytest.mark.parametrize(
    "arguments",
    [
        "export F --device h200",
        "export --device h200 F",
        "--device h200 export F",
        "--device=h200 export F",
    ],
)
def test_the_order_of_options_and_files_does_not_matter(arguments):
    options = cli.parser().parse_args(["wisdom", *arguments.split()])
    assert (options.action, options.file, options.device) == ("export", "F", "h200")
    options = cli.parser().parse_args(["report", "a", "--json", "b", "--out", "folder", "c"])
    assert options.sweeps == ["a", "b", "c"] and options.json and options.report == "folder"


# ------------------------------------------------------------------------------------------ names of devices


@pytest.fixture
def here(monkeypatch):
    """A machine whose device 1 is an H200 that the driver describes otherwise than the table does."""
    devices = [known("a100"), replace(H200, l2_bytes=7, ordinal=1)]
    described(monkeypatch, *devices)
    return devices


@pytest.mark.parametrize("name", ["1", "h200", "H200", "NVIDIA H200", "nvidia-h200"])
def test_a_run_tunes_the_device_that_is_named(name, here, monkeypatch):
    tuned = []
    monkeypatch.setattr(tune_command, "tune_device", lambda _, device, routine: tuned.append(device) or 0)
    assert cli.main(["tune", "--device", name]) == 0
    assert tuned == [here[1]]


def test_a_run_is_of_a_device_that_is_here(here, capsys):
    line = refusal(capsys, "tune", "--device", "t4")
    assert "'t4' is no number or name of a device that is here" in line and "1: NVIDIA H200" in line


@pytest.mark.parametrize("name", ["h200", "NVIDIA H200", "Nvidia-h200"])
def test_a_dry_run_takes_every_spelling(name, capsys):
    words = ["--json", "--routine", "strmm", "--effort", "quick", "--device", name]
    assert cli.main(["tune", "--dry-run", *words]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == "NVIDIA H200"


@pytest.mark.skipif(device.count() > 0, reason="there is a device")
def test_explain_is_of_a_device_that_is_here_or_described():
    assert explain("gemm", "s", 64, 64, device="H200")
    device.described_by_driver.cache_clear()
    with pytest.raises(ValueError, match="'voodoo' is none of fermi"):
        explain("gemm", "s", 64, 64, device="voodoo")
    with pytest.raises(BackendUnavailable):
        explain("gemm", "s", 64, 64, device="0")


# -------------------------------------------------------------------------------------------- the dry run


def test_a_dry_run_says_at_once_what_it_does_and_then_each_step(capsys):
    assert cli.main([*QUICK, "--routine", "gemm,trmm", "--dtype", "s"]) == 0
    first, *steps = capsys.readouterr().err.splitlines()
    assert first == "counting candidates on NVIDIA H200: 5 steps"
    assert [step.split()[0] for step in steps] == [f"{number}/5" for number in range(1, 6)]
    assert steps[0].startswith("1/5 gemm_simt s nn: ") and steps[-1].startswith("5/5 trmm_leaf s any: ")


def test_several_processes_count_what_one_does(monkeypatch, capsys):
    monkeypatch.setattr(dryrun, "cores", lambda: 2)
    words = ["--json", "--family", "gemm_mma", "--dtype", "d", "--size", "few_rows", "--min-reuse", "12"]
    assert cli.main(["tune", "--dry-run", "--device", "h200", "--routine", "gemm", *words]) == 0
    rows = json.loads(capsys.readouterr().out)["funnels"]
    options = cli.parser().parse_args(["tune", "--routine", "gemm", *words])
    assert [row["layout"] for row in rows] == ["nn", "nt", "tn", "tt"]
    for row in rows:
        guidelines = dryrun.guidelines(options, dryrun.defaults("gemm_mma", "d", "normal"))
        places = [extents for _, extents in dryrun.tuned_points("gemm_mma", ("few_rows",))]
        alone = candidates("gemm_mma", "d", row["layout"], H200, "normal", guidelines, places)
        assert row["candidates"] == alone.total and row["removed"] == dict(alone.removed)
        assert row["left"] == len(alone.left) and row["added"] == alone.added


# ------------------------------------------------------------------------------------------------- extras


def test_without_greenlet_the_demo_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "greenlet", None)
    monkeypatch.setattr(demo.gpu, "why_unavailable", lambda: None)
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    assert cli.main(["demo", "--n", "20"]) == 0
    text = capsys.readouterr().out
    assert "12 of 12 results" in text and "pip install 'pyblasgpu[sim]'" in text
