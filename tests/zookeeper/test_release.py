"""Where the program comes from, with a stand-in for pyspark; none of it is fetched."""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.java.installation import LOGGING_CONFIGURATION
from headwater.zookeeper.release import RELEASE, find_zookeeper, resolve_zookeeper
from tests.support.brokers.zookeeper import require_zookeeper

SPARK_JARS = (
    "breeze_2.13-2.1.0.jar",
    "log4j-api-2.24.3.jar",
    "log4j-slf4j2-impl-2.24.3.jar",
    "metrics-core-4.2.37.jar",
    "netty-common-4.2.7.Final.jar",
    "slf4j-api-2.0.17.jar",
    "zookeeper-3.9.4.jar",
    "zookeeper-jute-3.9.4.jar",
)

InstallPyspark = Callable[..., Path]


@pytest.fixture
def install_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallPyspark:
    """Makes a package of that name with these jars; the cache is empty and Java is there."""
    packages = tmp_path / "packages"
    monkeypatch.syspath_prepend(str(packages))
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "java").write_text("""#!/bin/sh\necho 'openjdk version "17.0.15"' >&2\n""")
    (programs / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def install(*names: str) -> Path:
        jars = packages / "pyspark" / "jars"
        jars.mkdir(parents=True)
        (packages / "pyspark" / "__init__.py").touch()
        for name in names:
            (jars / name).touch()
        return jars

    return install


def test_pysparks_jars_are_used_where_there_are_any(install_pyspark: InstallPyspark) -> None:
    jars = install_pyspark(*SPARK_JARS)
    program = resolve_zookeeper()
    assert program == find_zookeeper()
    used = [Path(jar) for jar in program.class_path.split(os.pathsep)]
    assert used == [jars / name for name in SPARK_JARS[1:]]
    assert (program.directory / "log4j2.xml").read_text() == LOGGING_CONFIGURATION


@pytest.mark.parametrize("missing", ["zookeeper-", "metrics-", "slf4j-api-", "log4j-slf4j2-"])
def test_a_pyspark_without_what_is_needed_is_passed_over(
    install_pyspark: InstallPyspark, missing: str
) -> None:
    install_pyspark(*(name for name in SPARK_JARS if not name.startswith(missing)))
    # There is nothing in the cache to fall back to, and nothing is fetched by looking.
    assert find_zookeeper() is None


def test_without_pyspark_it_is_what_maven_has_fetched(
    install_pyspark: InstallPyspark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert find_zookeeper() is None


def test_the_release_has_a_server_in_it() -> None:
    program = require_zookeeper()
    names = {jar.name for jar in program.jars}
    if names:
        assert f"zookeeper-{RELEASE.version}.jar" in names
    else:
        assert "pyspark" in program.class_path
