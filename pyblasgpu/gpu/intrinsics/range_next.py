"""The next number of a ``for`` loop over a constant range, on compute capability 10.0 and later.

Numba counts down only where numbers are left: a branch in the header of each loop, whose values meet again
before the exit. The LLVM that NVVM has for these devices moves address computations into the branch. It then
finds no count of the loop, leaves it rolled, and puts arrays that it indexes into local memory. Counting
without the branch does no harm: no loop fetches again once none is left. Loops that end at a variable keep
the branch: without it LLVM keeps an address a load in registers from step to step, and they spill.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

__all__ = ["counting_without_branch"]

_LABEL = re.compile(r"^(B\d+)(.*):\n", re.M)
# the end of a range goes into the second field of its structure
_END = re.compile(
    r"""getelementptr inbounds \{(i\d+), \1, \1\}, .* i32 0, i32 1
  store \1 (-?\d+|%"[^"]+"), """
)
# whether numbers are left goes into the second field of the next number's structure, and is branched on
_NEXT = re.compile(
    r"""(  (%"[^"]+") = icmp sgt i\d+ %"[^"]+", 0
  (%"[^"]+") = getelementptr inbounds \{i\d+, i1\}, .* i32 0, i32 1
  store i1 \2, i1\* \3
)  br i1 \2, label (%"[^"]+"), label .*
"""
)
_COUNTING = r"\1  br label \4\n"


def counting_without_branch(compile_ir: Callable[..., Any]) -> Callable[..., Any]:
    """`compile_ir` of numba-cuda, which gives modules in LLVM's language to NVVM."""

    def compile_ranges(modules: list[str], **options: Any) -> Any:
        if _compute_capability(options["arch"]) >= 100:
            modules = ["".join(map(_without_branches, _functions(module))) for module in modules]
        return compile_ir(modules, **options)

    return compile_ranges


def _functions(module: str) -> list[str]:
    return re.split(r"^(?=define )", module, flags=re.M)


def _without_branches(function: str) -> str:
    """A block of the function in Python has a name; what Numba makes of its statements is named after it, and
    may be far behind. The block that makes a range is followed by the loop's header.
    """
    head, *rest = _LABEL.split(function)
    blocks = list(zip(rest[::3], rest[1::3], rest[2::3], strict=True))
    names = [name for name, suffix, _ in blocks if not suffix]
    following = dict(pairwise(names))
    headers = {
        following.get(name)
        for name, _, text in blocks
        for _, end in _END.findall(text)
        if _is_constant(end, function)
    }
    return head + "".join(
        f"{name}{suffix}:\n{_NEXT.sub(_COUNTING, text) if name in headers else text}"
        for name, suffix, text in blocks
    )


def _is_constant(value: str, function: str) -> bool:
    """Whether it is a number, or what an operation makes of two."""
    if not value.startswith("%"):
        return True
    return re.search(rf"^  {re.escape(value)} = \w+ (nsw )?i\d+ -?\d+, -?\d+$", function, re.M) is not None


def _compute_capability(architecture: str) -> int:
    """100 of ``compute_100a``."""
    return int(re.sub(r"\D", "", architecture))
