"""The errors of pyblasgpu other than ValueError, TypeError and numpy's LinAlgError."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ArchiveWarning",
    "BackendUnavailable",
    "CallCancelled",
    "ConfigError",
    "DatabaseWarning",
    "DtypeError",
    "OverlapError",
    "PyblasgpuError",
    "TileReport",
    "lacking",
    "require",
]


class PyblasgpuError(Exception):
    """Base of the errors that are pyblasgpu's own.

    See Also
    --------
    BackendUnavailable, CallCancelled, ConfigError, OverlapError : The errors.

    Examples
    --------
    >>> from pyblasgpu import errors
    >>> issubclass(errors.OverlapError, errors.PyblasgpuError)
    True
    """


class BackendUnavailable(PyblasgpuError, RuntimeError):
    """The backend of the call cannot run here; the message says what is missing.

    See Also
    --------
    pyblasgpu.backend_status : The backend, and the reason.

    Examples
    --------
    >>> import pyblasgpu
    >>> try:
    ...     backend = pyblasgpu.backend_status("cuda").backend
    ... except pyblasgpu.errors.BackendUnavailable:
    ...     backend = "cpu"
    >>> backend in ("cuda", "cpu")
    True
    """


class OverlapError(PyblasgpuError, ValueError):
    """An output shares memory with an input where no in-place case is documented.

    See Also
    --------
    pyblasgpu.gemm : Raises it when `out` is a factor.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a = np.eye(2)
    >>> try:
    ...     pyblasgpu.gemm(a, a, out=a, backend="cpu")
    ... except pyblasgpu.errors.OverlapError as error:
    ...     print(type(error).__name__)
    OverlapError
    """


class DtypeError(PyblasgpuError, TypeError, ValueError):
    """An array's dtype is none that is computed; SciPy raises TypeError or ValueError, by the function.

    See Also
    --------
    pyblasgpu.gemm : Raises it for arrays of objects.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> try:
    ...     pyblasgpu.gemm(np.array([["a"]]), np.eye(1), backend="cpu")
    ... except pyblasgpu.errors.DtypeError as error:
    ...     print(isinstance(error, TypeError), isinstance(error, ValueError))
    True True
    """


class CallCancelled(PyblasgpuError, RuntimeError):
    """A call that was made with ``blocking=False`` was cancelled.

    Attributes
    ----------
    tiles : TileReport
        The parts of the output that are final.

    See Also
    --------
    pyblasgpu.Handle.cancel : Cancels a call.

    Examples
    --------
    >>> from pyblasgpu import errors
    >>> issubclass(errors.CallCancelled, RuntimeError)
    True
    """

    tiles: TileReport


@dataclass(frozen=True)
class TileReport:
    """State of the output after a call on host arrays, or on several devices, that did not end.

    The exception of such a call has it as attribute `tiles`, and shows it in a note.

    Parameters
    ----------
    routine : str
        Its name.
    final : tuple of (slice, slice)
        Rows and columns of the parts that hold the result.
    partial : tuple of (slice, slice)
        Rows and columns of the parts that may hold intermediate values; all others are untouched.
    total : int
        Number of parts.

    See Also
    --------
    CallCancelled : One of the errors that have it.

    Examples
    --------
    >>> from pyblasgpu import errors
    >>> report = errors.TileReport("gemm", ((slice(0, 8), slice(0, 8)),), (), 4)
    >>> len(report.final), report.total
    (1, 4)
    """

    routine: str
    final: tuple[tuple[slice, slice], ...]
    partial: tuple[tuple[slice, slice], ...]
    total: int

    def __str__(self) -> str:
        rest = self.total - len(self.final) - len(self.partial)
        return (
            f"{self.routine}: of {self.total} tiles of the output {len(self.final)} are final"
            f"{_listed(self.final)}, {len(self.partial)} hold intermediate values{_listed(self.partial)}, "
            f"{rest} are untouched; the attribute `tiles` of this exception lists them"
        )


def _listed(parts: tuple[tuple[slice, slice], ...]) -> str:
    """The first parts as indices."""
    shown = [f"[{rows.start}:{rows.stop}, {cols.start}:{cols.stop}]" for rows, cols in parts[:4]]
    return f" ({', '.join(shown)}{', ...' if len(parts) > 4 else ''})" if parts else ""


class ConfigError(PyblasgpuError, ValueError):
    """A Config breaks one of its kernel's rules.

    Parameters
    ----------
    rule : str
        Name of the rule, the key under which the tuner counts what it removed.
    inequality : str
        The rule itself, for example ``"BLK_M % (DIM_X * VEC_M) == 0"``.
    **values : object
        The values it was tried with.

    Attributes
    ----------
    rule, inequality : str
        The rule that was broken.
    values : dict
        The values that broke it.

    See Also
    --------
    require : Raises it.

    Examples
    --------
    >>> from pyblasgpu import errors
    >>> str(errors.ConfigError("tile", "BLK_M % 8 == 0", BLK_M=12))
    'tile: BLK_M % 8 == 0 does not hold for BLK_M=12'
    """

    def __init__(self, rule: str, inequality: str, **values: object):
        self.rule, self.inequality, self.values = rule, inequality, values
        shown = ", ".join(f"{name}={value}" for name, value in values.items())
        super().__init__(f"{rule}: {inequality} does not hold for {shown}")

    def __reduce__(self) -> tuple[object, ...]:
        return (_config_error, (self.rule, self.inequality, self.values))


def _config_error(rule: str, inequality: str, values: dict[str, object]) -> ConfigError:
    return ConfigError(rule, inequality, **values)


class ArchiveWarning(UserWarning):
    """An archive of kernels was set aside; they are compiled when they are needed.

    See Also
    --------
    DatabaseWarning : A file of tuned values was set aside.

    Examples
    --------
    >>> import warnings
    >>> from pyblasgpu import errors
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", errors.ArchiveWarning)
    ...     warnings.warn("kernels.zip: set aside", errors.ArchiveWarning)
    """


class DatabaseWarning(UserWarning):
    """A tuning file was set aside; the next level of the database serves.

    See Also
    --------
    ArchiveWarning : An archive of kernels was set aside.

    Examples
    --------
    >>> import warnings
    >>> from pyblasgpu import errors
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", errors.DatabaseWarning)
    ...     warnings.warn("h200.json: set aside", errors.DatabaseWarning)
    """


def lacking(missing: ImportError, *extras: str) -> str:
    """Return a sentence that names a missing module and how to install it.

    Parameters
    ----------
    missing : ImportError
        Names the module.
    *extras : str
        The extras of this package that install it.

    Returns
    -------
    str
        A sentence for an error.

    See Also
    --------
    BackendUnavailable : An error that says so.

    Examples
    --------
    >>> from pyblasgpu import errors
    >>> errors.lacking(ImportError("No module named 'dask'"), "dask")
    "No module named 'dask'; pip install 'pyblasgpu[dask]'"
    """
    ways = " or ".join(f"pip install 'pyblasgpu[{extra}]'" for extra in extras)
    return f"{missing}; {ways}"


def require(condition: bool, rule: str, inequality: str, **values: object) -> None:
    """Raise `ConfigError` unless a condition holds.

    Parameters
    ----------
    condition : bool
        Whether the rule is kept.
    rule, inequality : str
        The rule, see `ConfigError`.
    **values : object
        The values it was tried with.

    Raises
    ------
    ConfigError
        When the condition does not hold.

    See Also
    --------
    ConfigError : The error.

    Examples
    --------
    >>> from pyblasgpu import errors
    >>> errors.require(16 % 8 == 0, "tile", "BLK_M % 8 == 0", BLK_M=16)
    """
    if not condition:
        raise ConfigError(rule, inequality, **values)
