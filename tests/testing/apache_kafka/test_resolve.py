"""Finding and fetching, with stand-ins for java and mvn; only the last test needs real ones."""

import os
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headwater.java.installation import cache_root, find_java
from headwater.testing.apache_kafka import (
    CLIENTS_VERSION,
    KAFKA_VERSION,
    TOOLS,
    ApacheKafkaUnavailableError,
    find_clients,
    find_installation,
    resolve,
    resolve_clients,
)
from headwater.testing.apache_kafka.resolve import RELEASE
from tests.support.kafka.node import require_apache_kafka

JAVA_17 = """echo 'openjdk version "17.0.15" 2025-04-15' >&2"""
JAVA_ARCHIVES = """
for argument in "$@"; do
  case "$argument" in -XX:SharedArchiveFile=*) echo archive > "${argument#*=}";; esac
done
"""
# Puts one jar where it is told to, and notes that it ran.
MAVEN = f"""\
for argument in "$@"; do
  case "$argument" in -DoutputDirectory=*) output="${{argument#*=}}";; esac
done
/bin/mkdir -p "$output"
/bin/cp "$HEADWATER_CACHE/../empty.jar" "$output/kafka_2.13-{KAFKA_VERSION}.jar"
echo "$@" >> "$HEADWATER_CACHE/maven-runs"
"""

Program = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Makes programs; the PATH holds these and no others, and the cache is empty."""
    programs = tmp_path / "bin"
    programs.mkdir()
    cache = tmp_path / "cache"
    cache.mkdir()
    with zipfile.ZipFile(tmp_path / "empty.jar", "w"):
        pass
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HEADWATER_CACHE", str(cache))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def make(name: str, script: str) -> Path:
        path = programs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return make


def maven_runs() -> list[str]:
    return (cache_root() / "maven-runs").read_text().splitlines()


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("HEADWATER_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_root() == Path("/home/somebody/.cache/headwater")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/somebody")
    assert cache_root() == Path("/var/cache/somebody/headwater")
    monkeypatch.setenv("HEADWATER_CACHE", "/data/cache")
    assert cache_root() == Path("/data/cache")


def test_no_java_is_said_in_a_sentence(program: Program) -> None:
    with pytest.raises(ApacheKafkaUnavailableError, match="no java in JAVA_HOME or on the PATH"):
        resolve()


@pytest.mark.parametrize("version", ["1.8.0_412", "11.0.2"])
def test_an_old_java_is_refused(program: Program, version: str) -> None:
    program("java", f"""echo 'java version "{version}"' >&2""")
    major = "8" if version.startswith("1.") else "11"
    with pytest.raises(ApacheKafkaUnavailableError, match=f"is Java {major}"):
        find_java(RELEASE.program, RELEASE.java_version_min)


def test_java_home_comes_before_the_path(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = program("java", JAVA_17)
    assert find_java(RELEASE.program, RELEASE.java_version_min) == str(on_path)
    at_home = program("home/bin/java", JAVA_17)
    monkeypatch.setenv("JAVA_HOME", str(at_home.parent.parent))
    assert find_java(RELEASE.program, RELEASE.java_version_min) == str(at_home)


def test_no_maven_is_said_in_a_sentence(program: Program) -> None:
    program("java", JAVA_17)
    with pytest.raises(ApacheKafkaUnavailableError, match="Maven's mvn, which fetches it, is not"):
        resolve()


def test_mavens_own_error_is_passed_on(program: Program) -> None:
    program("java", JAVA_17)
    program("mvn", "echo '[ERROR] there is no such artifact'; exit 1")
    with pytest.raises(ApacheKafkaUnavailableError, match="there is no such artifact"):
        resolve()
    assert find_installation() is None


def test_it_is_fetched_once(program: Program) -> None:
    program("java", JAVA_17)
    program("mvn", MAVEN)
    assert find_installation() is None
    progress: list[str] = []
    kafka = resolve(progress.append)
    assert [jar.name for jar in kafka.jars] == [f"kafka_2.13-{KAFKA_VERSION}.jar"]
    assert len(progress) == 3
    assert resolve(progress.append) == find_installation() == kafka
    assert len(progress) == 3
    assert len(maven_runs()) == 1


def test_the_java_client_is_another_release(program: Program) -> None:
    program("java", JAVA_17)
    program("mvn", MAVEN)
    kafka = resolve()
    assert find_clients() is None
    clients = resolve_clients()
    assert clients == find_clients() != kafka
    pom = (clients.directory / "pom.xml").read_text()
    assert f"<artifactId>kafka-clients</artifactId><version>{CLIENTS_VERSION}</version>" in pom
    assert find_installation() == kafka
    assert len(maven_runs()) == 2


def test_many_at_once_fetch_it_once(program: Program) -> None:
    program("java", JAVA_17)
    program("mvn", MAVEN)
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(lambda _: resolve(), range(4)))
    assert found == [found[0]] * 4
    assert len(maven_runs()) == 1


def test_what_an_interrupted_or_older_run_left_is_replaced(program: Program) -> None:
    program("java", JAVA_17)
    program("mvn", MAVEN)
    stale = cache_root() / f"apache-kafka-{KAFKA_VERSION}"
    (stale / "libs").mkdir(parents=True)
    (stale / "libs" / "old.jar").touch()
    (stale / "pom.xml").write_text("another release")
    leftover = cache_root() / f"{stale.name}.partial-abc"
    leftover.mkdir()
    (leftover / "half.jar").touch()
    kafka = resolve()
    assert [jar.name for jar in kafka.jars] == [f"kafka_2.13-{KAFKA_VERSION}.jar"]
    names = {path.name for path in cache_root().iterdir()}
    assert names == {stale.name, f"{stale.name}.lock", "maven-runs"}


def test_a_java_that_archives_classes_starts_from_them(program: Program) -> None:
    program("java", JAVA_17 + JAVA_ARCHIVES)
    program("mvn", MAVEN)
    kafka = resolve()
    archive = kafka.directory / "classes.jsa"
    assert archive.read_text() == "archive\n"
    assert f"-XX:SharedArchiveFile={archive}" in kafka.quick_start_flags


def test_a_java_that_does_not_is_asked_once(program: Program) -> None:
    java = program("java", JAVA_17)
    program("mvn", MAVEN)
    kafka = resolve()
    assert not any("SharedArchiveFile" in flag for flag in kafka.quick_start_flags)
    program(java.name, JAVA_17 + JAVA_ARCHIVES)
    assert resolve().quick_start_flags == kafka.quick_start_flags


def test_no_registry_is_named(program: Program) -> None:
    program("java", JAVA_17)
    program("mvn", MAVEN)
    pom = (resolve().directory / "pom.xml").read_text()
    assert "repositor" not in pom
    assert "://" not in pom + maven_runs()[0]


@pytest.mark.kafka
def test_every_tool_is_a_class_of_the_release() -> None:
    kafka = require_apache_kafka()
    names = {os.path.basename(jar) for jar in kafka.jars}
    assert {f"kafka_2.13-{KAFKA_VERSION}.jar", f"kafka-tools-{KAFKA_VERSION}.jar"} <= names
    classes = {
        entry
        for jar in kafka.jars
        if jar.name.startswith("kafka")
        for entry in zipfile.ZipFile(jar).namelist()
    }
    wanted = {name.replace(".", "/") + ".class" for name in ("kafka.Kafka", *TOOLS.values())}
    assert wanted - classes == set()
