"""Translate a kernel: Numba makes PTX or the linker's intermediate code, the linker makes a cubin."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .. import backend
from ..garbage import uncollected
from .link import CompileError, link_ltoir, link_ptx

if TYPE_CHECKING:
    from .compile import KernelSource

__all__ = ["machine_code", "to_ptx"]


def machine_code(source: KernelSource, cc: tuple[int, int]) -> tuple[bytes, str, str]:
    """Return the cubin of `source`, the name of its entry and the linker's log."""
    backend.require()
    if source.whole_program:
        cubin, log = link_ltoir(_translated(source, cc, "ltoir"), cc)
        code = re.search(rb"\.text\.([^\0]+)\0", cubin)
        assert code, "a cubin has the code of its kernel"
        return cubin, code.group(1).decode(), log
    ptx = to_ptx(source, cc)
    cubin, log = link_ptx(ptx, cc)
    entry = re.search(r"\.entry\s+([^\s(]+)\(", ptx)
    assert entry, "PTX of a kernel has an entry"
    return cubin, entry.group(1), log


def to_ptx(source: KernelSource, cc: tuple[int, int]) -> str:
    """Return the PTX of `source`."""
    ptx = _translated(source, cc, "ptx")
    return ptx if isinstance(ptx, str) else ptx.decode()


def _translated(source: KernelSource, cc: tuple[int, int], output: str) -> Any:
    """Return what Numba makes of `source`: 'ptx', or 'ltoir', the linker's own intermediate code."""
    types = backend.ptx.types
    pointer_type = backend.ptx.pointer_type
    meaning = {
        "p": pointer_type(source.real),
        "w": pointer_type("int32"),
        "i": types.int32,
        "q": types.int64,
        "r": backend.ptx.REALS[source.real],
    }
    signature = tuple(meaning[code] for code in source.parameters)
    target = (*cc, "a") if cc >= (9, 0) else cc
    bounds = (source.threads, source.min_blocks)
    from ..intrinsics.numba_shortcuts import shortened  # it imports Numba

    try:
        # a compilation makes a million objects that live as long as it does
        with uncollected(), shortened():
            code, _ = backend.cuda.compile(
                source.build(),
                signature,
                device=False,
                abi="numba",
                cc=target,
                launch_bounds=bounds,
                output=output,
            )
    except Exception as error:
        raise CompileError(f"{source.name}: Numba cannot compile {source.config}: {error}") from error
    return code
