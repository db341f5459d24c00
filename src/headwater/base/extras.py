"""What to install for those parts of Headwater that need more than the rest, in a sentence.

Headwater is not on an index of packages: it is installed from a clone of the repository or from a
wheel, and so are its extras.
"""

from __future__ import annotations

from headwater import __version__
from headwater.base.errors import InvalidConfigError


class MissingPackageError(InvalidConfigError, ImportError):
    """A package is not installed that this part of Headwater needs."""


def missing_package(who: str, package: str, extra: str) -> MissingPackageError:
    """The error whose sentence says who needs the package, and how to get it."""
    return MissingPackageError(f"{who} needs the Python package {package}: {how_to_install(extra)}")


def how_to_install(extra: str) -> str:
    """The end of a sentence: what to run in a clone, and what with a wheel."""
    return (
        f"run `pip install '.[{extra}]'` in a clone of Headwater, or "
        f"`pip install './headwater-{__version__}-py3-none-any.whl[{extra}]'` with its wheel."
    )
