"""Typed parameters of a kernel, in their order."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Parameters", "parameters"]

#: Code of a type, as `KernelSource` has it.
CODES = {"pointer": "p", "int32 pointer": "w", "int32": "i", "int64": "q", "real": "r"}


class Parameters(NamedTuple):
    """Names of a kernel's parameters, and a code each for their types."""

    names: tuple[str, ...]
    codes: str


def parameters(*declarations: str) -> Parameters:
    """Return the parameters that are declared, ``"type: name, ..."`` each; `CODES` has the types."""
    listed = [declaration.split(": ") for declaration in declarations]
    typed = [(name, CODES[kind]) for kind, names in listed for name in names.split(", ")]
    return Parameters(tuple(name for name, _ in typed), "".join(code for _, code in typed))
