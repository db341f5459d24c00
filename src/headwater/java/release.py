"""A pinned release of a Java program, and how it gets from Maven's repositories onto this machine.

Maven resolves the release with its runtime dependencies, and the jars are copied into a cache
directory outside any repository, which all processes and all checkouts share:

    ~/.cache/headwater/<release>/    (HEADWATER_CACHE or XDG_CACHE_HOME move it)
        pom.xml       what Maven was asked for
        log4j2.xml    what the processes log, and where to
        libs/*.jar
        classes.jsa   the jars' classes as Java can map them (see `class_archive`)

The directory is filled under another name and renamed when complete, under a file lock. So it is
either whole or absent, however many processes ask for it at once and wherever one is interrupted.
A pom.xml or log4j2.xml that is not the one this module would write marks it as out of date.
"""

import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headwater.java.class_archive import make_class_archive
from headwater.java.installation import (
    CLASS_ARCHIVE,
    LOGGING_CONFIGURATION,
    LOGGING_FILE,
    Installation,
    ProgramUnavailableError,
    cache_root,
    find_java,
)

DEPENDENCY_PLUGIN_VERSION = "3.8.1"


@dataclass(frozen=True)
class Release:
    """What to ask Maven for, and what it needs to run."""

    #: As in a sentence: "Apache Kafka 4.1.2".
    program: str
    version: str
    #: The directory in the cache.
    directory_name: str
    #: The name of the project that depends on the artifacts.
    project_name: str
    #: Group, artifact and version of each.
    artifacts: tuple[tuple[str, str, str], ...]
    java_version_min: int
    #: How much Maven fetches where it has nothing yet.
    download_size_mb: int
    #: How the names of those jars begin whose classes are kept for quick starts; none for jars that
    #: another program loads.
    archived_jars: tuple[str, ...] = ()
    #: Artifacts whose version is this one, whatever the others ask for.
    managed_artifacts: tuple[tuple[str, str, str], ...] = ()

    def find(self) -> Installation | None:
        """The release if it is in the cache already; nothing is fetched."""
        java = find_java(self.program, self.java_version_min)
        return self._installation(java) if self._is_current() else None

    def resolve(self, report: Callable[[str], None] = lambda line: None) -> Installation:
        """The release, fetched through Maven if it is not in the cache yet."""
        java = find_java(self.program, self.java_version_min)
        directory = self._directory
        archive = directory / CLASS_ARCHIVE
        if not self._is_current() or self._lacks(archive):
            directory.parent.mkdir(parents=True, exist_ok=True)
            with locked(directory.with_name(f"{directory.name}.lock")):
                # Another process may have done the work while this one waited for the lock.
                if not self._is_current():
                    self._fetch(report)
                if self._lacks(archive):
                    report("preparing its classes for quick starts")
                    make_class_archive(java, directory / "libs", self.archived_jars, archive)
        return self._installation(java)

    def _lacks(self, archive: Path) -> bool:
        return bool(self.archived_jars) and not archive.exists()

    @property
    def _directory(self) -> Path:
        return cache_root() / self.directory_name

    def _installation(self, java: str) -> Installation:
        return Installation(self._directory, java, str(self._directory / "libs" / "*"))

    def _is_current(self) -> bool:
        try:
            return (self._directory / "pom.xml").read_text() == self._pom() and (
                self._directory / LOGGING_FILE
            ).read_text() == LOGGING_CONFIGURATION
        except FileNotFoundError:
            return False

    def _fetch(self, report: Callable[[str], None]) -> None:
        directory = self._directory
        name = f"{self.program} {self.version}"
        maven = shutil.which("mvn")
        if maven is None:
            raise ProgramUnavailableError(
                f"{name} is not in {directory.parent} yet, "
                "and Maven's mvn, which fetches it, is not on the PATH."
            )
        report(f"fetching {name} with Maven, about {self.download_size_mb} MB")
        prefix = f"{directory.name}.partial-"
        # The lock is ours, so what is there under this name was left by a process that was killed.
        for leftover in directory.parent.glob(f"{prefix}*"):
            shutil.rmtree(leftover)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=prefix) as scratch:
            fresh = Path(scratch) / "fresh"
            fresh.mkdir()
            (fresh / "pom.xml").write_text(self._pom())
            (fresh / LOGGING_FILE).write_text(LOGGING_CONFIGURATION)
            self._run_maven(maven, fresh)
            if directory.exists():
                directory.rename(Path(scratch) / "stale")
            fresh.rename(directory)
        report(f"{len(list((directory / 'libs').iterdir()))} jars in {directory}")

    def _run_maven(self, maven: str, directory: Path) -> None:
        command = [maven, "--batch-mode", "--quiet", "--file", str(directory / "pom.xml")]
        # No registry is named: Maven's own settings say where artifacts come from.
        goal = f"org.apache.maven.plugins:maven-dependency-plugin:{DEPENDENCY_PLUGIN_VERSION}"
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={directory / 'libs'}"]
        result = subprocess.run(
            [*command, f"{goal}:copy-dependencies", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            errors = [line for line in result.stdout.splitlines() if "ERROR" in line]
            raise ProgramUnavailableError(
                f"Maven could not fetch {self.program} {self.version}: "
                + (errors[0] if errors else f"it ended with exit code {result.returncode}.")
            )

    def _pom(self) -> str:
        managed = _dependencies(self.managed_artifacts)
        if managed:
            managed = f"  <dependencyManagement><dependencies>\n{managed}  </dependencies>" + (
                "</dependencyManagement>\n"
            )
        return (
            "<project>\n"
            "  <modelVersion>4.0.0</modelVersion>\n"
            "  <groupId>headwater</groupId>\n"
            f"  <artifactId>{self.project_name}</artifactId>\n"
            "  <version>1</version>\n"
            "  <packaging>pom</packaging>\n"
            f"{managed}"
            f"  <dependencies>\n{_dependencies(self.artifacts)}  </dependencies>\n"
            "</project>\n"
        )


def _dependencies(artifacts: tuple[tuple[str, str, str], ...]) -> str:
    return "".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>\n"
        for group, artifact, version in artifacts
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process at a time, the lock being a file that stays."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
