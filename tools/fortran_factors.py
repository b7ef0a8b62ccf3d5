"""Calls of LAPACK's routines of factors, systems and least squares, by the functions of `lapack`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.fortran_calls import Call, Functions

__all__ = ["ROUTINES", "Factors"]

_FACTOR = "A LDA TAU WORK LWORK INFO"
_SYSTEM = "N NRHS A LDA IPIV B LDB"
#: As those of `fortran_spectra`.
ROUTINES = {
    "potrf potrf": ("cholesky", "UPLO N A LDA INFO"),
    "potrs potrs": ("solved", "UPLO N NRHS A LDA B LDB INFO"),
    "potri potri": ("triangle", "UPLO N A LDA INFO"),
    "lauum lauum": ("triangle", "UPLO N A LDA INFO"),
    "trtri trtri": ("triangle", "UPLO DIAG N A LDA INFO"),
    "trtrs trtrs": ("solved", "UPLO TRANS DIAG N NRHS A LDA B LDB INFO"),
    "getrf getrf": ("lu", "M N A LDA IPIV INFO"),
    "getrs getrs": ("solved", f"TRANS {_SYSTEM} INFO"),
    "getri getri": ("inverse", "N A LDA IPIV WORK LWORK INFO"),
    "sytrf sytrf": ("ldl", "UPLO N A LDA IPIV WORK LWORK INFO"),
    "hetrf hetrf": ("ldl", "UPLO N A LDA IPIV WORK LWORK INFO"),
    "sytrs sytrs": ("solved", f"UPLO {_SYSTEM} INFO"),
    "hetrs hetrs": ("solved", f"UPLO {_SYSTEM} INFO"),
    "geqrf geqrf": ("orthogonal", f"M N {_FACTOR}"),
    "gelqf gelqf": ("orthogonal", f"M N {_FACTOR}"),
    "geqp3 geqp3": ("pivoted", "M N A LDA JPVT TAU WORK LWORK {RWORK} INFO"),
    "orgqr ungqr": ("unitary", f"M N K {_FACTOR}"),
    "orglq unglq": ("unitary", f"M N K {_FACTOR}"),
    "ormqr unmqr": ("product", "SIDE TRANS M N K A LDA TAU C LDC WORK LWORK INFO"),
    "ormlq unmlq": ("product", "SIDE TRANS M N K A LDA TAU C LDC WORK LWORK INFO"),
    "gels gels": ("least_squares", "TRANS M N NRHS A LDA B LDB WORK LWORK INFO"),
}
_TRANS = {"N": 0, "T": 1, "C": 2}


class Factors(Functions):
    """Functions of calls."""

    def cholesky(self, call: Call) -> None:
        """xPOTRF."""
        n, low = call.number("N"), call.word("UPLO") == "L"
        a = call.matrix("A", n, n)
        c, info = self.routine(call, a, lower=low, clean=0)
        _to_triangle(a, c, low)
        call.ended(info)

    def triangle(self, call: Call) -> None:
        """xPOTRI, xLAUUM and xTRTRI."""
        n, low = call.number("N"), call.word("UPLO") == "L"
        a = call.matrix("A", n, n)
        options = {"unitdiag": call.word("DIAG") == "U"} if "DIAG" in call.at else {}
        c, info = self.routine(call, a, lower=low, **options)
        if not info:
            _to_triangle(a, c, low, -1 if options.get("unitdiag") else 0)
        call.ended(info)

    def solved(self, call: Call) -> None:
        """xPOTRS, xTRTRS, xGETRS, xSYTRS and xHETRS."""
        n = call.number("N")
        b, arguments = call.matrix("B", n, call.number("NRHS")), [call.matrix("A", n, n)]
        options: dict[str, Any] = {}
        if "IPIV" in call.at:
            arguments.append(call.vector("IPIV", n, "i4") - np.int32("UPLO" not in call.at))
        if "UPLO" in call.at:
            options["lower"] = call.word("UPLO") == "L"
        if "TRANS" in call.at:
            options["trans"] = _TRANS[call.word("TRANS")]
        if "DIAG" in call.at:
            options["unitdiag"] = call.word("DIAG") == "U"
        x, info = self.routine(call, *arguments, b, **options)
        if not info:
            b[:] = x
        call.ended(info)

    def lu(self, call: Call) -> None:
        """xGETRF."""
        m, n = call.number("M"), call.number("N")
        a = call.matrix("A", m, n)
        a[:], pivots, info = self.routine(call, a)
        call.vector("IPIV", min(m, n), "i4")[:] = pivots + 1
        call.ended(info)

    def inverse(self, call: Call) -> None:
        """xGETRI."""
        n = call.number("N")
        a = call.matrix("A", n, n)
        found, info = self.routine(call, a, call.vector("IPIV", n, "i4") - np.int32(1))
        if not info:
            a[:] = found
        call.ended(info)

    def ldl(self, call: Call) -> None:
        """xSYTRF and xHETRF."""
        n, low = call.number("N"), call.word("UPLO") == "L"
        a = call.matrix("A", n, n)
        factors, pivots, info = self.routine(call, a, lower=low)
        _to_triangle(a, factors, low)
        call.vector("IPIV", n, "i4")[:] = pivots
        call.ended(info)

    def orthogonal(self, call: Call) -> None:
        """xGEQRF and xGELQF."""
        m, n = call.number("M"), call.number("N")
        a = call.matrix("A", m, n)
        a[:], call.vector("TAU", min(m, n))[:], _, info = self.routine(call, a)
        call.ended(info)

    def pivoted(self, call: Call) -> None:
        """xGEQP3, of which all columns are free."""
        m, n = call.number("M"), call.number("N")
        a = call.matrix("A", m, n)
        a[:], pivots, call.vector("TAU", min(m, n))[:], _, info = self.routine(call, a)
        call.vector("JPVT", n, "i4")[:] = pivots
        call.ended(info)

    def unitary(self, call: Call) -> None:
        """xORGQR, xORGLQ and those of complex matrices."""
        a = call.matrix("A", call.number("M"), call.number("N"))
        a[:], _, info = self.routine(call, a, call.vector("TAU", call.number("K")))
        call.ended(info)

    def product(self, call: Call) -> None:
        """xORMQR, xORMLQ and those of complex matrices."""
        m, n, k, side = call.number("M"), call.number("N"), call.number("K"), call.word("SIDE")
        order, c = m if side == "L" else n, call.matrix("C", m, n)
        a = call.matrix("A", order, k) if call.name.endswith("qr") else call.matrix("A", k, order)
        c[:], _, info = self.routine(call, side, call.word("TRANS"), a, call.vector("TAU", k), c)
        call.ended(info)

    def least_squares(self, call: Call) -> None:
        """xGELS."""
        m, n = call.number("M"), call.number("N")
        b = call.matrix("B", max(m, n), call.number("NRHS"))
        _, x, info = self.routine(call, call.matrix("A", m, n), b, trans=call.word("TRANS"))
        if not info:
            b[:] = x
        call.ended(info)


def _to_triangle(a: np.ndarray, found: np.ndarray, low: bool, diagonal: int = 0) -> None:
    """Write a triangle, or what is strictly within it, where the other one stays."""
    mask = np.tri(len(a), k=diagonal, dtype=bool)
    np.copyto(a, found, where=mask if low else mask.T)
