"""Plant a defect in a kernel's text, and assert that a check of the kernel catches it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from pyblasgpu import kernels
from pyblasgpu.gpu import launch
from pyblasgpu.gpu.simulator.intrinsics import SimulatorError
from pyblasgpu.kernels.registry import family_of

from .kernel_checks import Check

#: What kernels have in common, each after what it is built from.
SHARED = (
    "common.smem_tile",
    "common.packed_tile",
    "common.tile_iterators",
    "common.tile_loaders",
    "common.coalesced_index",
    "common.triangle_panel",
    "common.substitution",
    "common.tile_scheduler",
    "common.region",
    "copy.copy_scaled_kernel",
    "gemm.config",
    "gemm.fused",
    "gemm.product",
    "gemm.epilogue",
    "gemm.load_stage",
    "gemm.mainloop",
    "gemm.persistent",
    "gemm.trmm_fused",
    "gemm.warp_substitution",
    "gemm.diagonal_solve",
    "gemm.trsm_fused_phases",
    "gemm.trsm_fused",
    "gemm.warpgroups",
    "gemm.wgmma.operand_reader",
    "gemm.wgmma.epilogue",
    "gemm.wgmma.tiles",
    "gemm.wgmma.triangular_factor",
    "gemm.int8.pipeline",
    "gemm.int8.epilogue",
    "gemm.source",
    "trsm.config",
    "trsm.load_triangle",
    "trsm.body",
    "trsv.config",
    "trsv.sums",
    "trsv.diagonal",
    "level1.config",
    "level1.elements",
    "level1.operations",
    "factor.leaf_config",
    "factor.inverse_root",
    "factor.triangle_copy",
    "factor.cholesky_update_mma",
    "factor.cholesky_panel",
    "level2.config",
    "level2.sums",
    "level2.gemv_config",
    "level2.gemv_terms",
    "factor.panel_rows",
    "factor.small_matrices",
    "level2.gemv_sums",
    "factor.pivot_exchange",
    "factor.row_exchange",
    "factor.cluster_exchange",
    "factor.outside_columns",
)
#: Imported when a kernel is built: here, lest that happens while a defect is planted.
for _name in ("copy.copy_scaled_kernel", "gemm.persistent", "gemm.trmm_fused", "gemm.trsm_fused"):
    import_module(f"{kernels.__name__}.{_name}")


def planted(patch: pytest.MonkeyPatch, module: str, before: str, after: str, stem: str) -> ModuleType:
    """The kernel `stem` made anew, with `after` in place of `before` in the text of `module`."""
    assert before in text_of(module), "the text is not there"
    made = None
    for name in (*SHARED[SHARED.index(module) if module in SHARED else len(SHARED) :], module_of(stem)):
        if name != module and f"{kernels.__name__}.{name}" not in sys.modules:
            continue  # the kernel does without it
        text = text_of(name)
        made = executed(name, text.replace(before, after) if name == module else text)
        patch.setitem(sys.modules, f"{kernels.__name__}.{name}", made)
    return made


@cache
def module_of(stem: str) -> str:
    """The module of the kernel, relative to `kernels`."""
    return family_of(stem).module.__name__.removeprefix(f"{kernels.__name__}.")


def text_of(module: str) -> str:
    return (Path(kernels.__path__[0]) / f"{module.replace('.', '/')}.py").read_text()


def executed(module: str, text: str) -> ModuleType:
    made = ModuleType(f"{kernels.__name__}.{module}")
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
