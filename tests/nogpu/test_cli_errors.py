"""What goes wrong at the command line: one line that says it, an exit code, and never a traceback."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from recorded import QUICK

from pyblasgpu import cli, terminal
from pyblasgpu.dispatch.tuned_files import user_file
from pyblasgpu.errors import DatabaseWarning
from pyblasgpu.gpu import device
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import command as tune_command
from pyblasgpu.tuning import report
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.sweep_file import append

PACKAGED = Path(cli.__file__).parent / "database" / "nvidia_h200.json"

pytestmark = pytest.mark.usefixtures("home")


def one_line(capsys, *arguments):
    """The line on stderr of a command that fails with 2."""
    assert cli.main([str(each) for each in arguments]) == 2
    output = capsys.readouterr()
    assert not output.out
    (line,) = output.err.splitlines()
    assert line.startswith(f"pyblasgpu {arguments[0]}: ")
    return line


def command(*arguments, **options):
    """The command in a process of its own, its output as bytes."""
    process = [sys.executable, *options.pop("python", ()), "-m", "pyblasgpu", *map(str, arguments)]
    environment = {**os.environ, **options.pop("environment", {})}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(process, env=environment, **streams)


def shell(line):
    """A line of the shell with ``pyblasgpu`` in it: its exit codes, joined, and what is on stderr."""
    name = f"{shlex.quote(sys.executable)} -m pyblasgpu"
    script = line.replace("pyblasgpu", name, 1) + '; echo "codes ${PIPESTATUS[@]}" >&2'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    *err, codes = done.stderr.splitlines()
    return codes.removeprefix("codes "), err


# ------------------------------------------------------------------------------------------ files and folders


@pytest.fixture
def bad(tmp_path):
    """Files that are not what they ought to be, by name."""
    whole = QUICK.read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "flipped.jsonl.gz").write_bytes(whole[:2000] + bytes(100) + whole[2100:])
    (tmp_path / "plain.jsonl.gz").write_text("{}\n")
    (tmp_path / "folder.gz").mkdir()
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["cut.jsonl.gz", "flipped.jsonl.gz", "plain.jsonl.gz", "folder.gz", "absent"]
)
def test_a_sweep_that_cannot_be_read_is_named(name, bad, capsys):
    assert name in one_line(capsys, "report", bad / name)


@pytest.mark.parametrize("damage", [EOFError("ended"), zlib.error("Error -3")])
def test_whatever_unpacking_raises_is_an_oserror_that_names_the_file(damage, monkeypatch, tmp_path):
    def broken(*_):
        raise damage

    monkeypatch.setattr(gzip.GzipFile, "read", broken)
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"{}"))
    with pytest.raises(OSError, match=r"x\.gz is no whole gzip file"):
        tune_command.read_sweep(path)


def test_rubbish_in_a_sweep_is_reported(bad, capsys):
    with pytest.warns(DatabaseWarning, match="no records"):
        assert "there are no records" in one_line(capsys, "report", bad / "binary.jsonl")


@pytest.mark.parametrize("name", ["cut.jsonl.gz", "folder.gz", "binary.json", "absent"])
def test_wisdom_that_cannot_be_read_is_named(name, bad, capsys):
    assert f"{name} is not taken in" in one_line(capsys, "wisdom", "import", bad / name)


def test_where_nothing_can_be_written(tmp_path, capsys, home):
    (home / "file").write_text("in the way")
    cli.main(["wisdom", "import", str(PACKAGED)])
    capsys.readouterr()
    export = "wisdom", "export", "--device", "h200"
    assert "No such file" in one_line(capsys, *export, tmp_path / "absent" / "x.json")
    assert "directory" in one_line(capsys, *export, tmp_path)
    path = tmp_path / "sweep.jsonl"
    append(path, Record("NVIDIA H200", "sm_90", "gemm_simt", "s", "nn", "large", (1, 1, 1)))
    assert cli.main(["report", str(path), "--out", str(home / "file")]) == 2
    assert str(home / "file") in capsys.readouterr().err
    (home / "data").rename(home / "elsewhere")
    (home / "data").write_text("in the way")
    assert str(home / "data") in one_line(capsys, "wisdom", "import", PACKAGED)


@pytest.mark.parametrize(
    "problem",
    [
        PermissionError(13, "Permission denied", "/a/file"),
        OSError("no more"),
        EOFError("the end"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        json.JSONDecodeError("no", "x", 0),
        zlib.error("Error -3"),
        DatabaseWarning("two\nlines"),
        TimeoutError(),
        MemoryError(),
        ModuleNotFoundError("No module named 'x'"),
    ],
)
def test_what_is_foreseen_is_one_line(problem, capsys, monkeypatch):
    def fails():
        raise problem

    monkeypatch.setattr("pyblasgpu.info.collect", fails)
    line = one_line(capsys, "info")
    assert len(line) > len("pyblasgpu info: ")
    if isinstance(problem, PermissionError):
        assert line == "pyblasgpu info: /a/file: Permission denied"


def test_a_function_with_the_name_of_its_command_is_named_once(capsys):
    line = one_line(capsys, "explain", "dsyevd", "20000", "--device", "h200")
    too_large = "syevd: a is of order 20000; eigenvalues of float64 are computed"
    assert line.startswith(f"pyblasgpu explain: {too_large}")
    line = one_line(capsys, "explain", "dgemm", "512", "--method", "3m", "--device", "h200")
    assert line.startswith("pyblasgpu explain: method='3m' is for complex arrays")


@pytest.mark.parametrize(
    "defect", [TypeError("a defect"), KeyError("x"), ModuleNotFoundError("x", name="pyblasgpu.x")]
)
def test_a_defect_keeps_its_traceback(defect, monkeypatch):
    def fails():
        raise defect

    monkeypatch.setattr("pyblasgpu.info.collect", fails)
    with pytest.raises(type(defect)):
        cli.main(["info"])


def test_an_interruption_has_the_code_of_its_signal(capsys, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("pyblasgpu.info.collect", interrupted)
    assert cli.main(["info"]) == 130
    assert capsys.readouterr().err == "pyblasgpu info: interrupted\n"


def test_warnings_are_a_line_and_no_errors_of_their_own(home):
    path = user_file("NVIDIA H200")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    done = command("wisdom", "list")
    assert done.returncode == 0
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("pyblasgpu wisdom: ") and path.name in line
    done = command("wisdom", "list", python=["-W", "error"])
    assert done.returncode == 2 and len(done.stderr.decode().splitlines()) == 1
    assert command("info", python=["-W", "error"]).returncode == 0


# ------------------------------------------------------------------------------------------- pipes, terminals


@pytest.fixture
def sweep(tmp_path):
    """A small one, whose table has characters that not every terminal has."""
    path = tmp_path / "sweep.jsonl"
    parameters = {"BLK_M": 64, "BLK_N": 32, "BLK_K": 8, "DIM_X": 8, "DIM_Y": 8}
    facts = {"parameters": parameters, "seconds": 1.0, "tflops": 1.0}
    append(path, Record("NVIDIA H200", "sm_90", "gemm_simt", "s", "nt", "large", (64, 64, 64), **facts))
    return path


def test_a_pipe_that_is_closed(sweep):
    codes, err = shell(f"(sleep 1; pyblasgpu report {sweep}) | head -0")
    assert codes == "141 0" and err == ["pyblasgpu report: the reader of the output has gone"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_disk_that_is_full():
    codes, err = shell("pyblasgpu info > /dev/full")
    assert codes == "2" and err == ["pyblasgpu info: No space left on device"]


def test_closed_streams():
    assert shell("pyblasgpu info >&-") == ("0", [])


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_terminal_without_the_characters(environment, sweep, tmp_path):
    arguments = ["--out", tmp_path / "out"] if "LC_ALL" in environment else []
    done = command("report", sweep, *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    table = done.stdout.decode("ascii")
    assert "AB^T" in table and "64x32" in table
    if arguments:
        page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
        assert "ABᵀ" in page and "×" in page


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_streams_write_in_other_words_what_they_lack(encoding, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding))

    def says():
        print("64×32 ABᵀ −1 € caf\udce9")
        return 0

    assert terminal.guarded(["x"], says) == 0
    expected = {"ascii": b"64x32 AB^T -1 ? caf\xe9\n", "latin-1": b"64\xd732 AB^T -1 ? caf\xe9\n"}
    assert raw.getvalue() == expected.get(encoding, "64×32 ABᵀ −1 € caf".encode() + b"\xe9\n")
    assert sys.stdout.errors == "strict"


def test_names_of_files_are_written_as_they_are(tmp_path, home):
    path = os.fsencode(tmp_path) + b"/caf\xe9.json"
    done = subprocess.run([sys.executable, "-m", "pyblasgpu", "wisdom", "import", path], capture_output=True)
    assert done.returncode == 2 and b"caf\xe9.json is not taken in" in done.stderr


@pytest.mark.usefixtures("default_sigint")
def test_ctrl_c_ends_a_dry_run_with_its_code():
    words = ["tune", "--dry-run", "--device", "h200", "--routine", "sgemm", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pyblasgpu", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert "counting candidates on NVIDIA H200" in process.stderr.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130 and not out
    assert "Traceback" not in err and err.splitlines()[-1] == "pyblasgpu tune: interrupted"


# ----------------------------------------------------------------------------------------------- extras


def test_without_matplotlib_a_report_says_what_to_install(sweep, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyblasgpu.tuning.plots", None)
    monkeypatch.delattr("pyblasgpu.tuning.plots", raising=False)
    assert "pip install 'pyblasgpu[plot]'" in report.why_no_plots()
    assert cli.main(["report", str(sweep), "--out", str(tmp_path)]) == 0
    assert "no plots: " in capsys.readouterr().err


def test_brackets_are_no_styles(capsys):
    terminal.console(80).print("pip install 'pyblasgpu[sim]' :x:")
    assert capsys.readouterr().out == "pip install 'pyblasgpu[sim]' :x:\n"


@pytest.mark.skipif(device.count() > 0, reason="there is a device")
def test_what_a_real_run_needs_is_reported(capsys):
    assert "driver" in one_line(capsys, "tune")
    assert "'h200' is no number or name of a device that is here" in one_line(
        capsys, "tune", "--device", "h200"
    )
    assert "--compile is of a dry run" in one_line(capsys, "tune", "--compile")
    assert known("h200").name not in one_line(capsys, "report")
