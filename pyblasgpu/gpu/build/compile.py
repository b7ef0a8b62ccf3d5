"""Compilation of a kernel's source to a cubin with its resource report, kept on disk.

Numba makes PTX, cuda.core's linker makes the cubin, and its log says what a thread and a block need; no
device takes part. A kernel that was built ahead, or by an earlier process, is read, and Numba not imported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from ...errors import BackendUnavailable, lacking
from .. import backend
from .archive import Archive, Record, archives
from .kernel_digest import digest_of, digest_of_all
from .link import CompileError, Resources, architecture, parse_link_log

__all__ = [
    "CompileError",
    "Compiled",
    "KernelSource",
    "WHOLE_ROWS",
    "Resources",
    "architecture",
    "archive_key",
    "archives_for",
    "compile_here",
    "compile_source",
    "compiled_from",
    "in_memory",
    "is_built_ahead",
    "kept",
    "kept_here",
    "kernels_at_hand",
    "parse_link_log",
    "record_of",
    "remember",
    "require_compiler",
    "seconds_of",
    "store_key",
    "toolchain",
    "versions",
]

#: A cluster of all blocks along x, however many a launch has.
WHOLE_ROWS = 0


@dataclass(frozen=True)
class KernelSource:
    """Everything that decides a kernel's machine code, and how to build its Python function.

    Attributes
    ----------
    name : str
        Stem of the kernel family.
    config : object
        Its frozen Config.
    flags : tuple of (str, value)
        Facts that specialise it besides the Config.
    real : str
        'float32' or 'float64', the type behind its pointers.
    parameters : str
        A code a parameter: p pointer to reals, w pointer to int32, i int32, q int64, r real.
    threads, min_blocks : int
        Launch bounds.
    shared_bytes : int
        Dynamic shared memory of a block.
    build : callable
        Returns the kernel function.
    reads_before_wait : tuple of int
        Pointers whose memory it reads before `ptx.grid_dependency_wait`: the launch right before it may not
        write there.
    cooperative : bool
        Its blocks wait for one another in any order, so all of a grid must be resident: it is launched so.
    cluster : int
        Blocks that are launched together and reach one another's shared memory; they divide a grid's x.
        `WHOLE_ROWS`: all blocks along x, at most 16.
    whole_program : bool
        Whether it is linked as a whole program, which takes longer: else `ptx.set_max_registers` is ignored.
    parts : tuple of str
        Modules that `build` imports by their names, of several for different kernels.
    """

    name: str
    config: Any
    flags: tuple
    real: str
    parameters: str
    threads: int
    min_blocks: int
    shared_bytes: int
    build: Callable[[], Callable] = field(compare=False, repr=False)
    reads_before_wait: tuple[int, ...] = field(default=(), compare=False, repr=False)
    cooperative: bool = field(default=False, compare=False, repr=False)
    cluster: int = field(default=1, compare=False, repr=False)
    whole_program: bool = field(default=False, compare=False, repr=False)
    parts: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, config: Any, parameters: Any, build: Callable[[], Callable], **others: Any) -> KernelSource:
        """The kernel of a Config; `parameters` have ``codes``, `others` override what the Config has."""
        known = {
            "flags": (),
            "real": config.dtype_facts.real,
            "parameters": parameters.codes,
            "threads": config.threads,
            "min_blocks": config.min_blocks,
            "shared_bytes": config.shared_bytes,
        }
        return cls(config.STEM, config, build=build, **{**known, **others})

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of the function that builds the kernel, of its Config, and its parts."""
        build: Any = self.build
        return getattr(build, "func", build).__module__, type(self.config).__module__, *self.parts


@dataclass(frozen=True)
class Compiled:
    """Machine code of one kernel for one architecture; `archive`: where it was built ahead."""

    cubin: bytes
    entry: str
    resources: Resources
    archive: Archive | None = field(default=None, compare=False, repr=False)


#: Seconds of one core for a kernel, on average over the kernels of an architecture.
_SECONDS_A_KERNEL = 7.0


def seconds_of(kernels: int, processes: int) -> float:
    """Estimate the time in which processes, each on a core of its own, compile a number of kernels."""
    return -(-kernels // processes) * _SECONDS_A_KERNEL


#: Machine code that this process has read or compiled.
in_memory: dict[tuple[KernelSource, tuple[int, int]], Compiled] = {}


def require_compiler() -> None:
    """Raise `BackendUnavailable` where kernels cannot be built."""
    if not backend.SIMULATED and find_spec("numba_cuda") is None:  # the `numba.cuda` of Numba itself is older
        missing = ModuleNotFoundError("No module named 'numba_cuda'")
        raise BackendUnavailable(f"kernels cannot be built here: {lacking(missing, 'cu13', 'cu12')}")
    backend.require()


def compile_source(source: KernelSource, cc: tuple[int, int]) -> Compiled:
    """The machine code of `source` for compute capability `cc`: kept, or from the compiler.

    Raises
    ------
    CompileError
        With the compiler's log.
    """
    compiled = kept(source, cc)
    if compiled is None:
        compiled = in_memory[source, cc] = compile_here(source, cc)
    return compiled


def remember(source: KernelSource, cc: tuple[int, int], compiled: Compiled) -> None:
    """Have this process know what another has compiled."""
    in_memory[source, cc] = compiled


def compile_here(source: KernelSource, cc: tuple[int, int]) -> Compiled:
    """Compile a kernel with the toolchain installed here, or take it from the store of cubins."""
    compiled = kept_here(source, cc)
    if compiled is None:
        compiled = compile_kernel(source, cc)
        facts = {"entry": compiled.entry, "resources": asdict(compiled.resources)}
        _store().put(store_key(source, cc), facts, compiled.cubin)
    return compiled


def kept(source: KernelSource, cc: tuple[int, int]) -> Compiled | None:
    """Return a compiled kernel from memory, an archive or the store of cubins; None where none has it."""
    compiled = in_memory.get((source, cc))
    if compiled is not None and (compiled.archive is None or not compiled.archive.refused):
        return compiled
    compiled = _from_archives(source, cc) or kept_here(source, cc)
    if compiled is not None:
        in_memory[source, cc] = compiled
    return compiled


def kernels_at_hand(cc: tuple[int, int]) -> bool:
    """Whether some kernels are built already, so that a call may do without a compiler."""
    return bool(archives_for(cc)) or not _store().is_empty()


def archives_for(cc: tuple[int, int]) -> tuple[Archive, ...]:
    """The archives that serve a compute capability; see `archive.archives`."""
    return archives(architecture(cc), digest_of_all())


def is_built_ahead(source: KernelSource, cc: tuple[int, int]) -> bool:
    """Whether an archive has it."""
    fitting = archives_for(cc)
    return bool(fitting) and any(archive_key(source, cc) in archive for archive in fitting)


def _from_archives(source: KernelSource, cc: tuple[int, int]) -> Compiled | None:
    fitting = archives_for(cc)
    key = archive_key(source, cc) if fitting else ""
    for archive in fitting:
        record = archive.get(key)
        if record is not None:
            return compiled_from(record.facts, record.cubin, archive)
    return None


def kept_here(source: KernelSource, cc: tuple[int, int]) -> Compiled | None:
    """The machine code where the store of cubins has it."""
    record = _store().get(store_key(source, cc))
    return None if record is None else compiled_from(*record)


def _store() -> Any:
    """The store of cubins; it is loaded when no archive has a kernel."""
    from .kernel_store import CubinStore

    return CubinStore.default()


def compiled_from(facts: Mapping[str, Any], cubin: bytes, archive: Archive | None = None) -> Compiled:
    """Return a compiled kernel from its record in an archive or the store of cubins."""
    return Compiled(cubin, facts["entry"], Resources(**facts["resources"]), archive)


def record_of(source: KernelSource, compiled: Compiled) -> Record:
    """Return a kernel's record for an archive."""
    resources = asdict(compiled.resources)
    return Record({"kernel": _facts(source), "entry": compiled.entry, "resources": resources}, compiled.cubin)


def compile_kernel(source: KernelSource, cc: tuple[int, int]) -> Compiled:
    """Compile `source` in this process, whatever is stored."""
    from .translate import machine_code

    cubin, entry, log = machine_code(source, cc)
    return Compiled(cubin, entry, parse_link_log(log))


def archive_key(source: KernelSource, cc: tuple[int, int]) -> str:
    """Return the digest of all that decides a kernel but the toolchain, which an archive names itself."""
    return _digest({"kernel": _facts(source), "cc": architecture(cc), "text": digest_of(*source.modules)})


def store_key(source: KernelSource, cc: tuple[int, int]) -> str:
    """Digest of all that the machine code depends on."""
    return _digest({"archive": archive_key(source, cc), "versions": versions()})


def _digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _facts(source: KernelSource) -> dict[str, Any]:
    """Return the facts that specialise a kernel, as JSON that is equal in every process."""
    config = {f.name: _plain(getattr(source.config, f.name)) for f in fields(source.config)}
    return {
        "family": source.name,
        "dtype": source.config.dtype,
        "config": config,
        "flags": {name: _plain(value) for name, value in source.flags},
        "real": source.real,
        "parameters": source.parameters,
        "threads": source.threads,
        "min_blocks": source.min_blocks,
        "shared_bytes": source.shared_bytes,
    }


def _plain(value: Any) -> Any:
    return value.name if isinstance(value, Enum) else value


def toolchain() -> str:
    """Return the versions that timings depend on: the translators', and the digest of all kernels."""
    releases = versions()
    named = ", ".join(f"{name} {releases[name]}" for name in ("numba-cuda", "nvidia-nvjitlink"))
    return f"{named}, kernels {digest_of_all()[:12]}"


#: Packages, with the names that they have for CUDA 12.
_TRANSLATORS = (
    ("numba",),
    ("numba-cuda",),
    ("llvmlite",),
    ("cuda-core",),
    ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12"),
    ("nvidia-nvvm", "nvidia-cuda-nvcc-cu12"),
    ("cuda-toolkit",),
)


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of what translates a kernel."""
    from importlib import metadata  # which takes longer to import than a kernel to load

    releases = {}
    for name, *others in _TRANSLATORS:
        releases[name] = "absent"
        for package in (name, *others):
            with suppress(metadata.PackageNotFoundError):
                releases[name] = metadata.version(package)
                break
    return releases
