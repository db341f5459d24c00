"""Where ZooKeeper's program comes from: the jars that pyspark brings, else Maven's.

Whoever has pyspark installed has ZooKeeper already, because Spark ships it with all that it needs.
Otherwise the pinned release is fetched once, into the cache that `headwater.java.release` keeps.
"""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

from headwater.java.installation import (
    LOGGING_CONFIGURATION,
    LOGGING_FILE,
    Installation,
    cache_root,
    find_java,
)
from headwater.java.release import Release

ZOOKEEPER_VERSION = "3.9.4"

# What a server loads, by how the names of the jars begin; pyspark has hundreds of others.
_JARS = (
    "audience-annotations-",
    "commons-io-",
    "log4j-api-",
    "log4j-core-",
    "log4j-slf4j2-impl-",
    "metrics-core-",
    "netty-",
    "slf4j-api-",
    "snappy-java-",
    "zookeeper-",
)
# Without these there is no server.
_ESSENTIAL_JARS = ("zookeeper-", "metrics-core-", "slf4j-api-", "log4j-slf4j2-impl-")

RELEASE = Release(
    program="ZooKeeper",
    version=ZOOKEEPER_VERSION,
    directory_name=f"zookeeper-{ZOOKEEPER_VERSION}",
    project_name="zookeeper-to-run",
    artifacts=(
        ("org.apache.zookeeper", "zookeeper", ZOOKEEPER_VERSION),
        # A server needs these two, and its artifact only says that somebody will provide them.
        ("io.dropwizard.metrics", "metrics-core", "4.1.12.1"),
        ("org.xerial.snappy", "snappy-java", "1.1.10.7"),
        ("org.apache.logging.log4j", "log4j-slf4j2-impl", "2.25.3"),
    ),
    java_version_min=11,
    download_size_mb=15,
    archived_jars=("commons-io-", "log4j-", "metrics-core-", "slf4j-", "zookeeper-"),
)


def find_zookeeper() -> Installation | None:
    """The program if it is on this machine already; nothing is fetched."""
    return _from_pyspark() or RELEASE.find()


def resolve_zookeeper(report: Callable[[str], None] = lambda line: None) -> Installation:
    """The program, fetched through Maven if need be."""
    return _from_pyspark() or RELEASE.resolve(report)


def _from_pyspark() -> Installation | None:
    java = find_java(RELEASE.program, RELEASE.java_version_min)
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        return None
    found = sorted((Path(package.origin).parent / "jars").glob("*.jar"))
    jars = [jar for jar in found if jar.name.startswith(_JARS)]
    if not all(any(jar.name.startswith(name) for jar in jars) for name in _ESSENTIAL_JARS):
        return None
    directory = cache_root() / "zookeeper-of-pyspark"
    directory.mkdir(parents=True, exist_ok=True)
    # Renamed into place, because another process may be reading it.
    fresh = directory / f"{LOGGING_FILE}.{os.getpid()}"
    fresh.write_text(LOGGING_CONFIGURATION)
    fresh.rename(directory / LOGGING_FILE)
    return Installation(directory, java, os.pathsep.join(map(str, jars)))
