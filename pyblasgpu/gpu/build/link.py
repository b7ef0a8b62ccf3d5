"""The last step of a compilation: the linker, and what its log says of a kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...errors import PyblasgpuError

__all__ = [
    "CompileError",
    "Resources",
    "architecture",
    "link_ltoir",
    "link_ptx",
    "parse_link_log",
]


class CompileError(PyblasgpuError):
    """The compiler refused a kernel."""


@dataclass(frozen=True)
class Resources:
    """The linker's report. Bytes a thread: stack, spills; bytes a block: static shared memory.

    From sm_90 on the last includes what the system reserves; the kernels here have no static part.
    """

    registers: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    shared_bytes: int


def architecture(cc: tuple[int, int]) -> str:
    """The linker's name of a compute capability; from 9.0 on with its architecture-specific part."""
    return f"sm_{cc[0]}{cc[1]}{'a' if cc >= (9, 0) else ''}"


def link_ptx(ptx: str, cc: tuple[int, int]) -> tuple[bytes, str]:
    """Machine code of `ptx` for `cc`, and the log of ptxas."""
    from cuda.core import ObjectCode

    return _linked(ObjectCode.from_ptx(ptx.encode()), cc)


def link_ltoir(code: bytes, cc: tuple[int, int]) -> tuple[bytes, str]:
    """Link the linker's own intermediate code, as a whole program; return the cubin and the log."""
    from cuda.core import ObjectCode

    return _linked(ObjectCode.from_ltoir(code), cc, link_time_optimization=True)


def _linked(code: Any, cc: tuple[int, int], **options: Any) -> tuple[bytes, str]:
    from cuda.core import Linker, LinkerOptions

    asked = LinkerOptions(arch=architecture(cc), ptxas_options=["-v"], verbose=True, **options)
    try:
        linker = Linker(code, options=asked)
        cubin = linker.link("cubin")
    except Exception as error:  # cuda.core raises nvJitLink's own, with its log
        raise CompileError(f"the linker refuses the kernel: {error}") from error
    return bytes(cubin.code), linker.get_info_log()


def parse_link_log(log: str) -> Resources:
    """The resources that the log of `link_ptx` names."""

    def number(pattern: str) -> int:
        match = re.search(pattern, log)
        return int(match.group(1)) if match else 0

    return Resources(
        registers=number(r"[Uu]sed (\d+) registers"),
        stack_bytes=number(r"(\d+) bytes stack frame"),
        spill_stores=number(r"(\d+) bytes spill stores"),
        spill_loads=number(r"(\d+) bytes spill loads"),
        shared_bytes=number(r"(\d+) bytes smem"),
    )
