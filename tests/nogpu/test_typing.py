"""What type checkers say of right and wrong calls, and stubs that are those of the functions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools import make_stubs

ROOT = Path(__file__).parents[2]
CALLS = ROOT / "tests" / "typing" / "calls.py"


#: mypy's codes of an argument that does not fit; which one it is goes by the number of overloads.
OF_ARGUMENTS = {"arg-type", "call-overload", "type-var"}


def expected() -> dict[int, str]:
    """The lines that are marked as wrong, and their errors."""
    lines = enumerate(CALLS.read_text().splitlines(), 1)
    found = {number: re.search(r"  # E: (\S+)$", line) for number, line in lines}
    return {number: match[1] for number, match in found.items() if match}


def run(*words: str, cwd: Path = ROOT) -> str:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True).stdout


@pytest.mark.skipif(not find_spec("mypy"), reason="needs mypy, of the extra test")
def test_mypy():
    flags = ("--strict", "--config-file=", "--follow-imports=silent", "--no-error-summary")
    output = run(sys.executable, "-m", "mypy", *flags, str(CALLS))
    errors = re.findall(r"calls\.py:(\d+): error: .*\[([\w-]+)\]$", output, re.MULTILINE)
    found = {int(number): "argument" if code in OF_ARGUMENTS else code for number, code in errors}
    assert found == expected(), "\n".join(line for line in output.splitlines() if "note:" not in line)


@pytest.mark.skipif(not find_spec("basedpyright"), reason="needs basedpyright, of the extra test")
def test_pyright(tmp_path):
    """In its strict mode, but for what it cannot know of NumPy."""
    (tmp_path / "calls.py").write_text(CALLS.read_text())
    rules = {"typeCheckingMode": "strict", "include": ["calls.py"], "extraPaths": [str(ROOT)]}
    rules |= {"pythonPlatform": "Linux", "reportUnusedExpression": "none", "reportUnusedCallResult": "none"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(rules))
    output = run(sys.executable, "-m", "basedpyright", "--outputjson", cwd=tmp_path)
    report = json.loads(output)
    errors = {each["range"]["start"]["line"] + 1: each for each in report["generalDiagnostics"]}
    errors = {line: each for line, each in errors.items() if each["severity"] == "error"}
    assert set(errors) == set(expected()), output


@pytest.mark.parametrize("module", make_stubs.MODULES)
def test_stubs_are_what_the_tool_writes(module):
    """``python tools/make_stubs.py`` writes them anew, after a change of a signature."""
    assert (make_stubs.PACKAGE / f"{module}.pyi").read_text() == make_stubs.stub(module)


@pytest.mark.parametrize("module", make_stubs.MODULES)
def test_stubs_leave_no_parameter_open(module):
    """Parameters of any type are the values of `override`, dtypes, pivots and outputs in tuples."""
    text = (make_stubs.PACKAGE / f"{module}.pyi").read_text()
    parameters = set(re.findall(r"(\w+): (?:Any|str \| None)\b", text))
    assert parameters <= {"dtype", "ilp64", "ipiv", "out", "piv", "value"}
    public = import_module("pyblasgpu" if module == "__init__" else f"pyblasgpu.{module}").__all__
    assert all(re.search(rf"^(def |from .* as |){name}\b", text, re.MULTILINE) for name in public)
