"""The house: imports run downwards only, one folder knows Numba, and importing the package is cheap."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import import_graph
import pytest
from import_graph import FILES, PACKAGE, imports

TESTS = Path(__file__).parents[1]

#: From the top down. A module imports from its own line and from the lines below it.
LAYERS = [
    {"__main__"},
    {"cli"},
    {"demo"},
    {"bench"},
    {"command_line"},
    {"options"},
    {"tuning"},
    {"build", "explain_command", "run_command"},
    {"testing"},
    {
        "__init__",
        "blas",
        "cupy_patch",
        "dask",
        "info",
        "jax",
        "lapack",
        "linalg",
        "patching",
        "scipy_patch",
        "torch",
        "torch_patch",
    },
    {"patches"},
    {"api"},
    {"frontend"},
    {"cpu"},
    {"engine", "ragged"},
    {"routines"},
    {"dispatch"},
    {"model"},
    {"database"},
    {"kernels"},
    {"gpu"},
    {"operands", "tasks"},
    {"terminal", "processes"},
    {"routine_table"},
    {"lapack_rows"},
    {"routine"},
    {
        "types",
        "errors",
        "arguments",
        "settings",
        "typing",
        "graph_breaks",
        "package_files",
        "after_import",
        "operators",
    },
]
KERNEL_FILES = [file for file in FILES if re.search(r"^PARAMETERS = ", file.read_text(), re.MULTILINE)]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}


def layer(name: str) -> str:
    """The layer that a full name within the package belongs to."""
    part = (name.split(".") + ["__init__"])[1]
    return part if part in DEPTH else "__init__"


def test_every_module_has_a_layer():
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))
    }
    assert modules <= set(DEPTH)


def upward_imports(file, package=PACKAGE) -> list[str]:
    """The imports of `file` from layers above its own."""
    here = DEPTH[file.relative_to(package).with_suffix("").parts[0]]
    return [
        f"line {line}: {name}"
        for line, name in imports(file, package)
        if name.split(".")[0] == "pyblasgpu" and DEPTH[layer(name)] < here
    ]


def test_imports_run_downwards():
    assert {str(file): found for file in FILES if (found := upward_imports(file))} == {}


def test_the_architecture_has_the_layers():
    """The chain of its page, from the left to the right, is LAYERS from the bottom up."""
    text = (TESTS.parent / "docs" / "architecture.md").read_text()
    (chain,) = re.findall(r"^(.* < .*)\.$", text, re.MULTILINE)
    named = [set(line.replace("`", "").split(", ")) for line in chain.split(" < ")]
    assert named == LAYERS[::-1]
    (listed,) = re.findall(r"```\npyblasgpu/\n(.*?)```", text, re.DOTALL)
    entries = re.findall(r"^  (\S.*?)  +\S", listed, re.MULTILINE)
    assert {name.strip("/") for entry in entries for name in entry.split()} == set(DEPTH)


def test_what_serves_a_call_never_reaches_the_tuner():
    """Nor the tests' parts and the command line, through whatever they import, lazily or not."""
    below = {
        name for name in import_graph.modules() if layer(name) in ("dispatch", "routines", "frontend", "api")
    }
    reached = {layer(name) for name in import_graph.reachable(below)}
    assert not reached & {"tuning", "testing", "bench", "build", "demo", "cli"}


#: Circles that are left: the texts of these modules key compiled kernels, and a change compiles all anew.
CIRCLES = {
    "gpu/build": {"compile", "translate"},  # for a type
    "kernels": {"common", "copy"},  # tiles know the layout of packed operands
}


def circles_of(imported: dict[str, set[str]]) -> dict[str, set[str]]:
    """The files and folders in circles, by the folder that they are in; a module's imports are given."""
    graphs: dict[str, dict[str, set[str]]] = {}
    for module, others in imported.items():
        for other in others - {module}:
            folder, one, two = import_graph.entries(module, other)
            graph = graphs.setdefault(folder, {})
            graph.setdefault(one, set()).add(two)
            graph.setdefault(two, set())
    found = {folder: set().union(*import_graph.circles(graph)) for folder, graph in graphs.items()}
    return {folder: names for folder, names in found.items() if names}


def test_no_imports_run_in_a_circle():
    """Files and folders of a folder can be ordered, lazy imports and those of types included."""
    assert circles_of(import_graph.every_import()) == CIRCLES


def test_a_circle_is_seen():
    """One within a folder, and one between folders, whose files are in none."""
    imported = {**import_graph.every_import(), "pyblasgpu.types": {"pyblasgpu.arguments"}}
    imported |= {
        "pyblasgpu.arguments": {"pyblasgpu.types"},
        "pyblasgpu.model.gemm": {"pyblasgpu.dispatch.choose"},
    }
    found = circles_of(imported)
    assert found[""] >= {"types", "arguments", "model", "dispatch"} and "engine" not in found[""]


def importers(*roots: str) -> set[str]:
    """The layers that import one of the outside packages `roots`."""
    return {
        file.relative_to(PACKAGE).with_suffix("").parts[0]
        for file in FILES
        for _, name in imports(file)
        if name.split(".")[0] in roots
    }


def test_only_gpu_and_cpu_know_numba():
    assert importers("numba", "numba_cuda", "llvmlite") == {"gpu", "cpu"}


def test_kernels_and_routines_do_without_numpy():
    assert not importers("numpy", "scipy") & {"kernels", "routines", "operands", "types", "errors"}


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        (
            "def late():\n    from ..api import level3\n    from .. import cli\n    import pyblasgpu\n",
            "api cli __init__",
        ),
        ("from ..tuning.session import Tuner\n", "tuning"),
        ("import_module('..tuning.session', __package__)\n", "tuning"),
    ],
)
def test_an_upward_import_is_seen(tmp_path, text, layers):
    file = tmp_path / "dispatch" / "planted.py"
    file.parent.mkdir()
    file.write_text(text)
    assert [layer(name) for _, name in imports(file, tmp_path)] == layers.split()
    assert len(upward_imports(file, tmp_path)) == len(layers.split())


#: First words that leave out the noun which a text is about.
HEADLESS = re.compile(r"(?:Of|Those|That|As|The same|What|Where)\b")


def headless_texts(text: str) -> list[str]:
    """The first lines of headless docstrings, `#:` comments and descriptions of parameters."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [
        ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, documented)
    ]
    comments = re.findall(r"^(?:.* )?#: (.*)(?:\n *#: .*)*", text, re.MULTILINE)
    parameters = re.findall(r"^ +[\w*, ]+ : .*\n +(.*)", text, re.MULTILINE)
    texts = filter(None, docstrings + comments + parameters)
    return [each.splitlines()[0] for each in texts if HEADLESS.match(each)]


def test_texts_begin_with_a_verb_or_a_noun():
    found = {file.relative_to(PACKAGE).as_posix(): headless_texts(file.read_text()) for file in FILES}
    assert not {file: texts for file, texts in found.items() if texts}


@pytest.mark.parametrize(
    "text",
    [
        '"""What tiles share."""\n',
        'def half(n):\n    """The same of half the columns."""\n',
        'class Tile:\n    """A tile."""\n\n    def rows(self):\n        """Those of the tile."""\n',
        "'''Tiles.\n\n    n : int\n        Of the tile.\n'''\n",
        "#: Of a thread.\nREGISTERS = 255\n",
        "REGISTERS = 255  #: As the driver has them.\n",
        "#: Rows of a tile,\n#: and columns.\nROWS = 8\n#: That of a tile.\nCOLS = 8\n",
    ],
)
def test_a_headless_text_is_seen(text):
    assert len(headless_texts(text)) == 1
    whole = "#: Rows of a tile,\n#: Of which few are used.\nROWS = 8\n"
    assert not headless_texts(whole)


KERNEL_PARAMETERS = re.compile(r"^Kernel parameters.*\n-+\n((?:.+\n)+)", re.MULTILINE)


def listed_parameters(docstring: str) -> Iterator[list[tuple[str, str]]]:
    """Names and types in each list of kernel parameters: ``name, ...: type, meaning``, a line each."""
    for entries in KERNEL_PARAMETERS.findall(docstring):
        pairs = re.findall(r"^([\w, ]+): ([\w ]+), \S.*$", entries, re.MULTILINE)
        assert len(pairs) == entries.count("\n"), entries
        yield [(name, kind) for names, kind in pairs for name in names.split(", ")]


def declared_parameters(tree: ast.Module) -> Iterator[list[tuple[str, str]]]:
    """Names and types of each call of `parameters`: ``type: name, ...`` each."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(getattr(node.value, "func", node)) == "parameters":
            pairs = [argument.value.split(": ") for argument in node.value.args]
            yield [(name, kind) for kind, names in pairs for name in names.split(", ")]


@pytest.mark.parametrize("file", KERNEL_FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_kernel_parameters_are_listed(file):
    """The docstring lists what is declared, in the order and by the names that the kernel has."""
    tree = ast.parse(file.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    lists = [each for node in functions for each in listed_parameters((ast.get_docstring(node) or "") + "\n")]
    assert lists == list(declared_parameters(tree))
    kernels = [[each.arg for each in node.args.args] for node in functions if node.col_offset]
    for each in lists:
        names = [name for name, _ in each]
        assert names in kernels or not any(len(arguments) == len(names) for arguments in kernels)


def private_names(tree: ast.AST) -> list[str]:
    """Names with a leading underscore that a text takes from this package's modules."""
    names = []
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pyblasgpu":
            modules |= {alias.asname or alias.name for alias in node.names}
            names += [alias.name for alias in node.names]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules:
            names.append(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setattr"):
            target, name = node.args[0], node.args[1] if len(node.args) > 1 else None
            if ast.unparse(target) in modules and isinstance(name, ast.Constant):
                names.append(name.value)
            elif isinstance(target, ast.Constant) and target.value.startswith("pyblasgpu."):
                names.append(target.value.rpartition(".")[2])
    return [name for name in names if name.startswith("_") and not name.startswith("__")]


def test_tests_use_public_names():
    private = {str(file): private_names(ast.parse(file.read_text())) for file in TESTS.rglob("*.py")}
    assert not {file: names for file, names in private.items() if names}


@pytest.mark.parametrize(
    "text",
    [
        "from pyblasgpu.gpu.launch import _kernel",
        "from pyblasgpu.gpu import launch\nlaunch._kernel()",
        "from pyblasgpu.gpu import launch as other\nmonkeypatch.setattr(other, '_kernel', 1)",
        "monkeypatch.setattr('pyblasgpu.gpu.launch._kernel', 1)",
    ],
)
def test_a_private_name_is_seen(text):
    assert private_names(ast.parse(text)) == ["_kernel"]


def test_import_touches_no_device_library_and_is_quick():
    program = """
import sys, time
start = time.process_time()
import pyblasgpu
seconds = time.process_time() - start
heavy = {"numba", "numba_cuda", "llvmlite", "cuda", "cupy", "torch", "matplotlib", "rich", "dask"}
print(seconds, *sorted(heavy & {name.split(".")[0] for name in sys.modules}))
"""
    runs = [subprocess.check_output([sys.executable, "-c", program], text=True).split() for _ in range(3)]
    assert runs[0][1:] == []
    assert min(float(run[0]) for run in runs) < 0.7


def test_routines_import_the_kernels_that_they_run_when_they_run_them():
    """And the registry imports no kernel at all."""
    kernels = "{name for name in sys.modules if name.startswith('pyblasgpu.kernels.')}"
    program = f"import sys, pyblasgpu.kernels.registry; print(*{kernels})"
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert all(name.rpartition(".")[2] == "family" or name.count(".") == 2 for name in output.split())
    program = f"import sys, pyblasgpu.routines.level3.trsm; print(*{kernels})"
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    heavy = {
        f"pyblasgpu.kernels.{name}"
        for name in ("gemm.simt", "gemm.mma", "trsm.fma", "trsm.mma", "trsm.space")
    }
    assert not heavy & set(output.split())


#: Of two threads that import these at once one may find a module half made: the package imports them.
_CIRCULAR = r"(from|import) scipy\.linalg\.(blas|lapack)|import_module\(\"scipy\.linalg\.(blas|lapack)\"\)"


@pytest.mark.parametrize("folder", ["api", "frontend"])
def test_threads_may_make_the_first_call_together(folder):
    """`scipy.linalg` is imported, and its parts are taken from it."""
    for file in (PACKAGE / folder).glob("*.py"):
        assert not re.search(_CIRCULAR, file.read_text()), file
