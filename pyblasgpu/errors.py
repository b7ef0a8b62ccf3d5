"""The errors that pyblasgpu raises beside ValueError, TypeError and numpy's LinAlgError."""

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
    """Base of the errors that are pyblasgpu's own."""


class BackendUnavailable(PyblasgpuError, RuntimeError):
    """The backend of the call cannot run here; the message says what is missing."""


class OverlapError(PyblasgpuError, ValueError):
    """An output shares memory with an input where no in-place case is documented."""


class DtypeError(PyblasgpuError, TypeError, ValueError):
    """An array's dtype is none that is computed; SciPy raises TypeError or ValueError, by the function."""


class CallCancelled(PyblasgpuError, RuntimeError):
    """A call that was made with ``blocking=False`` was cancelled; its attribute `tiles` is a `TileReport`."""

    tiles: TileReport


@dataclass(frozen=True)
class TileReport:
    """The state of the output after a call on host arrays, or on several cards, that failed.

    The exception of such a call has it as attribute `tiles`, and tells it in a note.

    Parameters
    ----------
    routine : str
        Its name.
    final : tuple of (slice, slice)
        Rows and columns of the parts that hold the result.
    torn : tuple of (slice, slice)
        Rows and columns of the parts that may hold intermediate values; all others are untouched.
    total : int
        How many parts there are.
    """

    routine: str
    final: tuple[tuple[slice, slice], ...]
    torn: tuple[tuple[slice, slice], ...]
    total: int

    def __str__(self) -> str:
        rest = self.total - len(self.final) - len(self.torn)
        return (
            f"{self.routine}: of {self.total} tiles of the output {len(self.final)} are final"
            f"{_listed(self.final)}, {len(self.torn)} hold intermediate values{_listed(self.torn)}, "
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
        As given.
    values : dict
        As given.
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
    """An archive of kernels was set aside; they are compiled when they are needed."""


class DatabaseWarning(UserWarning):
    """A tuning file was set aside; the next level of the database serves."""


def lacking(missing: ImportError, *extras: str) -> str:
    """Return a sentence that names a missing module and how to install it.

    Parameters
    ----------
    missing : ImportError
        Names the module.
    *extras : str
        The extras of this package that bring it.

    Returns
    -------
    str
        A sentence for an error.
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
        As `ConfigError` takes them.
    **values : object
        The values it was tried with.
    """
    if not condition:
        raise ConfigError(rule, inequality, **values)
