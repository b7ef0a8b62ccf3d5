"""The kernels that a call would run, their Configs, and the origins of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from operator import index
from typing import Any

from ..arguments import shown
from ..database import FIXED
from ..database.policy import is_by_dtype
from ..dispatch.leaf import fixed_choice
from ..dispatch.overrides import FIXED_ORIGIN, Algorithm, in_mode
from ..dispatch.split_k import SPLIT_COSTS
from ..dispatch.tuned_files import policy_of, policy_origin
from ..gpu.build.compile import KernelSource
from ..gpu.device import Device, current, stand_in
from ..gpu.device import named as device_named
from ..operands import Operand
from ..routine import Matrix
from ..routine import extents as named_extents
from ..routine_table import ROUTINES
from ..routines.launch_list import LaunchList
from ..types import TENSOR, THREE_M, Diag, Dtype, Side, Trans, Uplo, dtype_of, product_method

__all__ = ["explain", "extents_of", "launches_of", "sources_of"]

#: Flags of the calls that are explained.
_FLAGS = {
    "side": Side.LEFT,
    "uplo": Uplo.LOWER,
    "diag": Diag.NON_UNIT,
    "trans": Trans.NO,
    "trans_a": Trans.NO,
    "trans_b": Trans.NO,
}


def explain(
    routine: str,
    dtype: Any,
    m: int,
    n: int | None = None,
    k: int | None = None,
    device: int | str = 0,
    batch: int = 1,
    method: str | None = None,
) -> list[tuple[str, str, str]]:
    """Return the Configs that a call would take on a device, in the order of its launches.

    Parameters
    ----------
    routine : str
        The routine without the letter of its dtype: 'gemm', 'axpy', 'trmv', 'potrf', ...; all of `pyblasgpu`
        but 'rotm', which runs the kernel of 'rot', and all of `pyblasgpu.lapack`.
    dtype : str, dtype
        One of the four, by letter, name or as a library's dtype.
    m, n : int
        Extents of the result, column-major, m = n for 'syrk' to 'gemmtr'; a triangle is lower, and the left
        factor. In level 1 m is the number of elements, and there is no n; in level 2 these are the extents of
        the matrix. In LAPACK's solutions m is the order and n the number of right-hand sides. n is m by
        default.
    k : int, optional
        Inner extent of a GEMM or a rank-k update, by default `m`.
    device : int or str, default 0
        Number of the device, or its name in any spelling; also one that is described and not here ('h200').
    batch : int, default 1
        Number of products, or triangles.
    method : {'3m', 'tensor'}, optional
        '3m': a complex GEMM by three real products instead of four. 'tensor': products on tensor cores. Where
        they do not serve, an entry "algorithm" comes first, with the reason in the place of the origin.

    Returns
    -------
    list of (str, str, str)
        Kernel family, Config, and origin: override, a file, or computed. A product whose inner extent is
        split is followed by "splits of k" and their number. Kernels of level 1, level 2 and LAPACK are
        followed by "grid of" their name: blocks along x, y and z of the largest launch; then by "workspace"
        and its bytes. For 'trsm', 'trmm', 'syr2k' and 'her2k' "algorithm" comes first: 'trsv', 'trsm_fused',
        'trsm_fused_1024' (a recursion that ends in fused triangles of that order), 'trsm_small',
        'trmm_fused', 'trmm_fused_1024', 'trmm_small', 'recursion', 'symmetrize' or 'two_products'. Last are
        ranges, widths and costs that decided, as "policy", with name, value and origin. They are measured
        here, packaged, or computed from what another device was measured to have.

    Raises
    ------
    BackendUnavailable
        When there is no such device.
    ValueError
        For another routine or method, and for extents that are no positive integers or that the routine has
        not. Also where m = n is needed and not so, and for the name of a device that is neither here nor
        described.

    See Also
    --------
    override : Sets another choice, within a block.
    show_config : Lists the files of Configs.

    Examples
    --------
    >>> import pyblasgpu
    >>> kernel, config, origin = pyblasgpu.explain("gemm", "d", 4096, device="h200")[0]
    >>> kernel
    'gemm_mma'
    """
    chosen: dict[tuple[str, str, str], None] = {}
    meant, lists = _launches(routine, dtype, m, n, k, device, batch, method)
    names = dict.fromkeys(name for launches in lists for name in launches.decisive)
    for choice in (choice for launches in lists for choice in launches.choices):
        if isinstance(choice, Algorithm):
            chosen["algorithm", choice.name, choice.origin] = None
            continue
        chosen[choice.config.STEM, str(choice.config), choice.origin] = None
        if choice.splits > 1:
            chosen["splits of k", str(choice.splits), choice.origin] = None
            names |= dict.fromkeys(SPLIT_COSTS)
    if ROUTINES[routine].group != "level3":
        chosen |= dict.fromkeys(_kernels(lists, {what for what, _, _ in chosen}, meant))
    return [*chosen, *_policy(names, dtype_of(dtype), meant)]


def extents_of(routine: str, m: int, n: int | None = None, k: int | None = None) -> tuple[int, ...]:
    """The extents that a call has, `m` for those that are not given.

    Parameters
    ----------
    routine : str
    m, n, k : int
        Extents, see `explain`.

    Returns
    -------
    tuple of int
        m of a vector; m, n and k of a GEMM or a rank-k update; else m and n.

    Raises
    ------
    ValueError
        For extents that `explain` refuses.
    """
    given = {"m": m, "n": n, "k": k}
    _check(routine, **given)
    row = ROUTINES[routine]
    count = 1 if row.group == "level1" else 3 if "k" in row.dims else 2
    for name, extent in list(given.items())[count:]:
        if extent is not None:
            raise ValueError(f"explain: {routine} has no {name}, and {name}={extent} is given")
    extents = tuple(m if extent is None else extent for extent in given.values())[:count]
    if row.is_square and extents[1] != m:
        what = "result" if row.group == "level3" else "matrix"
        raise ValueError(f"explain: the {what} of {routine} is square, not {m} by {n}")
    return extents


def _policy(names: Iterable[str], dtype: Dtype, device: Device) -> Iterator[tuple[str, str, str]]:
    """Yield the values of the policy that decided, and their origins."""
    policy = policy_of(device)
    for name in names:
        value = getattr(policy, name)
        if is_by_dtype(name):
            value = value.get(dtype.letter, "no bound")
        yield "policy", f"{name}: {value}", policy_origin(name, device)


def _kernels(lists: list[LaunchList], listed: set[str], device: Device) -> Iterator[tuple[str, str, str]]:
    """Yield the Configs of kernels that are not `listed`, and the largest grid of each kernel."""
    grids: dict[str, list[tuple[int, int, int]]] = {}
    for entry in (entry for launches in lists for entry in launches.entries):
        name = entry.source.name
        if name not in listed and name not in grids:
            config = entry.source.config
            is_fixed = config.STEM in FIXED
            origin = fixed_choice(config.STEM, config.dtype, device).origin if is_fixed else FIXED_ORIGIN
            yield name, str(config), origin
        grids.setdefault(name, []).append(entry.grid)
    for name, dims in grids.items():
        count = f"largest of {len(dims)} launches" if len(dims) > 1 else "one launch"
        yield f"grid of {name}", " x ".join(map(str, max(dims, key=prod))), count
    needed = max((launches.workspace_bytes for launches in lists), default=0)
    yield "workspace", f"{needed} bytes", "next to arguments and results"


def sources_of(
    routine: str,
    dtype: Any,
    m: int,
    n: int | None = None,
    k: int | None = None,
    device: int | str = 0,
    batch: int = 1,
    method: str | None = None,
) -> tuple[Device, list[KernelSource]]:
    """The device, and the kernels that the call launches there, each once; parameters as of `explain`."""
    meant, lists = _launches(routine, dtype, m, n, k, device, batch, method)
    return meant, list(dict.fromkeys(entry.source for launches in lists for entry in launches.entries))


def _launches(
    routine: str,
    dtype: Any,
    m: int,
    n: int | None,
    k: int | None,
    device: int | str,
    batch: int,
    method: str | None,
) -> tuple[Device, list[LaunchList]]:
    extents = extents_of(routine, m, n, k)
    _check(routine, batch=batch)
    facts = dtype_of(dtype)
    meant = stand_in(device_named(device)) if isinstance(device, str) else current(device)
    method = product_method(method, facts, "explain")
    m, n, k = (*extents, m, m)[:3]
    row = ROUTINES[routine]
    named, how = {"m": m, "n": n}, (k, meant.ordinal, batch, method)
    parts = row.parts or ((routine, "m", "n"),)
    lists = [launches_of(stem, facts, named[rows], named[cols], *how) for stem, rows, cols in parts]
    return meant, [launches for launches in lists if launches is not None]


def _check(routine: str, **numbers: Any) -> None:
    known = [row.stem for row in ROUTINES.values() if row.is_explained]
    if routine not in known:
        raise ValueError(f"explain: routine {routine!r} is none of {', '.join(known)}")
    for name, value in numbers.items():
        try:
            is_count = value is None or index(value) > 0
        except TypeError:
            is_count = False
        if not is_count:
            raise ValueError(f"explain: {name}={shown(value)} is no positive integer")


def launches_of(
    routine: str, dtype: Dtype, m: int, n: int, k: int, device: int, batch: int, method: str | None
) -> LaunchList | None:
    """The launch list of a call on dense operands; None where there is nothing to do."""
    row = ROUTINES[routine]
    if method == TENSOR and THREE_M not in row.methods:
        return in_mode(method, launches_of)(routine, dtype, m, n, k, device, batch, None)
    extents = named_extents(m, n, k)

    def dense(matrix: Matrix) -> Operand:
        rows, cols = matrix.shape(extents)
        held = row.result_dtype(dtype) if row.result and matrix is row.output else dtype
        return Operand(0, rows, cols, 1, rows, held, False, batch, rows * cols, device)

    current(device)
    flags = row.view_flags(_FLAGS, dtype) | ({"method": method} if THREE_M in row.methods else {})
    scalars = {"operation": routine, "conj": False, "alpha": 2.0, "beta": 0}
    launches: LaunchList | None = row.launch_list(
        *row.arranged(scalars, list(map(dense, row.matrices))), **flags
    )
    return launches
