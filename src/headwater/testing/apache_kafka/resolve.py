"""Where Apache Kafka lives on this machine, and how it gets there.

One release is pinned. Maven resolves it with its runtime dependencies, and the jars are copied into
a cache directory outside any repository, which all test processes and all checkouts share:

    ~/.cache/headwater/apache-kafka-<version>/    (HEADWATER_CACHE or XDG_CACHE_HOME move it)
        pom.xml       what Maven was asked for
        log4j2.xml    what the processes log, and where to
        libs/*.jar
        classes.jsa   the jars' classes as Java can map them (see `class_archive`)

The directory is filled under another name and renamed when complete, under a file lock. So it is
either whole or absent, however many processes ask for it at once and wherever one is interrupted.
A pom.xml or log4j2.xml that is not the one this module would write marks it as out of date.
"""

import fcntl
import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headwater.testing.apache_kafka.class_archive import class_archive_flags, make_class_archive

KAFKA_VERSION = "4.1.2"
# Kafka's artifacts log through SLF4J 1.7 and leave the choice behind it open; its own distribution
# chooses Log4j 2, and so does this one.
LOG4J_VERSION = "2.25.3"
DEPENDENCY_PLUGIN_VERSION = "3.8.1"
# What the brokers of this release are compiled for.
JAVA_VERSION_MIN = 17
CLASS_ARCHIVE = "classes.jsa"

ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
)

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


class ApacheKafkaUnavailable(Exception):
    """Apache Kafka cannot be run here; the message says in a sentence what is missing."""


@dataclass(frozen=True)
class Installation:
    """The pinned Apache Kafka on this machine, and the Java that runs it."""

    directory: Path
    java: str

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
        # Java reads locale and encoding from the environment, tests must not: what Kafka prints is
        # parsed, so it is UTF-8 with English numbers everywhere.
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
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.xml'}",
            *jvm_flags,
            "-cp",
            str(self.directory / "libs" / "*"),
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


def find_java() -> str:
    """The path of a Java that can run the pinned release: JAVA_HOME's, else the PATH's."""
    java_home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{java_home}/bin") if java_home else None
    java = java or shutil.which("java")
    if java is None:
        raise ApacheKafkaUnavailable(
            f"Apache Kafka needs Java {JAVA_VERSION_MIN} or newer, and there is no java "
            "in JAVA_HOME or on the PATH."
        )
    version = _java_version(java)
    if version < JAVA_VERSION_MIN:
        raise ApacheKafkaUnavailable(
            f"Apache Kafka needs Java {JAVA_VERSION_MIN} or newer, and {java} is Java {version}."
        )
    return java


@functools.cache
def _java_version(java: str) -> int:
    report = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    # "17.0.15", "21", "21-ea", and before Java 9 "1.8.0_412".
    match = re.search(r'version "(?:1\.)?(\d+)', report.stderr)
    if match is None:
        raise ApacheKafkaUnavailable(f"{java} does not say which version of Java it is.")
    return int(match[1])


def find_installation() -> Installation | None:
    """The pinned release if it is in the cache already; nothing is fetched."""
    java = find_java()
    directory = _installation_directory()
    return Installation(directory, java) if _is_current(directory) else None


def resolve(report: Callable[[str], None] = lambda line: None) -> Installation:
    """The pinned release, fetched through Maven if it is not in the cache yet."""
    java = find_java()
    directory = _installation_directory()
    archive = directory / CLASS_ARCHIVE
    if not _is_current(directory) or not archive.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _locked(directory.with_name(f"{directory.name}.lock")):
            # Another process may have done the work while this one waited for the lock.
            if not _is_current(directory):
                _fetch(directory, report)
            if not archive.exists():
                report("preparing its classes for quick starts")
                make_class_archive(java, directory / "libs", archive)
    return Installation(directory, java)


def _installation_directory() -> Path:
    return cache_root() / f"apache-kafka-{KAFKA_VERSION}"


def _is_current(directory: Path) -> bool:
    try:
        return (directory / "pom.xml").read_text() == _pom() and (
            directory / "log4j2.xml"
        ).read_text() == LOGGING_CONFIGURATION
    except FileNotFoundError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(directory: Path, report: Callable[[str], None]) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ApacheKafkaUnavailable(
            f"Apache Kafka {KAFKA_VERSION} is not in {directory.parent} yet, "
            "and Maven's mvn, which fetches it, is not on the PATH."
        )
    report(f"fetching Apache Kafka {KAFKA_VERSION} with Maven, about 55 MB")
    prefix = f"{directory.name}.partial-"
    # The lock is ours, so what is there under this name was left by a process that was killed.
    for leftover in directory.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=prefix) as scratch:
        fresh = Path(scratch) / "fresh"
        fresh.mkdir()
        (fresh / "pom.xml").write_text(_pom())
        (fresh / "log4j2.xml").write_text(LOGGING_CONFIGURATION)
        command = [maven, "--batch-mode", "--quiet", "--file", str(fresh / "pom.xml")]
        # No registry is named: Maven's own settings say where artifacts come from.
        goal = f"org.apache.maven.plugins:maven-dependency-plugin:{DEPENDENCY_PLUGIN_VERSION}"
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={fresh / 'libs'}"]
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
            raise ApacheKafkaUnavailable(
                f"Maven could not fetch Apache Kafka {KAFKA_VERSION}: "
                + (errors[0] if errors else f"it ended with exit code {result.returncode}.")
            )
        if directory.exists():
            directory.rename(Path(scratch) / "stale")
        fresh.rename(directory)
    report(f"{len(list((directory / 'libs').iterdir()))} jars in {directory}")


def _pom() -> str:
    dependencies = "".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>\n"
        for group, artifact, version in ARTIFACTS
    )
    return (
        "<project>\n"
        "  <modelVersion>4.0.0</modelVersion>\n"
        "  <groupId>headwater</groupId>\n"
        "  <artifactId>apache-kafka-to-compare-with</artifactId>\n"
        "  <version>1</version>\n"
        "  <packaging>pom</packaging>\n"
        f"  <dependencies>\n{dependencies}  </dependencies>\n"
        "</project>\n"
    )
