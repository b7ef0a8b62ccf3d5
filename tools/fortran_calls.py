"""Calls of LAPACK's Fortran routines, answered by the functions of `lapack` and `linalg`.

`ROUTINES` has the arguments of each as LAPACK's documents have them. A row's function gets their values by
these names, and matrices as views of the caller's memory. Queries of workspaces are LAPACK's to answer.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

_EIGEN = "JOBZ UPLO N A LDA W WORK LWORK"
_SOME = "JOBZ RANGE UPLO N A LDA VL VU IL IU ABSTOL M W Z LDZ"
_PAIR = "ITYPE JOBZ UPLO N A LDA B LDB W WORK LWORK"
_SOME_OF_PAIR = "ITYPE JOBZ RANGE UPLO N A LDA B LDB VL VU IL IU ABSTOL M W Z LDZ WORK LWORK"
#: By the names for real and complex matrices: the function of `Functions`, and arguments, of which those in
#: braces are of complex matrices alone.
ROUTINES = {
    "syev heev": ("all_values", f"{_EIGEN} {{RWORK}} INFO"),
    "syevd heevd": ("all_values", f"{_EIGEN} {{RWORK LRWORK}} IWORK LIWORK INFO"),
    "syevr heevr": ("some_values", f"{_SOME} ISUPPZ WORK LWORK {{RWORK LRWORK}} IWORK LIWORK INFO"),
    "syevx heevx": ("some_values", f"{_SOME} WORK LWORK {{RWORK}} IWORK IFAIL INFO"),
    "sygv hegv": ("pair", f"{_PAIR} {{RWORK}} INFO"),
    "sygvd hegvd": ("pair", f"{_PAIR} {{RWORK LRWORK}} IWORK LIWORK INFO"),
    "sygvx hegvx": ("pair", f"{_SOME_OF_PAIR} {{RWORK}} IWORK IFAIL INFO"),
    "sytrd hetrd": ("tridiagonal", "UPLO N A LDA D E TAU WORK LWORK INFO"),
    "gesvd gesvd": ("singular", "JOBU JOBVT M N A LDA S U LDU VT LDVT WORK LWORK {RWORK} INFO"),
    "gesdd gesdd": ("singular", "JOBZ M N A LDA S U LDU VT LDVT WORK LWORK {RWORK} IWORK INFO"),
}
_WORDS = {"JOBZ", "JOBU", "JOBVT", "RANGE", "UPLO"}

_counts: Counter[str] = Counter()
_kept: list[Any] = []


def routines() -> dict[str, tuple[str, list[str]]]:
    """The functions of `Functions` and LAPACK's arguments, by the names of routines with a letter."""
    found = {}
    for names, (function, arguments) in ROUTINES.items():
        for letter in "sdcz":
            of_letter = arguments if letter in "cz" else re.sub(r"\{.*?\}", "", arguments)
            found[letter + names.split()[letter in "cz"]] = function, re.findall(r"\w+", of_letter)
    return found


class Call:
    """Arguments of a call by their names, each an address."""

    def __init__(self, name: str, arguments: list[str], pointers: tuple[int, ...]) -> None:
        self.name, self.at = name, dict(zip(arguments, pointers, strict=True))
        self.dtype = np.dtype(name[0].translate(str.maketrans("sdcz", "fdFD")))
        self.real = self.dtype.type().real.dtype

    def word(self, name: str) -> str:
        """A character, in upper case."""
        return ctypes.string_at(self.at[name], 1).decode().upper()

    def number(self, name: str) -> int:
        """An integer."""
        return ctypes.c_int.from_address(self.at[name]).value

    def size(self, name: str) -> float:
        """A real number."""
        return float(self.vector(name, 1, self.real)[0])

    def vector(self, name: str, n: int, dtype: Any = None) -> np.ndarray:
        """The first elements of an array."""
        return self.matrix(name, n, 1, max(n, 1), dtype)[:, 0]

    def matrix(self, name: str, rows: int, columns: int, ld: int = 0, dtype: Any = None) -> np.ndarray:
        """A matrix in the caller's memory."""
        dtype = np.dtype(dtype or self.dtype)
        ld = ld or self.number(f"LD{name}")
        if not rows or not columns:
            return np.empty((rows, columns), dtype, "F")
        memory = (ctypes.c_char * (dtype.itemsize * ld * columns)).from_address(self.at[name])
        return np.ndarray((ld, columns), dtype, memory, order="F")[:rows]

    @property
    def is_lapacks(self) -> bool:
        """Whether LAPACK answers the call: a query of workspaces, or one of no rows or columns."""
        extents = ("N",) if "LDZ" in self.at else ("M", "N")  # M is a result of some eigenvalues
        queries = ((name, -1) for name in ("LWORK", "LRWORK", "LIWORK"))
        return any(
            name in self.at and self.number(name) == value
            for name, value in (*queries, *((name, 0) for name in extents))
        )

    def ended(self, info: Any) -> None:
        """Set INFO."""
        ctypes.c_int.from_address(self.at["INFO"]).value = int(info)


class Functions:
    """The library's functions, of arrays in some memory."""

    def __init__(self, on: str) -> None:
        from pyblasgpu import lapack, linalg

        self.lapack, self.linalg, self.is_host = lapack, linalg, on == "cpu"
        self.put, self.get = _place(on)

    def called(self, function: Callable[..., Any], *matrices: np.ndarray, **options: Any) -> list[Any]:
        """Results on the host, of matrices that are copied."""
        found = function(*(self.put(np.array(each, order="F")) for each in matrices), **options)
        found = found if isinstance(found, tuple) else (found,)
        return [each if isinstance(each, (int, np.generic)) else np.asarray(self.get(each)) for each in found]

    def all_values(self, call: Call) -> None:
        """xSYEV and xSYEVD."""
        n, vectors = call.number("N"), call.word("JOBZ") == "V"
        a = call.matrix("A", n, n)
        routine = getattr(self.lapack, call.name)
        w, v, info = self.called(routine, a, compute_v=vectors, lower=call.word("UPLO") == "L")
        call.vector("W", n, call.real)[:] = w
        if vectors:
            a[:] = v
        call.ended(info)

    def some_values(self, call: Call) -> None:
        """xSYEVR and xSYEVX, which have names for host arrays; those of a device are `eigh`'s."""
        n, vectors, kind = call.number("N"), call.word("JOBZ") == "V", call.word("RANGE")
        a, low = call.matrix("A", n, n), call.word("UPLO") == "L"
        if self.is_host:
            passed = {"vl": call.size("VL"), "vu": call.size("VU")} if kind == "V" else {}
            passed |= {"il": call.number("IL"), "iu": call.number("IU")} if kind == "I" else {}
            w, z, m, _, info = self.called(
                getattr(self.lapack, call.name), a, compute_v=vectors, range=kind, lower=low, **passed,
                abstol=call.size("ABSTOL"),
            )  # fmt: skip
        else:
            w, z, m, info = self._by_eigh(call, (a,), low, vectors, kind)
        self._leave(call, n, w, z, int(m), vectors, int(info))

    def _by_eigh(
        self, call: Call, matrices: tuple[np.ndarray, ...], low: bool, vectors: bool, kind: str
    ) -> tuple[Any, Any, int, int]:
        """Values, vectors, how many, and INFO."""
        options: dict[str, Any] = {"type": call.number("ITYPE")} if len(matrices) > 1 else {}
        if kind == "V":
            options["subset_by_value"] = call.size("VL"), call.size("VU")
        elif kind == "I":
            options["subset_by_index"] = call.number("IL") - 1, call.number("IU") - 1
        found = self.called(self.linalg.eigh, *matrices, lower=low, eigvals_only=not vectors, **options)
        return found[0], found[-1], len(found[0]), 0

    def _leave(self, call: Call, n: int, w: Any, z: Any, m: int, vectors: bool, info: int) -> None:
        """Put some values and vectors where the caller has them."""
        ctypes.c_int.from_address(call.at["M"]).value = m
        call.vector("W", n, call.real)[:m] = w[:m]
        if vectors and m:
            call.matrix("Z", n, m)[:] = z[:, :m]
        if "IFAIL" in call.at:
            call.vector("IFAIL", n, "i4")[:] = 0
        call.ended(info)

    def pair(self, call: Call) -> None:
        """xSYGV and xSYGVD, and xSYGVX where some values are wanted."""
        n, vectors = call.number("N"), call.word("JOBZ") == "V"
        low, kind = call.word("UPLO") == "L", call.word("RANGE") if "RANGE" in call.at else "A"
        a, b = call.matrix("A", n, n), call.matrix("B", n, n)
        if self.is_host:
            options = {"itype": call.number("ITYPE"), "jobz": call.word("JOBZ"), "uplo": call.word("UPLO")}
            if "RANGE" in call.at:
                options |= {"range": kind, "abstol": call.size("ABSTOL")}
                options |= {"vl": call.size("VL"), "vu": call.size("VU")} if kind == "V" else {}
                options |= {"il": call.number("IL"), "iu": call.number("IU")} if kind == "I" else {}
            w, v, *others, info = self.called(getattr(self.lapack, call.name), a, b, **options)
            m = int(others[0]) if others else n
        else:
            w, v, m, info = self._by_eigh(call, (a, b), low, vectors, kind)
        if "RANGE" in call.at:
            self._leave(call, n, w, v, m, vectors, int(info))
            return
        call.vector("W", n, call.real)[:] = w
        if vectors:
            a[:] = v
        call.ended(info)

    def tridiagonal(self, call: Call) -> None:
        """xSYTRD, of host arrays."""
        n, low = call.number("N"), call.word("UPLO") == "L"
        a = call.matrix("A", n, n)
        routine = getattr(self.lapack, call.name)
        c, d, e, tau, info = routine(np.array(a, order="F"), lower=low)
        a[:], call.vector("D", n, call.real)[:] = c, d
        call.vector("E", n - 1, call.real)[:], call.vector("TAU", n - 1)[:] = e, tau
        call.ended(info)

    def singular(self, call: Call) -> None:
        """xGESVD and xGESDD, of which any pair of jobs is a part of one call's results."""
        m, n = call.number("M"), call.number("N")
        a, k = call.matrix("A", m, n), min(m, n)
        jobs = (
            (call.word("JOBU"), call.word("JOBVT")) if "JOBU" in call.at else _jobs(call.word("JOBZ"), m, n)
        )
        vectors, full = jobs != ("N", "N"), "A" in jobs
        u, s, vt, info = self._svd(call, a, vectors, full)
        call.vector("S", k, call.real)[:] = s
        for name, job, each in (("U", jobs[0], u), ("VT", jobs[1], vt)):
            rows, columns = (m, m if job == "A" else k) if name == "U" else (n if job == "A" else k, n)
            if job == "O":
                a[:rows, :columns] = each[:rows, :columns]
            elif job != "N":
                call.matrix(name, rows, columns)[:] = each[:rows, :columns]
        call.ended(info)

    def _svd(self, call: Call, a: np.ndarray, vectors: bool, full: bool) -> tuple[Any, Any, Any, int]:
        """Vectors, values, vectors, INFO; `linalg` has the shapes for which a device has no kernel."""
        try:
            found = self.called(getattr(self.lapack, call.name), a, compute_uv=vectors, full_matrices=full)
        except NotImplementedError:
            found = self.called(self.linalg.svd, a, compute_uv=vectors, full_matrices=full)
            found = [*(found if vectors else (None, found[0], None)), 0]
        u, s, vt, info = found
        return u, s, vt, int(info)


def _jobs(job: str, m: int, n: int) -> tuple[str, str]:
    """The jobs of both sides of xGESDD."""
    if job == "O":
        return ("O", "A") if m >= n else ("A", "O")
    return job, job


def _place(on: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """What puts an array into the memory that is meant, and what gets one."""
    if on == "cpu":
        return (lambda array: array), (lambda array: array)
    if on == "card":
        cupy = import_module("cupy")
        return cupy.asarray, cupy.asnumpy
    fake_device, patch = import_module("fake_device"), import_module("pytest").MonkeyPatch()
    if on == "launches":
        kernels = import_module("fake_kernels")  # before the device, which replaces what it keeps
        fake_device.install(patch)
        kernels.install_below(patch)
    else:
        import_module("sim.simulated").arrays_on_device(patch)
    return fake_device.Array, lambda array: array.host


def install(table: int) -> None:
    """Write the addresses of functions to a table, in the order of `routines`."""
    os.environ.pop("LD_PRELOAD", None)  # not for what this process starts
    functions, lapack = Functions(os.environ["PYBLASGPU_TESTED_ON"]), ctypes.CDLL("liblapack.so.3")
    addresses = (ctypes.c_void_p * len(routines())).from_address(table)
    for place, (name, (function, arguments)) in enumerate(routines().items()):
        answered = answer(name, arguments, getattr(functions, function), getattr(lapack, f"{name}_"))
        kept = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arguments))(answered)
        _kept.append(kept)
        addresses[place] = ctypes.cast(kept, ctypes.c_void_p).value


def answer(
    name: str, arguments: list[str], function: Callable[[Call], None], fortran: Any
) -> Callable[..., None]:
    """The function that Fortran calls."""
    words = sum(each in _WORDS for each in arguments)

    def answered(*pointers: int) -> None:
        call = Call(name, arguments, pointers)
        if call.is_lapacks:
            fortran(*map(ctypes.c_void_p, pointers), *[ctypes.c_size_t(1)] * words)
            return
        _counts[name] += 1
        try:
            function(call)
        except BaseException:
            traceback.print_exc()
            print(f"{name} of order {call.number('N')}", file=sys.stderr, flush=True)
            os._exit(71)

    return answered


def report() -> None:
    """Print how often each routine was called."""
    print(", ".join(f"{name} {count}" for name, count in sorted(_counts.items())), file=sys.stderr)
