"""Runs of benchmark scripts with small problems, for stand-ins and for a card."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

LU = {
    "SIZES": (16,),
    "PANEL_ROWS": (64,),
    "BATCH_ORDERS": (4,),
    "MOST_BATCH": 9,
    "CONFIG_ORDERS": (8,),
}
TENSOR = {
    "ORDERS": (32,),
    "COMPLEX_ORDERS": (128,),
    "RANKS": ((32, 32, 16),),
    "PART_ORDERS": (32,),
    "ERROR_ORDERS": (32,),
    "PASSES": 1,
}
INT8 = {
    "ORDERS": (32,),
    "COMPLEX_ORDERS": (32,),
    "SHAPES": ((32, 32, 16),),
    "PART_ORDERS": (32,),
    "COMPLEX_PART_ORDERS": (32,),
    "CONFIG_ORDERS": (32,),
    "ERROR_ORDERS": (32,),
    "PASSES": 1,
}
SPECTRA = {
    "BATCHES": ((3, 8), (2, 40)),
    "ORDERS": dict.fromkeys(("eigh", "eigvalsh", "svd"), (16,)),
    "BUSY_BYTES": 64,
}
ONE_CARD = {"use_devices": nullcontext}
LEVEL1 = {"DELAY": 1024, "MOST_SETS": 1, "ROUNDS": 2}
#: Script, its options, constants that make it short, and the lists of its file.
RUNS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("gemm_tensor", "--kinds sgemm,cgemm,errors,ranks,parts", TENSOR, "sgemm cgemm errors ranks parts"),
    ("gemm_int8", "--seconds 500", INT8, "dgemm zgemm zgemm_parts shapes parts int8_errors configs"),
    ("tensor_level3", "--sizes 24", {}, "cases"),
    (
        "tensor_level3",
        "--sizes 24 --routines ctrmm dtrsm cgetrf dsymm zpotrf --columns 4",
        {},
        "cases",
    ),
    ("hpl_mxp", "--sizes 24 --cards 1 2", ONE_CARD, "systems"),
    ("pivot_growth", "--sizes 24 --widths 4 --rows 8", {}, "results"),
    ("lu", "--kinds squares,solves,batches,configs --letters sz", LU, "squares solves batches configs"),
    ("level1", "--sizes 64", LEVEL1, "results"),
    ("l1_size", "--sizes 4 8", {}, "results"),
    ("spectra", "--letters sz", SPECTRA, "results"),
    ("variants", "--letters dz --sizes 9", {}, "results"),
    ("grouped", "--letters s --counts 3 --sizes 5", {"LISTS": 2}, "results"),
    ("programs", "--quick --backend cpu", {"POINTS": (40,), "SIZES": (16,)}, "seconds"),
)
#: The script that needs PyTorch or JAX, but for first calls.
FRAMEWORKS: tuple[str, str, dict[str, Any], str] = (
    "frameworks",
    "--letters s --sizes 40 --points 40 --parts steps,operators,gradients,gpytorch,botorch,jax,stacks",
    {"STACKS": ((3, 8),), "CALLS": 2, "ROUNDS": 1, "PART_SECONDS": 0.0},
    "steps operators gradients gpytorch botorch jax stacks",
)
