"""A kernel as text: the Python that its factory made of a Config, its PTX, its SASS."""

from __future__ import annotations

import dis
import inspect
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from ...errors import BackendUnavailable
from .. import backend
from .compile import KernelSource, compile_source, require_compiler
from .translate import to_ptx

__all__ = ["ptx_text", "python_text", "sass_text"]

_PACKAGE = Path(__file__).parents[2]


def python_text(source: KernelSource) -> str:
    """The kernel's function and all device functions within it, each with what its factory gave it.

    Parameters
    ----------
    source : KernelSource

    Returns
    -------
    str
        The functions as written in the files, the kernel first. Before each are the values that it sees:
        constants as assignments, functions by number. What is written as LLVM or PTX is named.

    Raises
    ------
    BackendUnavailable
        Where Numba cannot be imported.
    """
    require_compiler()
    return _header(source, "#") + "\n" + "\n\n".join(_sections(source.build()))


def ptx_text(source: KernelSource, cc: tuple[int, int]) -> str:
    """The kernel's PTX for a compute capability; errors as of `compile_source`.

    Raises
    ------
    BackendUnavailable
        Where Numba cannot be imported, or simulates.
    """
    require_compiler()
    if backend.SIMULATED:
        raise BackendUnavailable("no PTX in a process of Numba's simulator")
    return _header(source, "//") + to_ptx(source, cc)


def sass_text(source: KernelSource, cc: tuple[int, int]) -> str:
    """The kernel's machine instructions, by nvdisasm; errors as of `compile_source`.

    Raises
    ------
    BackendUnavailable
        Where nvdisasm is not installed, or refuses the kernel.
    """
    program = _nvdisasm()
    if program is None:
        raise BackendUnavailable("SASS is written by nvdisasm, which is not here; the CUDA toolkit has it")
    cubin = compile_source(source, cc).cubin
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        done = subprocess.run([program, "-c", str(file)], capture_output=True, text=True)
    if done.returncode:
        raise BackendUnavailable(f"nvdisasm refuses {source.name}: {' '.join(done.stderr.split())}")
    return _header(source, "//") + done.stdout


def _nvdisasm() -> str | None:
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        return None
    path: str | None = find_nvidia_binary_utility("nvdisasm")
    return path


def _header(source: KernelSource, comment: str) -> str:
    config = ", ".join(f"{f.name}={getattr(source.config, f.name)!r}" for f in fields(source.config))
    flags = ", ".join(f"{name}={value}" for name, value in source.flags) or "no flags"
    block = f"{source.threads} threads, {source.shared_bytes} bytes of shared memory"
    lines = [f"{source.name}: {config}", flags, block]
    return textwrap.indent("\n".join(textwrap.fill(line, 100) for line in lines), f"{comment} ") + "\n"


def _sections(kernel: Callable) -> Iterator[str]:
    """The text of each function once, those that a function calls after it."""
    numbers: dict[Any, int] = {}
    waiting = [kernel]
    while waiting:
        function = waiting.pop(0)
        lines = []
        for name, value in _seen_by(function):
            inner = _function_of(value)
            if inner is None:
                lines.append(f"{name} = {_value_text(value)}")
                continue
            if inner not in numbers:
                numbers[inner] = len(numbers) + 1
                waiting.append(inner)
            lines.append(f"{name} = function {numbers[inner]}: {inner.__qualname__.split('.')[-1]}")
        values = "".join(f"#   {line}\n" for line in lines)
        number = numbers.get(function)
        title = "the kernel" if number is None else f"function {number}"
        yield f"# {title}, {_origin(function)}\n{values}{_text(function)}"


def _seen_by(function: Callable) -> list[tuple[str, Any]]:
    """The names that a function takes from its factory, with their values."""
    code = function.__code__
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    seen = list(zip(code.co_freevars, cells, strict=True))
    if _is_generated(function):
        seen += [(name, function.__globals__[name]) for name in code.co_names if name in function.__globals__]
    return seen


def _function_of(value: Any) -> Any:
    """The Python function of a device function; None for anything else."""
    if inspect.isfunction(value):
        return value
    return getattr(value, "py_func", None)


def _value_text(value: Any) -> str:
    name = getattr(value, "__qualname__", "")
    return f"intrinsic {name.split('.')[0]}" if name and callable(value) else repr(value)


def _is_generated(function: Callable) -> bool:
    """Whether it was made by `backend.unrolled` or `in_order`, and so is in no file."""
    return function.__code__.co_filename == "<string>"


def _origin(function: Callable) -> str:
    if _is_generated(function):
        return "made by the factory"
    code = function.__code__
    path, above = Path(code.co_filename), _PACKAGE.parent
    shown = path.relative_to(above) if path.is_relative_to(above) else path  # a kernel of the user's own
    return f"{shown}:{code.co_firstlineno}"


def _text(function: Callable) -> str:
    if not _is_generated(function):
        return textwrap.dedent(inspect.getsource(function)).removeprefix("@device_function\n")
    calls = sum(each.opname.startswith("CALL") for each in dis.get_instructions(function))
    return f"#   {calls} calls, one after the other\n"
