"""A program in Java on this machine: the Java that runs it, and the command line that does."""

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from headwater.java.class_archive import class_archive_flags

CLASS_ARCHIVE = "classes.jsa"
LOGGING_FILE = "log4j2.xml"

#: Everything goes to standard error; `-Dheadwater.log.level` says how much.
LOGGING_CONFIGURATION = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR">
  <Appenders>
    <Console name="stderr" target="SYSTEM_ERR">
      <PatternLayout pattern="[%d] %p %m (%c)%n"/>
    </Console>
  </Appenders>
  <Loggers>
    <Root level="${sys:headwater.log.level:-WARN}"><AppenderRef ref="stderr"/></Root>
  </Loggers>
</Configuration>
"""


class ProgramUnavailableError(Exception):
    """A program cannot be run here; the message says in a sentence what is missing."""


@dataclass(frozen=True)
class Installation:
    """A program's jars, and the Java that runs them.

    `directory` holds what was made for it: how it logs, and perhaps an archive of its classes.
    """

    directory: Path
    java: str
    class_path: str

    @property
    def jars(self) -> list[Path]:
        return sorted((self.directory / "libs").glob("*.jar"))

    @property
    def quick_start_flags(self) -> tuple[str, ...]:
        """For a process that lives for seconds, in which the optimising compiler only costs."""
        archive = class_archive_flags(self.directory / CLASS_ARCHIVE)
        return ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *archive)

    def command(self, main_class: str, *args: str, jvm_flags: tuple[str, ...] = ()) -> list[str]:
        """The command line that runs `main_class` with every jar on the class path."""
        # Java reads locale and encoding from the environment, and callers must not depend on it:
        # what is printed is parsed, so it is UTF-8 with English numbers everywhere.
        encodings = (
            f"-D{name}=UTF-8"
            for prefix in ("", "sun.")
            for name in (f"{prefix}stdout.encoding", f"{prefix}stderr.encoding")
        )
        return [
            self.java,
            "-Djava.awt.headless=true",
            "-Dfile.encoding=UTF-8",
            *encodings,
            "-Duser.language=en",
            f"-Dlog4j2.configurationFile={self.directory / LOGGING_FILE}",
            *jvm_flags,
            "-cp",
            self.class_path,
            main_class,
            *args,
        ]


def cache_root() -> Path:
    """Where Headwater keeps what can be fetched again."""
    if chosen := os.environ.get("HEADWATER_CACHE"):
        return Path(chosen)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "headwater"
    return Path.home() / ".cache" / "headwater"


def find_java(program: str, version_min: int) -> str:
    """The path of a Java that can run the program: JAVA_HOME's, else the PATH's."""
    java_home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{java_home}/bin") if java_home else None
    java = java or shutil.which("java")
    if java is None:
        raise ProgramUnavailableError(
            f"{program} needs Java {version_min} or newer, and there is no java "
            "in JAVA_HOME or on the PATH."
        )
    version = java_version(java)
    if version < version_min:
        raise ProgramUnavailableError(
            f"{program} needs Java {version_min} or newer, and {java} is Java {version}."
        )
    return java


@functools.cache
def java_version(java: str) -> int:
    """17 for Java 17; `ProgramUnavailableError` where this is no Java that runs."""
    report = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    # "17.0.15", "21", "21-ea", and before Java 9 "1.8.0_412".
    match = re.search(r'version "(?:1\.)?(\d+)', report.stderr)
    if match is None:
        raise ProgramUnavailableError(f"{java} does not say which version of Java it is.")
    return int(match[1])
