"""All that is public: what modules export, what their functions return, methods and properties."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from importlib.util import find_spec
from types import FunctionType
from typing import Any

import pytest

import pyblasgpu
from pyblasgpu import blas, errors, lapack, linalg
from pyblasgpu.api.linalg.determinant import SlogdetResult
from pyblasgpu.cupy_patch.switch import CupyPatch
from pyblasgpu.frontend.backend_status import BackendStatus
from pyblasgpu.frontend.calls.plan import Plan
from pyblasgpu.patches.patch import Patch
from pyblasgpu.scipy_patch.switch import ScipyPatch
from pyblasgpu.settings import Setting
from pyblasgpu.torch_patch.switch import TorchPatch

MODULES = (pyblasgpu, blas, lapack, linalg, errors, *([pyblasgpu.dask] if find_spec("dask") else []))
#: Classes that public functions return, and no module exports.
RETURNED = (Plan, Patch, ScipyPatch, TorchPatch, CupyPatch, Setting, BackendStatus, SlogdetResult)

#: Classes whose signature is not for users: this package makes them, or it is that of exceptions.
UNSIGNED = {Plan, Patch, ScipyPatch, TorchPatch, CupyPatch, Setting}
UNSIGNED |= {each for each in vars(errors).values() if inspect.isclass(each) and "__init__" not in vars(each)}


def members(qualified: str, value) -> Iterator[tuple[str, object]]:
    """A public object; of a class its methods and properties too."""
    yield qualified, value
    if inspect.isclass(value):
        for name, member in vars(value).items():
            is_public = not name.startswith("_") or name == "__call__"
            if is_public and isinstance(member, FunctionType | property):
                yield f"{qualified}.{name}", member


def signature_of(value: Any) -> inspect.Signature:
    """The signature without the object of a method; of a property it is that of its function."""
    if value in UNSIGNED:
        return inspect.Signature()
    function: Any = value.fget if isinstance(value, property) else value
    signature = inspect.signature(function)
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    return signature.replace(parameters=parameters)


def public_objects() -> Iterator[tuple[str, object]]:
    for module in MODULES:
        for name in module.__all__:
            if callable(getattr(module, name)):
                yield from members(f"{module.__name__}.{name}", getattr(module, name))
    for value in RETURNED:
        yield from members(f"{value.__module__}.{value.__name__}", value)


PUBLIC = dict(public_objects())


def failures_of_examples(name: str, gpu: bool) -> str:
    """Run the examples of a docstring; those that are skipped where there is no GPU too if `gpu`."""
    if ">>> import torch" in (inspect.getdoc(PUBLIC[name]) or ""):
        pytest.importorskip("torch")
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(PUBLIC[name]) or "", {}, name, None, None)
    for example in examples.examples if gpu else []:
        example.options.pop(doctest.SKIP, None)
    output: list[str] = []
    doctest.DocTestRunner().run(examples, out=output.append)
    return "".join(output)
