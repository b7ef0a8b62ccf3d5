"""Calls of LAPACK's routines of eigenvalues and singular values, by functions of `lapack` and `linalg`."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tools.fortran_calls import Call, Functions

__all__ = ["ROUTINES", "Spectra"]

_EIGEN = "JOBZ UPLO N A LDA W WORK LWORK"
_SOME = "JOBZ RANGE UPLO N A LDA VL VU IL IU ABSTOL M W Z LDZ"
_PAIR = "ITYPE JOBZ UPLO N A LDA B LDB W WORK LWORK"
_SOME_OF_PAIR = "ITYPE JOBZ RANGE UPLO N A LDA B LDB VL VU IL IU ABSTOL M W Z LDZ WORK LWORK"
#: By the names for real and complex matrices: the function of `Spectra`, and arguments, of which those in
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


class Spectra(Functions):
    """Functions of calls."""

    def all_values(self, call: Call) -> None:
        """xSYEV and xSYEVD."""
        n, vectors = call.number("N"), call.word("JOBZ") == "V"
        a = call.matrix("A", n, n)
        w, v, info = self.routine(call, a, compute_v=vectors, lower=call.word("UPLO") == "L")
        call.vector("W", n, call.real)[:] = w
        if vectors:
            a[:] = v
        call.ended(info)

    def some_values(self, call: Call) -> None:
        """xSYEVR and xSYEVX."""
        n, vectors, kind = call.number("N"), call.word("JOBZ") == "V", call.word("RANGE")
        options = _range_of(call, kind)
        w, z, m, _, info = self.routine(
            call,
            call.matrix("A", n, n),
            compute_v=vectors,
            lower=call.word("UPLO") == "L",
            **options,
        )
        self._leave(call, n, w, z, int(m), vectors, int(info))

    def _by_eigh(
        self, call: Call, a: np.ndarray, b: np.ndarray, low: bool, vectors: bool, kind: str
    ) -> tuple[Any, Any, int, int]:
        """Values, vectors, how many, and INFO of a generalized problem on a device, by `eigh`."""
        options: dict[str, Any] = {"type": call.number("ITYPE")}
        if kind == "V":
            options["subset_by_value"] = call.size("VL"), call.size("VU")
        elif kind == "I":
            options["subset_by_index"] = call.number("IL") - 1, call.number("IU") - 1
        found = self.called(self.linalg.eigh, a, b, lower=low, eigvals_only=not vectors, **options)
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
            options |= _range_of(call, kind) if "RANGE" in call.at else {}
            w, v, *others, info = self.routine(call, a, b, **options)
            m = int(others[0]) if others else n
        else:
            w, v, m, info = self._by_eigh(call, a, b, low, vectors, kind)
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
            found = self.routine(call, a, compute_uv=vectors, full_matrices=full)
        except NotImplementedError:
            found = self.called(self.linalg.svd, a, compute_uv=vectors, full_matrices=full)
            found = [*(found if vectors else (None, found[0], None)), 0]
        u, s, vt, info = found
        return u, s, vt, int(info)


def _range_of(call: Call, kind: str) -> dict[str, Any]:
    """The options of the eigenvalues that are wanted."""
    options: dict[str, Any] = {"range": kind, "abstol": call.size("ABSTOL")}
    if kind == "V":
        options |= {"vl": call.size("VL"), "vu": call.size("VU")}
    elif kind == "I":
        options |= {"il": call.number("IL"), "iu": call.number("IU")}
    return options


def _jobs(job: str, m: int, n: int) -> tuple[str, str]:
    """The jobs of both sides of xGESDD."""
    if job == "O":
        return ("O", "A") if m >= n else ("A", "O")
    return job, job
