"""The families of products."""

from __future__ import annotations

from ..registry import Axes, Family

__all__ = ["FAMILIES"]

_LOADS = ("VEC_A", "DIM_XA", "PAD_A"), ("VEC_B", "DIM_XB", "PAD_B")
_COMPILED = ("min_blocks", "prefetch", "persistent")
_ACROSS = ("BLK_M", "BLK_N", "BLK_K", "stages", "SLICES_K", *_COMPILED)

FAMILIES = (
    Family(
        "gemm_simt",
        ".gemm.simt",
        "GemmSimt",
        "gemm",
        layouts=("nn", "nt", "tn", "tt"),
        layout_fields=("trans_a", "trans_b"),
        space_name=".gemm.space:gemm_simt",
        axes=Axes(
            tile=(
                ("BLK_M", "BLK_N"),
                ("DIM_X", "DIM_Y"),
                ("BLK_K", "stages", "VEC_K", "SLICES_K"),
                ("share_a", "share_b", "read_only"),
            ),
            variant=(_COMPILED, ("by_rows",), ("WARP_X",), *_LOADS),
            across_layouts=(*_ACROSS, "DIM_X", "DIM_Y", "VEC_K"),
        ),
    ),
    Family(
        "gemm_mma",
        ".gemm.mma",
        "GemmMma",
        "gemm",
        layouts=("nn", "nt", "tn", "tt"),
        layout_fields=("trans_a", "trans_b"),
        dtypes=("d", "z"),
        tensor_cores=True,
        space_name=".gemm.space:gemm_mma",
        axes=Axes(
            tile=(
                ("BLK_M", "BLK_N"),
                ("WARP_M", "WARP_N"),
                ("BLK_K", "stages", "SLICES_K"),
                ("MMA_M", "MMA_K"),
            ),
            variant=(_COMPILED, *_LOADS),
            across_layouts=(*_ACROSS, "WARP_M", "WARP_N"),
        ),
    ),
    Family(
        "gemm_simt_3m", ".gemm.simt_three_m", "GemmSimtThreeM", "gemm", dtypes=("c", "z"), on_request=True
    ),
    Family("gemm_grouped", ".gemm.grouped", "GemmGrouped", "gemm", needs=(8, 0)),
    Family("trmm_stack", ".gemm.trmm_stack", "TrmmStack", "trmm", needs=(8, 0)),
    Family(
        "equilibrate",
        ".gemm.wgmma.equilibrate",
        "Equilibrate",
        "gemm",
        dtypes=("s", "c"),
        only=(9, 0),
    ),
    Family(
        "pack_halves",
        ".gemm.wgmma.pack_halves",
        "PackHalves",
        "gemm",
        dtypes=("s", "c"),
        only=(9, 0),
    ),
    Family(
        "gemm_wgmma", ".gemm.wgmma.product", "GemmWgmma", "gemm", dtypes=("s",), needs=(9, 0), only=(9, 0)
    ),
    Family("pack_triples", ".gemm.wgmma.pack_triples", "PackTriples", "gemm", dtypes=("s", "c"), only=(9, 0)),
    Family(
        "gemm_triples", ".gemm.wgmma.triples", "GemmTriples", "gemm", dtypes=("s",), needs=(9, 0), only=(9, 0)
    ),
    Family(
        "gemm_guarded",
        ".gemm.wgmma.guarded",
        "GemmGuarded",
        "gemm",
        dtypes=("s", "c"),
        needs=(9, 0),
        only=(9, 0),
    ),
    Family("sample_pairs", ".gemm.int8.sample_pairs", "SamplePairs", "gemm", dtypes=("d",), only=(9, 0)),
    Family("row_scales", ".gemm.int8.row_scales", "RowScales", "gemm", dtypes=("d", "z"), only=(9, 0)),
    Family("pivot_scales", ".gemm.int8.pivot_scales", "PivotScales", "gemm", dtypes=("d", "z"), only=(9, 0)),
    Family(
        "pack_residues", ".gemm.int8.pack_residues", "PackResidues", "gemm", dtypes=("d", "z"), only=(9, 0)
    ),
    Family(
        "gemm_int8", ".gemm.int8.product", "GemmInt8", "gemm", dtypes=("d", "z"), needs=(9, 0), only=(9, 0)
    ),
    Family(
        "combine_residues",
        ".gemm.int8.combine_residues",
        "CombineResidues",
        "gemm",
        dtypes=("d", "z"),
        only=(9, 0),
    ),
    Family(
        "gemm_int8_guarded",
        ".gemm.int8.guarded",
        "GemmInt8Guarded",
        "gemm",
        dtypes=("d", "z"),
        needs=(9, 0),
        only=(9, 0),
    ),
)
