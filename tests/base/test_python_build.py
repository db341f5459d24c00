"""What builds of Python tell of themselves; the values are those of real ones."""

import platform

import pytest

from headwater.base.python_build import Optimisation, python_build

_GCC = "-fprofile-use -fprofile-correction"
_CLANG = "-fprofile-instr-use=code.profclangd"

PYENV = {"CONFIG_ARGS": "'--prefix=/versions/3.11.7' '--enable-shared'", "PGO_PROF_USE_FLAG": _GCC}
PYENV_OPTIMISED = {
    "CONFIG_ARGS": "'--enable-shared' '--enable-optimizations' '--with-lto'",
    "PGO_PROF_USE_FLAG": _GCC,
}
UV = {
    "CONFIG_ARGS": "'--enable-optimizations' '--enable-bolt' '--with-lto' 'CC=clang'",
    "PGO_PROF_USE_FLAG": _CLANG,
    "PY_CFLAGS_NODIST": f"-flto=thin {_CLANG}",
}
DEBIAN = {"CONFIG_ARGS": "'--enable-shared' '--prefix=/usr'", "PGO_PROF_USE_FLAG": ""}
BY_HAND = {
    "CONFIG_ARGS": "'--prefix=/opt'",
    "PGO_PROF_USE_FLAG": _GCC,
    "PY_CFLAGS_NODIST": f"-std=c11 {_GCC}",
}
DEBUG = {"CONFIG_ARGS": "'--with-pydebug'", "PGO_PROF_USE_FLAG": _GCC, "Py_DEBUG": 1}
FREE_THREADED = {**UV, "Py_GIL_DISABLED": 1}


@pytest.mark.parametrize(
    ("variables", "optimisation", "words"),
    [
        (PYENV, Optimisation.PLAIN, " (no PGO)"),
        (PYENV_OPTIMISED, Optimisation.PROFILED, " (PGO, LTO)"),
        (UV, Optimisation.PROFILED, " (PGO, LTO)"),
        (FREE_THREADED, Optimisation.PROFILED, " (PGO, LTO, free-threaded)"),
        (BY_HAND, Optimisation.PROFILED, " (PGO)"),
        (DEBUG, Optimisation.DEBUG, " (debug build)"),
        # These do not tell, and nobody is warned of what is not known.
        (DEBIAN, Optimisation.UNTOLD, ""),
        ({}, Optimisation.UNTOLD, ""),
    ],
)
def test_a_build_is_named_with_how_it_was_optimised(
    variables: dict[str, object], optimisation: Optimisation, words: str
) -> None:
    build = python_build(variables.get)
    assert build.optimisation is optimisation
    assert build.is_slow == (optimisation in (Optimisation.PLAIN, Optimisation.DEBUG))
    name = f"{platform.python_implementation()} {platform.python_version()}"
    assert str(build) == name + words


def test_the_python_that_runs_this_is_named() -> None:
    assert str(python_build()).startswith(platform.python_implementation())
