"""Plant a defect in a kernel's text, and assert that a check of the kernel catches it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType

import pytest
from import_graph import imported_modules

from pyblasgpu import kernels
from pyblasgpu.gpu import launch
from pyblasgpu.gpu.simulator.intrinsics import SimulatorError
from pyblasgpu.kernels.registry import family_of

from .kernel_checks import Check

PREFIX = f"{kernels.__name__}."
#: Modules that another one imports by their names, to build a kernel.
BY_NAME = {"gemm.source": ("gemm.mainloop", "gemm.persistent", "gemm.trmm_fused", "gemm.trsm_fused")}
#: Imported when a kernel is built: here, lest that happens while a defect is planted.
for _name in ("copy.copy_scaled_kernel", *BY_NAME["gemm.source"]):
    import_module(PREFIX + _name)


def planted(patch: pytest.MonkeyPatch, module: str, before: str, after: str, stem: str) -> ModuleType:
    """The kernel `stem` made anew, with `after` in place of `before` in the text of `module`."""
    assert before in text_of(module), "the text is not there"
    made = None
    for name in made_of(module, module_of(stem)):
        if name != module and PREFIX + name not in sys.modules:
            continue  # the kernel does without it
        text = text_of(name)
        made = executed(name, text.replace(before, after) if name == module else text)
        patch.setitem(sys.modules, PREFIX + name, made)
    assert made
    return made


@cache
def made_of(module: str, kernel: str) -> tuple[str, ...]:
    """The modules of `kernel` that import `module`, also through others, each after those that it imports."""
    has_it: dict[str, bool] = {}

    def visit(name: str) -> bool:
        if name not in has_it:
            has_it[name] = name == module  # while it is visited
            found = [visit(each) for each in sorted(parts_of(name))]
            del has_it[name]
            has_it[name] = name == module or any(found)
        return has_it[name]

    assert visit(kernel), f"{kernel} is not made of {module}"
    return tuple(name for name, has in has_it.items() if has)


@cache
def parts_of(name: str) -> frozenset[str]:
    """The modules of kernels that one imports; families only name theirs."""
    imported = (
        each.removeprefix(PREFIX) for each in imported_modules(PREFIX + name) if each.startswith(PREFIX)
    )
    found = (*imported, *BY_NAME.get(name, ()))
    return frozenset(each for each in found if path_of(each).exists() and each not in (name, "registry"))


def path_of(module: str) -> Path:
    return Path(kernels.__path__[0]) / f"{module.replace('.', '/')}.py"


@cache
def module_of(stem: str) -> str:
    """The module of the kernel, relative to `kernels`."""
    return family_of(stem).module.__name__.removeprefix(PREFIX)


def text_of(module: str) -> str:
    return path_of(module).read_text()


def executed(module: str, text: str) -> ModuleType:
    made = ModuleType(PREFIX + module)
    made.__package__ = made.__name__.rpartition(".")[0]
    exec(code_of(module, text), vars(made))
    return made


@cache
def code_of(module: str, text: str) -> CodeType:
    return compile(text, f"planted {module}", "exec")


#: The checks that a kernel without a defect has passed.
passed: set[Check] = set()


def parameters(defects: Iterable[tuple]) -> list:
    """A test's parameters for each defect, by number and module."""
    return [pytest.param(*defect, id=f"{number}-{defect[0]}") for number, defect in enumerate(defects)]


def assert_caught(module: str, before: str, after: str, check: Check, patch: pytest.MonkeyPatch) -> None:
    """`check` passes the sound kernel and fails with `after` in place of `before`."""
    patch.setattr(launch, "loaded_kernels", {})  # equal sources share a kernel
    if check not in passed:
        check.run(planted(patch, module, before, before, check.stem))
        passed.add(check)
        launch.loaded_kernels.clear()
    defective = planted(patch, module, before, after, check.stem)
    with pytest.raises((AssertionError, IndexError, SimulatorError)):
        check.run(defective)
