"""The table of routines: one row each.

Rows are here, and those of LAPACK in `lapack_rows`, not next to the routines: so names and flags are read
without kernels.
"""

from __future__ import annotations

from dataclasses import replace

from .lapack_rows import LAPACK
from .routine import Matrix, Routine
from .types import DTYPES, TENSOR, THREE_M, Dtype, Side

__all__ = ["ROUTINES", "register", "routines", "typed_names"]

#: The rows, by stem.
ROUTINES: dict[str, Routine] = {}


def register(routine: Routine) -> Routine:
    """Add a routine; one of the same stem gives way."""
    ROUTINES[routine.stem] = routine
    return routine


def routines(*groups: str) -> tuple[Routine, ...]:
    """The routines of these groups, in the order of the table."""
    return tuple(routine for routine in ROUTINES.values() if routine.group in groups)


def typed_names(*groups: str) -> dict[str, tuple[Routine, Dtype]]:
    """SciPy's names of the routines of these groups, with their dtypes."""
    return {
        name: (routine, DTYPES[letter])
        for routine in routines(*groups)
        for letter in routine.letters
        for name in routine.scipys(letter)
    }


_COMPLEX, _REAL = "cz", "sd"
_BOUNDS = ".testing.error_bounds"

# ------------------------------------------------------------------------------------------------ level 1

_X, _Y, _NUMBER = Matrix("x", "m"), Matrix("y", "m"), Matrix("out", "1")
_MAP = Routine("copy", "level1", ("operation", "alpha", _X, _Y), launches=".routines.level1", work=("m",))
_REDUCTION = Routine(
    "nrm2",
    "level1",
    ("operation", "conj", _X, _NUMBER),
    names={"c": ("scnrm2",), "z": ("dznrm2",)},
    result="real",
    launches=".routines.level1:reduce_launch_list",
    work=("m",),
)
_LEVEL_1 = (
    _MAP,
    replace(_MAP, stem="scal", names={"c": ("cscal", "csscal"), "z": ("zscal", "zdscal")}),
    replace(_MAP, stem="axpy"),
    replace(_MAP, stem="swap"),
    replace(_MAP, stem="rot", names={"c": ("csrot",), "z": ("zdrot",)}),
    replace(_MAP, stem="rotm", letters=_REAL, direct="", launches=""),
    replace(
        _REDUCTION,
        stem="dot",
        arguments=("operation", "conj", _X, _Y, _NUMBER),
        names={"c": ("cdotu", "cdotc"), "z": ("zdotu", "zdotc")},
        result="",
    ),
    _REDUCTION,
    replace(_REDUCTION, stem="asum", names={"c": ("scasum",), "z": ("dzasum",)}),
    replace(
        _REDUCTION,
        stem="iamax",
        names={letter: (f"i{letter}amax",) for letter in DTYPES},
        result="index",
    ),
)

# ------------------------------------------------------------------------------------------------ level 2

_SQUARE = Matrix("a", "m", "m", is_half=True)
_SYMV = Routine(
    "symv",
    "level2",
    ("alpha", _SQUARE, _X, "beta", _Y),
    ("uplo",),
    switches=("hermitian",),
    letters=_REAL,
    counterpart="hemv",
    work=("m", "m"),
    launches=".routines.level2.symv",
    cpu=".cpu.scipy.level2:symv",
)
_SYR = Routine(
    "syr",
    "level2",
    ("alpha", _X, _SQUARE),
    ("uplo",),
    switches=("hermitian", "is_new_output"),
    counterpart="her",
    work=("m", "m"),
    fmas=(1, 2),
    direct=_REAL,
    launches=".routines.level2.syr",
    cpu=".cpu.scipy.level2:syr",
)
_SYR2 = replace(
    _SYR,
    stem="syr2",
    arguments=("alpha", _X, _Y, _SQUARE),
    letters=_REAL,
    counterpart="her2",
    fmas=(1, 1),
    launches=".routines.level2.syr2",
    cpu=".cpu.scipy.level2:syr2",
)
_TRIANGLE = Matrix("a", "m", "m", op="trans", is_half=True)
_TRMV = Routine(
    "trmv",
    "level2",
    (_TRIANGLE, _X, _Y),
    ("uplo", "trans", "diag"),
    work=("m", "m"),
    fmas=(1, 2),
    launches=".routines.level2.trmv",
    cpu=".cpu.scipy.level2:trmv",
)
_LEVEL_2 = (
    Routine(
        "gemv",
        "level2",
        ("alpha", Matrix("a", "m", "n", op="trans"), Matrix("x", "n"), "beta", _Y),
        ("trans",),
        work=("m", "n"),
        launches=".routines.level2.gemv",
        cpu=".cpu.scipy.level2:gemv",
    ),
    Routine(
        "ger",
        "level2",
        ("alpha", _X, Matrix("y", "n"), Matrix("a", "m", "n")),
        switches=("is_new_output",),
        names={"c": ("cgeru", "cgerc"), "z": ("zgeru", "zgerc")},
        work=("m", "n"),
        launches=".routines.level2.ger",
        cpu=".cpu.scipy.level2:ger",
    ),
    _SYMV,
    replace(_SYMV, stem="hemv", letters=_COMPLEX, hermitian=True, counterpart="symv"),
    _TRMV,
    replace(
        _TRMV,
        stem="trsv",
        arguments=("alpha", _TRIANGLE, _X),
        fixed={"side": Side.LEFT},
        launches=".routines.level3.trsm",
        cpu=".cpu.scipy.level3:trsm",
    ),
    _SYR,
    replace(
        _SYR,
        stem="her",
        letters=_COMPLEX,
        hermitian=True,
        real=("alpha",),
        counterpart="syr",
        direct=_COMPLEX,
    ),
    _SYR2,
    replace(_SYR2, stem="her2", letters=_COMPLEX, hermitian=True, counterpart="syr2", direct=_COMPLEX),
)

# ------------------------------------------------------------------------------------------------ level 3

_B, _C, _UPDATED = Matrix("b", "m", "n"), Matrix("c", "m", "n"), Matrix("c", "n", "n", is_half=True)
_GEMM = Routine(
    "gemm",
    "level3",
    ("alpha", Matrix("a", "m", "k", op="trans_a"), Matrix("b", "k", "n", op="trans_b"), "beta", _C),
    ("trans_a", "trans_b"),
    methods=(THREE_M, TENSOR),
    work=("m", "n", "k"),
    crossover="product",
    launches=".routines.level3.gemm",
    cpu=".cpu.scipy.level3:gemm",
    tasks="gemm",
    bound=f"{_BOUNDS}:gemm_error",
)
_TRMM = Routine(
    "trmm",
    "level3",
    ("alpha", Matrix("a", "order", "order", op="trans", is_half=True), _B),
    ("side", "uplo", "trans", "diag"),
    methods=(TENSOR,),
    work=("order", "m", "n"),
    fmas=(1, 2),
    crossover="product",
    launches=".routines.level3.trmm",
    cpu=".cpu.scipy.level3:trmm",
    tasks="trmm",
    reads_source=True,
    bound=f"{_BOUNDS}:trmm_error",
)
_SYMM = Routine(
    "symm",
    "level3",
    ("alpha", Matrix("a", "order", "order", is_half=True), _B, "beta", _C),
    ("side", "uplo"),
    switches=("hermitian",),
    counterpart="hemm",
    methods=(TENSOR,),
    work=("order", "m", "n"),
    crossover="product",
    launches=".routines.level3.symm",
    cpu=".cpu.scipy.level3:symm",
    tasks="symm",
    bound=f"{_BOUNDS}:symm_error",
)
_SYRK = Routine(
    "syrk",
    "level3",
    ("alpha", Matrix("a", "n", "k", op="trans"), "beta", _UPDATED),
    ("uplo", "trans"),
    switches=("hermitian", "is_new_output"),
    counterpart="herk",
    methods=(TENSOR,),
    work=("n", "n", "k"),
    fmas=(1, 2),
    crossover="product",
    launches=".routines.level3.syrk",
    cpu=".cpu.scipy.level3:syrk",
    tasks="syrk",
    bound=f"{_BOUNDS}:rank_k_error",
)
_SYR2K = replace(
    _SYRK,
    stem="syr2k",
    arguments=(
        "alpha",
        Matrix("a", "n", "k", op="trans"),
        Matrix("b", "n", "k", op="trans"),
        "beta",
        _UPDATED,
    ),
    counterpart="her2k",
    fmas=(1, 1),
    launches=".routines.level3.syr2k",
    cpu=".cpu.scipy.level3:syr2k",
    tasks="",
)
_LEVEL_3 = (
    _GEMM,
    _TRMM,
    replace(
        _TRMM,
        stem="trsm",
        crossover="triangle",
        launches=".routines.level3.trsm",
        cpu=".cpu.scipy.level3:trsm",
        tasks="trsm",
        bound=f"{_BOUNDS}:trsm_error",
    ),
    _SYMM,
    replace(_SYMM, stem="hemm", letters=_COMPLEX, hermitian=True, counterpart="symm"),
    _SYRK,
    replace(
        _SYRK,
        stem="herk",
        letters=_COMPLEX,
        hermitian=True,
        real=("alpha", "beta"),
        counterpart="syrk",
    ),
    _SYR2K,
    replace(
        _SYR2K,
        stem="her2k",
        letters=_COMPLEX,
        hermitian=True,
        real=("beta",),
        counterpart="syr2k",
    ),
    Routine(
        "gemmtr",
        "level3",
        (
            "alpha",
            Matrix("a", "n", "k", op="trans_a"),
            Matrix("b", "k", "n", op="trans_b"),
            "beta",
            _UPDATED,
        ),
        ("uplo", "trans_a", "trans_b"),
        switches=("is_new_output",),
        work=("n", "n", "k"),
        fmas=(1, 2),
        direct="",
        launches=".routines.level3.gemmtr",
        cpu=".cpu.scipy.level3:gemmtr",
        bound=f"{_BOUNDS}:rank_k_error",
    ),
)

for _row in (*_LEVEL_3, *_LEVEL_1, *_LEVEL_2, *LAPACK):
    register(_row)
