"""Write the stubs of the public modules: the signatures that functions have, with types that checkers see.

    python tools/make_stubs.py           # writes pyblasgpu/__init__.pyi, blas.pyi, lapack.pyi and linalg.pyi
    python tools/make_stubs.py --check   # exits with 1 where one of them is not what it would write

Names, order and defaults of parameters are those at run time. Types go by the annotation of a parameter, and
by its name where the annotation leaves them open.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

if __name__ == "__main__":  # run as a file, the interpreter finds what is in its folder only
    sys.path.insert(0, str(Path(__file__).parents[1]))

PACKAGE = Path(__file__).parents[1] / "pyblasgpu"
MODULES = ("__init__", "blas", "lapack", "linalg")
WIDTH = 110

#: Types of parameters by their names, whatever their annotations are; "A" is the kind of array.
_BY_NAME = {
    "alpha": "Number",
    "ap": "A",
    "a": "A",
    "assume_a": "AssumeA | None",
    "axes": "int | tuple[int | Sequence[int], int | Sequence[int]]",
    "b": "A",
    "backend": "Backend | None",
    "beta": "Number",
    "c_and_lower": "tuple[A, Switch]",
    "casting": "Casting",
    "check_finite": "Switch | None",
    "conj": "Switch",
    "devices": "Devices | None",
    "diag": "DiagFlag",
    "lower": "UploFlag",
    "lu_and_piv": "tuple[A, Any]",
    "method": 'Literal["tensor"] | None',
    "order": "Order | None",
    "progress": "Progress | None",
    "side": "SideFlag",
    "trans": "TransFlag",
    "trans_a": "TransFlag",
    "trans_b": "TransFlag",
    "unit_diag": "DiagFlag",
    "unit_diagonal": "DiagFlag",
    "unitdiag": "DiagFlag",
    "upper": "Switch | None",
    "x": "A",
    "y": "A",
}
_DRIVER = 'Literal["ev", "evd", "evr", "evx", "gv", "gvd", "gvx"] | None'
#: Functions of lists of arrays.
_GROUPED = ("gemm_grouped", "potrf_grouped", "trsm_grouped")
#: Those of one function, by module.
_BY_FUNCTION = {
    ("__init__", "gemm", "method"): "Method | None",
    ("__init__", "plan_gemm", "method"): "Method | None",
    ("__init__", "explain", "method"): "Method | None",
    ("__init__", "set_math_mode", "mode"): "MathMode | None",
    **{("__init__", name, x): "Sequence[A]" for name in _GROUPED for x in "ab"},
    **{("__init__", name, x): "Number | Sequence[Number]" for name in _GROUPED for x in ("alpha", "beta")},
    **{
        ("__init__", name, flag): f"{kind} | Sequence[{kind}]"
        for name in _GROUPED
        for flag, kind in _BY_NAME.items()
        if kind.endswith("Flag")
    },
    ("blas", "gemm", "method"): "Method | None",
    ("blas", "axpy", "a"): "Number",
    ("blas", "scal", "a"): "Number",
    **{("blas", "rotg", name): "Number" for name in ("a", "b")},
    **{("blas", "rotmg", name): "Number" for name in ("d1", "d2", "x1", "y1")},
    ("linalg", "matmul", "method"): "Method | None",
    ("linalg", "lstsq", "lapack_driver"): 'Literal["gelsd", "gelsy", "gelss", "gels"] | None',
    ("linalg", "qr", "mode"): 'Literal["full", "economic", "r", "raw", "complete", "reduced"]',
    ("linalg", "qr_multiply", "mode"): 'Literal["left", "right"]',
    ("linalg", "polar", "side"): 'Literal["right", "left"]',
    **{("linalg", name, "lapack_driver"): 'Literal["gesdd", "gesvd"]' for name in ("null_space", "svd")},
    **{("linalg", name, "UPLO"): 'Literal["L", "U", "l", "u"] | None' for name in ("eigh", "eigvalsh")},
    ("linalg", "eigh", "driver"): _DRIVER,
    ("linalg", "eigvalsh", "driver"): _DRIVER,
    **{("linalg", name, "type"): "Literal[1, 2, 3]" for name in ("eigh", "eigvalsh")},
    **{("linalg", name, "which"): 'Literal["row", "col"]' for name in ("qr_delete", "qr_insert")},
}
#: Functions whose result is a number where the arrays are NumPy's, or always.
_SCALARS = {"amax", "asum", "det", "dot", "dotc", "dotu", "iamax", "inner", "nrm2", "vdot", "vecdot"}
#: Results of one function, by module.
_RESULTS = {("linalg", "cho_factor"): "tuple[A, Switch]", ("linalg", "lu_factor"): "tuple[A, Any]"}
#: Functions that take numbers in the place of arrays.
_TAKING_NUMBERS = {("linalg", name) for name in ("dot", "einsum", "inner", "outer", "tensordot", "vdot")}
_LETTERS = re.compile(r"^((cs|zd)(?=scal|rot)|(sc|dz)(?=asum|nrm2)|i[sdcz](?=amax)|[sdcz](?=\w{3}))")
_INTEGERS = re.compile(r"(inc|off)[xy]?|[mnk]|k[lu]|k[12]")
_ARRAY = re.compile(r"\bA\b(?!:)")  # and not a parameter of this name


class Function(NamedTuple):
    """A function of a stub: its parameters and its result, in types where A is the kind of array."""

    name: str
    parameters: tuple[str, ...]
    result: str

    @property
    def text(self) -> str:
        """The declaration in as few lines as hold it."""
        line = f"def {self.name}({', '.join(self.parameters)}) -> {self.result}: ..."
        if len(line) <= WIDTH:
            return line
        lines = [""]
        for parameter in self.parameters:
            if len(lines[-1]) + len(parameter) + 6 > WIDTH:
                lines.append("")
            lines[-1] += f" {parameter},"
        return "\n".join([f"def {self.name}(", *(f"   {each}" for each in lines), f") -> {self.result}: ..."])

    def with_arrays(self, passed: str, returned: str) -> Function:
        """The function for one kind of array."""
        # nothing is written into a sequence
        written = "NDArray[Any]" if passed.startswith("ArrayLike") else passed.partition(" | ")[0]
        parameters = tuple(
            _ARRAY.sub(written if each.startswith("out:") else passed, each) for each in self.parameters
        )
        return Function(self.name, parameters, _ARRAY.sub(returned, self.result))


def routine_of(module: str, name: str) -> str:
    """The routine that a name of SciPy's is of: 'gemm' of 'dgemm'."""
    if module not in ("blas", "lapack") or name.startswith("get_"):
        return name
    return _LETTERS.sub("", name)


def type_of(module: str, name: str, parameter: inspect.Parameter) -> str:
    """The type of a parameter in a stub."""
    routine = routine_of(module, name)
    annotation = inspect.formatannotation(parameter.annotation).strip("'").replace("typing.", "")
    given = _BY_FUNCTION.get((module, routine, parameter.name)) or _BY_NAME.get(parameter.name)
    if given is None and annotation == "Array":
        given = "A"
    if given is None and _INTEGERS.fullmatch(parameter.name):
        given = "int" if parameter.default is not None else "int | None"
    if given is None and parameter.name.startswith(("overwrite_", "clean")):
        given = "Switch"
    if given is None:
        given = {"Flag": "Switch", "Stream": "Stream | None"}.get(annotation, annotation)
        given = re.sub(r"\bArray\b", "A", given)
    if given == "A" and parameter.default is None:
        given = "A | None"
    if given.endswith("Flag") and module != "__init__":  # SciPy's are ints
        given += " | Switch"
    return given


def parameters_of(module: str, name: str, signature: inspect.Signature) -> Iterator[str]:
    """The parameters as a stub writes them."""
    kinds = [each.kind for each in signature.parameters.values()]
    for number, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.kind not in kinds[:number]:
            yield "*"
        default = "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"
        yield f"{parameter.name}: {type_of(module, name, parameter)}{default}".replace("'", '"')
        is_last = kinds[number + 1 : number + 2] != [inspect.Parameter.POSITIONAL_ONLY]
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and is_last:
            yield "/"


def function_of(module: str, name: str, value: Any) -> Function:
    """The function as its signature at run time has it."""
    signature = inspect.signature(value)
    parameters = tuple(parameters_of(module, name, signature))
    annotation = inspect.formatannotation(signature.return_annotation).strip("'")
    result = _RESULTS.get((module, name), re.sub(r"\bArray\b", "A", annotation))
    if routine_of(module, name) in _SCALARS:
        result = "Any"
    elif signature.return_annotation is Any:  # functions that a factory makes
        result = "A" if any(": A" in each for each in parameters) else "Any"
    return Function(name, parameters, result)


def overloads(module: str, function: Function) -> list[Function]:
    """The declarations of a function, one for each kind of result."""
    if not any(_ARRAY.search(each) for each in function.parameters) or function.name.startswith("plan_"):
        declared = function.with_arrays("Array", "Any")
        return _special(declared) or [declared]
    like = "ArrayLike | complex" if (module, function.name) in _TAKING_NUMBERS else "ArrayLike"
    if not _ARRAY.search(function.result):
        return [function.with_arrays(f"Array | {like}", "Any")]
    of_library, of_sequences = (
        function.with_arrays("ArrayT", "ArrayT"),
        function.with_arrays(like, "NDArray[Any]"),
    )
    return [each for one in (of_library, of_sequences) for each in _special(one) or [one]]


def _special(function: Function) -> list[Function]:
    """Declarations of a function whose result goes by one of its arguments."""
    array = function.result.removeprefix("tuple[").removesuffix(", ...]")
    return [
        function._replace(
            parameters=tuple(after if each.startswith(before) else each for each in function.parameters),
            result=_ARRAY.sub(array, result),
        )
        for name, before, after, result in _BY_ARGUMENT
        if name == function.name
        or (not name and any(each.startswith(before) for each in function.parameters))
    ]


#: A function, or any, a parameter, how the parameter is declared for one kind of result, and the result.
_BY_ARGUMENT = (
    ("", "blocking:", "blocking: Literal[True] = True", "A"),
    ("", "blocking:", "blocking: Literal[False]", "Handle[A]"),
    ("", "blocking:", "blocking: bool", "A | Handle[A]"),
    ("show_config", "mode:", 'mode: Literal["stdout"] = "stdout"', "None"),
    ("show_config", "mode:", 'mode: Literal["dicts"]', "dict[str, Any]"),
    ("lu", "permute_l:", "permute_l: Literal[False, 0] = False", "tuple[A, A, A]"),
    ("lu", "permute_l:", "permute_l: Literal[True, 1]", "tuple[A, A]"),
)


def declarations(module: str, functions: dict[str, Any]) -> Iterator[str]:
    """The declarations of all functions; a function like another of the same routine is its other name."""
    written: dict[tuple[Any, ...], str] = {}
    # names without a letter come first, and those with one are their other names
    for name, value in sorted(functions.items(), key=lambda item: item[0] != routine_of(module, item[0])):
        function = function_of(module, name, value)
        key = (routine_of(module, name), *function[1:])
        if key in written:
            yield f"{name} = {written[key]}"
            continue
        written[key] = name
        several = overloads(module, function)
        for each in several:
            yield f"@overload\n{each.text}" if len(several) > 1 else each.text


def stub(name: str) -> str:
    """The text of a module's stub."""
    module = import_module("pyblasgpu" if name == "__init__" else f"pyblasgpu.{name}")
    functions = {each: getattr(module, each) for each in module.__all__ if callable(getattr(module, each))}
    classes = {each: functions.pop(each) for each in list(functions) if inspect.isclass(functions[each])}
    body = "\n".join(declarations(name, functions))
    return "\n".join([*_head(name, module, body, classes), body, ""])


#: The module of each class that functions return.
_RETURNED = {
    "CupyPatch": "cupy_patch.switch",
    "BackendStatus": "frontend.backend_status",
    "Handle": "frontend.handle",
    "Plan": "frontend.calls.plan",
    "ScipyPatch": "scipy_patch.switch",
    "Setting": "settings",
    "SlogdetResult": "api.linalg.determinant",
    "TorchPatch": "torch_patch.switch",
}


def _head(name: str, module: ModuleType, body: str, classes: dict[str, type]) -> Iterator[str]:
    """What is before the functions: imports of what they name, and the list of public names."""
    yield f'"""Types of `{module.__name__}`, written by tools/make_stubs.py."""\n'
    yield "# fmt: off"
    yield "# ruff: noqa\n"

    def named(words: list[str]) -> list[str]:
        return [word for word in words if re.search(rf"\b{word}\b", body)]

    for home, words in {
        "collections.abc": ["Callable", "Mapping", "Sequence"],
        "typing": ["Any", "Literal", "overload"],
        "numpy.typing": ["NDArray"],
    }.items():
        if named(words):
            yield f"from {home} import {', '.join(named(words))}"
    if named(["np"]):
        yield "import numpy as np"
    yield ""
    for each in sorted((*getattr(module, "_MODULES", ()), *getattr(module, "_OPTIONAL", ()))):
        yield f"from . import {each} as {each}"
    for each, value in classes.items():
        yield f"from {value.__module__.replace('pyblasgpu', '', 1)} import {each} as {each}"
    for each, home in _RETURNED.items():
        if each not in classes and named([each]):
            yield f"from .{home} import {each}"
    types = named(import_module("pyblasgpu.typing").__all__)
    yield from textwrap.wrap(f"from .typing import ({', '.join(types)})", WIDTH, subsequent_indent="    ")
    yield ""
    if name == "__init__":
        yield "__version__: str"
    names = ", ".join(f'"{each}"' for each in module.__all__)
    yield from textwrap.wrap(f"__all__ = [{names}]", WIDTH, subsequent_indent="    ")
    yield ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/make_stubs.py", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a stub is old")
    options = parser.parse_args()
    stale = []
    for name in MODULES:
        path, text = PACKAGE / f"{name}.pyi", stub(name)
        if not path.exists() or path.read_text() != text:
            stale.append(path.name)
            if not options.check:
                path.write_text(text)
    if stale:
        print(f"{'old' if options.check else 'written'}: {', '.join(stale)}")
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
