"""LAPACK's own testers, xlintst and xeigtst, which call pyblasgpu in the place of LAPACK.

``python -m tools.fortran_testers [--on cpu|launches|simulator|card] [--letters sdcz] [--paths lin,sep,...]``.
The testers are Debian's (package liblapack-test; ``--folder`` says where xeigtsts and others are), with its
LAPACK for the rest. A shared object that is loaded before LAPACK takes the calls of `fortran_answers`
to the functions of `lapack` and `linalg`. It is made here, which needs a C compiler.

On `launches` kernels are computed with NumPy, on `simulator` in Numba's simulator, which is for orders to 3
or so (``--orders``). On `lapack` nothing is taken, for comparison.

Printed are the calls, and of each part of a tester the tests, those that fail, and the largest ratios.
Arguments that are wrong are not tested: the functions have no leading dimensions and workspaces.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tools.fortran_answers import routines

FOLDER = Path("/usr/lib/x86_64-linux-gnu/lapack")
ROOT = Path(__file__).resolve().parents[1]


class Input(NamedTuple):
    """The tester and a file of its input, the threshold, orders in the place of the file's, those of rows
    first, or none, and whether parts that are not of drivers are run too.
    """

    tester: str
    file: str
    threshold: float
    orders: list[str]
    has_routines: bool = True


_ROWS, _COLUMNS = "0 0 1 1 2 3 3 10 16 30 40 80 130 66", "0 3 0 1 2 1 3 16 10 40 30 66 70 130"
PATHS = {
    "lin": Input("xlintst", "{}test.in", 30.0, ["0 1 2 3 5 10 50"] * 2),
    "large lin": Input("xlintst", "{}test.in", 30.0, ["66 130"] * 2),
    "sep": Input("xeigtst", "sep.in", 50.0, ["0 1 2 3 5 20 40 66"]),
    "large sep": Input("xeigtst", "sep.in", 50.0, ["67 130"], False),
    "svd": Input("xeigtst", "svd.in", 50.0, [_ROWS, _COLUMNS], False),
    "sg": Input("xeigtst", "{}sg.in", 20.0, ["0 1 2 3 5 10 16 40"]),
    **{name: Input("xeigtst", f"{name}.in", 20.0, []) for name in ("glm", "gqr", "lse")},
}
DENSE = 15  # types of matrices of xeigtst that are no bands, whose storage holds no large ones
#: Parts of xlintst that call routines that this library has; a workspace of the last one is for small orders.
LINEAR = ["GE", "PO", "SY", "HE", "QR", "LQ", "QP", "LS", "TR"]
_RATIO = re.compile(r"(?:test|result)[ (]*(\d+)\)?,?(?: ratio)? *(?:=|is) *(\S+)")
_END = re.compile(
    r"(?:All tests for)? *([A-Z0-9]{3}(?: drivers)?):? *.*(?:passed|failed to pass) the threshold"
)

_SHIM = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
void *taken[{count}];
static void __attribute__((constructor)) begin(void) {{
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    PyConfig_SetBytesString(&config, &config.program_name, {python});
    PyStatus status = Py_InitializeFromConfig(&config);
    if (PyStatus_Exception(status)) Py_ExitStatusException(status);
    char line[200];
    snprintf(line, sizeof line, "from tools import fortran_answers as calls; calls.install(%p)", taken);
    if (PyRun_SimpleString(line)) exit(70);
}}
static void __attribute__((destructor)) end(void) {{
    PyRun_SimpleString("calls.report()");
}}
{functions}
"""


class Part(NamedTuple):
    """What a part of a tester found: its name, ratios by the number of the test, and lines of errors."""

    name: str
    ratios: dict[int, list[float]]
    errors: list[str]


def shim(folder: Path) -> Path:
    """The shared object whose functions have the names of LAPACK's."""
    functions = []
    for place, (name, (_, arguments)) in enumerate(routines().items()):
        passed = [f"p{number}" for number, _ in enumerate(arguments)]
        functions.append(
            f"void {name}_({', '.join(f'void *{each}' for each in passed)}) "
            f"{{ ((void (*)({', '.join(['void *'] * len(passed))}))taken[{place}])({', '.join(passed)}); }}"
        )
    source, made = folder / "shim.c", folder / "shim.so"
    python = f'"{sys.executable}"'
    source.write_text(
        _SHIM.format(count=len(functions), python=python, functions="\n".join(functions)), "utf-8"
    )
    where, version = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDVERSION")
    include = sysconfig.get_paths()["include"]
    command = ["cc", "-shared", "-fPIC", "-O1", f"-I{include}", str(source), "-o", str(made)]
    subprocess.run([*command, f"-L{where}", f"-lpython{version}", f"-Wl,-rpath,{where}"], check=True)
    return made


def questions(path: str, letter: str, folder: Path, orders: list[str]) -> str:
    """The tester's input, for other orders, one width of blocks and a threshold that each ratio reaches."""
    lines = (folder / PATHS[path].file.format(letter)).read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        if orders and re.search(r"Number of values of [MN]\b", line):
            lines[number] = str(len(orders[0].split()))
        elif orders and (found := re.search(r"Values of ([MN])\b", line)):
            lines[number] = orders["MN".index(found[1]) if len(orders) > 1 else 0]
        elif re.search(r"Number of (values of NB|parameter values)", line):
            lines[number] = "1"
        elif "Threshold" in line:
            lines[number] = "0.0"
        elif "error exits" in line or ("LAPACK routines" in line and not PATHS[path].has_routines):
            lines[number] = "F"
        elif path == "large sep" and number and (found := re.match(r"([A-Z]{3}) \d+", line)):
            lines[number:] = [f"{found[1]} {DENSE}", " ".join(map(str, range(1, DENSE + 1)))]
    if path.endswith("lin"):  # a line each part
        wanted = [letter.upper() + each for each in LINEAR if not (path == "large lin" and each == "TR")]
        first = next(number for number, line in enumerate(lines) if re.match("[SDCZ]GE ", line))
        lines[first:] = [line for line in lines[first:] if line[:3] in wanted]
    return "\n".join(lines) + "\n"


def parts(output: str) -> Iterator[Part]:
    """The parts of a tester's output."""
    ratios: dict[int, list[float]] = {}
    errors: list[str] = []
    for line in output.splitlines():
        if found := _RATIO.search(line):
            value = re.sub(r"(?<=\d)([+-]\d{2,3})$", r"E\1", found[2].replace("D", "E"))
            number = float(value) if re.match(r"[-+\d.]", value) else float("inf")
            ratios.setdefault(int(found[1]), []).append(number)
        elif ended := _END.search(line):
            yield Part(ended[1], ratios, errors)
            ratios, errors = {}, []
        elif "INFO" in line or "***" in line:
            errors.append(line.strip())
    if ratios or errors:
        yield Part("not ended", ratios, errors)


def run(tester: Path, text: str, made: Path | None, on: str) -> tuple[str, str]:
    """What a tester prints, and what the calls of pyblasgpu do."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *sys.path[1:]])
    environment = os.environ | {"PYTHONPATH": paths, "PYBLASGPU_TESTED_ON": on, "OPENBLAS_NUM_THREADS": "1"}
    if on == "simulator":
        environment["NUMBA_ENABLE_CUDASIM"] = "1"
    if made:
        environment["LD_PRELOAD"] = str(made)
    done = subprocess.run(
        [tester], input=text, env=environment, capture_output=True, text=True, check=False, cwd=tester.parent
    )
    if done.returncode:
        sys.exit(f"{tester.name} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout, done.stderr


def shown(part: Part, threshold: float) -> tuple[str, int]:
    """What is printed of a part, and the number of its failures."""
    ratios = part.ratios.items()
    bad = sum(each >= threshold for _, found in ratios for each in found)
    largest = sorted(((max(found), test) for test, found in ratios), reverse=True)[:3]
    worst = ", ".join(f"{value:.3g} of test {test}" for value, test in largest)
    count = sum(len(found) for _, found in ratios)
    lines = [
        f"  {part.name}: {count} tests, {bad} fail; largest {worst}",
        *(f"    {each}" for each in part.errors),
    ]
    return "\n".join(lines), bad + len(part.errors)


def main() -> int:
    """Run the testers that are wanted; 1 where a test fails, or one did nothing."""
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--folder", type=Path, default=FOLDER)
    options.add_argument("--on", choices=("lapack", "cpu", "launches", "simulator", "card"), default="cpu")
    options.add_argument("--letters", default="sdcz")
    options.add_argument("--paths", default=",".join(PATHS))
    options.add_argument("--orders", help="orders in place of those of the paths, as '1 2 5'")
    wanted = options.parse_args()
    failed = 0
    with TemporaryDirectory() as folder:
        made = shim(Path(folder)) if wanted.on != "lapack" else None
        for path in wanted.paths.split(","):
            tester, _, threshold, orders, _ = PATHS[path]
            orders = [wanted.orders] * len(orders) if wanted.orders else orders
            for letter in wanted.letters:
                text = questions(path, letter, wanted.folder, orders)
                output, calls = run(wanted.folder / f"{tester}{letter}", text, made, wanted.on)
                print(f"{path} {letter}: {calls.strip()}")
                found = [shown(part, threshold) for part in parts(output)]
                print("\n".join(text for text, _ in found), flush=True)
                failed += sum(bad for _, bad in found) or not found
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
