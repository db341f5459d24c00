"""How the Python that runs this was built, which matters to speed more than its version does.

An interpreter that was compiled with the profile of a test run (PGO) takes a quarter to a third
less time for the same work. Those of distributions and of uv are; one that was compiled on the spot
is not, unless somebody asked for it, as with pyenv.
"""

from __future__ import annotations

import platform
import sysconfig
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

#: How GCC, Clang and Intel's compiler are told to use a profile.
_PROFILE_FLAGS: Final = ("-fprofile-use", "-fprofile-instr-use", "-prof-use")


class Optimisation(Enum):
    """What a build says of itself."""

    PROFILED = "PGO"
    PLAIN = "no PGO"
    DEBUG = "debug build"
    #: Debian's hide with which flags they were made, and are profiled.
    UNTOLD = ""


class PythonBuild(NamedTuple):
    #: The implementation and its version.
    name: str
    optimisation: Optimisation
    #: Other words about it, for those who compare figures.
    features: tuple[str, ...] = ()

    @property
    def is_slow(self) -> bool:
        """Whether the same version could be had faster."""
        return self.optimisation in (Optimisation.PLAIN, Optimisation.DEBUG)

    def __str__(self) -> str:
        words = [word for word in (self.optimisation.value, *self.features) if word]
        return f"{self.name} ({', '.join(words)})" if words else self.name


def python_build(variable: Callable[[str], object] = sysconfig.get_config_var) -> PythonBuild:
    """The Python that runs this; `variable` tells what it was configured with."""
    name = f"{platform.python_implementation()} {platform.python_version()}"
    arguments = str(variable("CONFIG_ARGS") or "")
    features = []
    if "--with-lto" in arguments and "--with-lto=no" not in arguments:
        features.append("LTO")
    if variable("Py_GIL_DISABLED"):
        features.append("free-threaded")
    return PythonBuild(name, _optimisation(arguments, variable), tuple(features))


def _optimisation(arguments: str, variable: Callable[[str], object]) -> Optimisation:
    flags = str(variable("PY_CFLAGS_NODIST") or "")
    if variable("Py_DEBUG"):
        return Optimisation.DEBUG
    if "--enable-optimizations" in arguments or any(flag in flags for flag in _PROFILE_FLAGS):
        return Optimisation.PROFILED
    # The flags that a profile would be used with are there, used or not, unless somebody has
    # taken them out; and without arguments it was not built by CPython's own means.
    if arguments and variable("PGO_PROF_USE_FLAG"):
        return Optimisation.PLAIN
    return Optimisation.UNTOLD
