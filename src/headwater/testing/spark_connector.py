"""Spark's own connector for Kafka, to compare with and to prove ours against, fetched by Maven.

Its versions are pinned, and are not those of the Spark that it runs in, because Maven Central does
not have them: of Spark 4 it has the connector up to 4.2.0, and the library for Kafka's delegation
tokens, which the connector loads but which has nothing to do without such tokens, as 4.0.0 alone.
Whoever tells of a comparison names these versions: `description` has them.

`python -m headwater.testing.spark_connector` fetches it, if need be, and prints its jars; with a
session it goes by the setting `spark.jars`, which takes effect when Spark starts.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from headwater.java.installation import Installation, ProgramUnavailableError
from headwater.java.release import Release

#: Of Spark 4, for which it is the only one.
SCALA_VERSION: Final = "2.13"
CONNECTOR_VERSION: Final = "4.2.0"
TOKEN_PROVIDER_VERSION: Final = "4.0.0"

_VERSION_IN_NAME: Final = re.compile(r"-\d+\.[\w.+-]*\.jar$")


RELEASE: Final = Release(
    program="Spark's connector for Kafka",
    version=CONNECTOR_VERSION,
    directory_name=f"spark-sql-kafka-{CONNECTOR_VERSION}",
    project_name="spark-connector-to-compare-with",
    artifacts=(("org.apache.spark", f"spark-sql-kafka-0-10_{SCALA_VERSION}", CONNECTOR_VERSION),),
    managed_artifacts=(
        (
            "org.apache.spark",
            f"spark-token-provider-kafka-0-10_{SCALA_VERSION}",
            TOKEN_PROVIDER_VERSION,
        ),
    ),
    java_version_min=17,
    download_size_mb=75,
)


def description() -> str:
    """What is compared with, for reports."""
    return (
        f"Spark's connector for Kafka {CONNECTOR_VERSION} "
        f"with its token provider {TOKEN_PROVIDER_VERSION}"
    )


def find_connector_jars() -> list[Path] | None:
    """The jars that Spark lacks, if they are in the cache already; nothing is fetched."""
    found = RELEASE.find()
    return None if found is None else connector_jars(found)


def resolve_connector_jars(report: Callable[[str], None] = lambda line: None) -> list[Path]:
    """The jars that Spark lacks, fetched through Maven if they are not in the cache yet."""
    return connector_jars(RELEASE.resolve(report))


def connector_jars(installation: Installation) -> list[Path]:
    """Those jars of `installation` that are not part of the installed Spark."""
    package = importlib.util.find_spec("pyspark")
    home = Path((package.origin if package else None) or ".").parent
    return missing_jars(installation.jars, (home / "jars").glob("*.jar"))


def missing_jars(wanted: Iterable[Path], present: Iterable[Path]) -> list[Path]:
    """Those of `wanted` that are not in `present` in any version."""
    names = {artifact_name(jar) for jar in present}
    return [jar for jar in wanted if artifact_name(jar) not in names]


def artifact_name(jar: Path) -> str:
    """The name of a jar without its version."""
    return _VERSION_IN_NAME.sub("", jar.name)


def main() -> None:
    try:
        jars = resolve_connector_jars(lambda line: print(line, file=sys.stderr, flush=True))
    except ProgramUnavailableError as unavailable:
        sys.exit(str(unavailable))
    for jar in jars:
        print(jar)


if __name__ == "__main__":
    main()
