"""Answers to calls of LAPACK's Fortran routines, as a table of functions that a shared object calls."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from tools import fortran_factors, fortran_spectra
from tools.fortran_calls import Call

_WORDS = {"JOBZ", "JOBU", "JOBVT", "RANGE", "UPLO", "SIDE", "TRANS", "DIAG"}

_counts: Counter[str] = Counter()
_kept: list[Any] = []


def routines() -> dict[str, tuple[str, list[str]]]:
    """The names of functions and LAPACK's arguments, by the names of routines with a letter."""
    found = {}
    for names, (function, arguments) in (fortran_spectra.ROUTINES | fortran_factors.ROUTINES).items():
        for letter in "cz" if names.startswith("he") else "sdcz":
            of_letter = arguments if letter in "cz" else re.sub(r"\{.*?\}", "", arguments)
            found[letter + names.split()[letter in "cz"]] = function, re.findall(r"\w+", of_letter)
    return found


def install(table: int) -> None:
    """Write the addresses of functions to a table, in the order of `routines`."""
    os.environ.pop("LD_PRELOAD", None)  # not for what this process starts
    on, lapack = os.environ["PYBLASGPU_TESTED_ON"], ctypes.CDLL("liblapack.so.3")
    spectra, factors = fortran_spectra.Spectra(on), fortran_factors.Factors(on)
    addresses = (ctypes.c_void_p * len(routines())).from_address(table)
    for place, (name, (function, arguments)) in enumerate(routines().items()):
        answered = answer(
            name,
            arguments,
            getattr(spectra if hasattr(spectra, function) else factors, function),
            getattr(lapack, f"{name}_"),
        )
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
            extents = {each: call.number(each) for each in ("M", "N", "K", "NRHS") if each in call.at}
            print(f"{name} {extents}", file=sys.stderr, flush=True)
            os._exit(71)

    return answered


def report() -> None:
    """Print how often each routine was called."""
    print(", ".join(f"{name} {count}" for name, count in sorted(_counts.items())), file=sys.stderr)
