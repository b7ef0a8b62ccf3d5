"""The errors that pyblasgpu raises beside ValueError, TypeError and numpy's LinAlgError."""

from __future__ import annotations

__all__ = [
    "ArchiveWarning",
    "BackendUnavailable",
    "ConfigError",
    "DatabaseWarning",
    "OverlapError",
    "PyblasgpuError",
    "lacking",
    "require",
]


class PyblasgpuError(Exception):
    """Base of the errors that are pyblasgpu's own."""


class BackendUnavailable(PyblasgpuError, RuntimeError):
    """The backend of the call cannot run here; the message says what is missing."""


class OverlapError(PyblasgpuError, ValueError):
    """An output shares memory with an input where no in-place case is documented."""


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
    """What is missing, and how it is installed: by one of the `extras` of this package."""
    ways = " or ".join(f"pip install 'pyblasgpu[{extra}]'" for extra in extras)
    return f"{missing}; {ways}"


def require(condition: bool, rule: str, inequality: str, **values: object) -> None:
    """Raise `ConfigError` unless `condition` holds."""
    if not condition:
        raise ConfigError(rule, inequality, **values)
