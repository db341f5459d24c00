"""Delta and Iceberg: whether there are jars of them for this Spark, found out before it starts.

Both are built for one minor release of Spark each, so the releases that fit are a table here. Their
jars may be on the class path already, or be named in the pipeline's `spark` settings; otherwise
Spark fetches the one that fits when its session starts. Where there is none the pipeline is refused
with one sentence, before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import SparkSession

from headwater.java.installation import cache_root
from headwater.pipeline.compiled.compile_error import error_at
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.sink import SinkSpec

#: All of Spark 4 is built with this Scala.
SCALA: Final = "2.13"
_PACKAGES: Final = "spark.jars.packages"
_IVY_SETTINGS: Final = "spark.jars.ivySettings"
_IVY_HOME: Final = "spark.jars.ivy"
#: Where Spark 4 keeps what it has fetched, unless it is told otherwise.
_IVY_HOME_DEFAULT: Final = "~/.ivy2.5.2"


@dataclass(frozen=True, slots=True)
class TableFormat:
    """A format of tables: its artifact, a class of it, Spark's settings."""

    title: str
    group: str
    artifact: str
    #: By minor release of Spark, the release that is built for it.
    releases: Mapping[str, str]
    probe: str
    configs: Mapping[str, str]

    def module(self, spark_version: str) -> str:
        """`group:artifact` for a Spark."""
        return f"{self.group}:{self.artifact.format(spark=_minor(spark_version), scala=SCALA)}"

    def release(self, spark_version: str) -> str | None:
        """The release for a Spark, or None if there is none."""
        return self.releases.get(_minor(spark_version))


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


FORMATS: Final[Mapping[str, TableFormat]] = {
    "delta": TableFormat(
        "Delta Lake",
        "io.delta",
        "delta-spark_{spark}_{scala}",
        {"4.0": "4.4.0", "4.1": "4.4.0", "4.2": "4.4.0"},
        "io.delta.sql.DeltaSparkSessionExtension",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    "iceberg": TableFormat(
        "Iceberg",
        "org.apache.iceberg",
        "iceberg-spark-runtime-{spark}_{scala}",
        {"4.0": "1.11.0", "4.1": "1.12.0"},
        "org.apache.iceberg.spark.SparkCatalog",
        {
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            )
        },
    ),
}


def session_configs(
    spec: PipelineSpec,
    *,
    spark_version: str = pyspark.__version__,
    jars: Path = Path(pyspark.__file__).parent / "jars",
    cache: Path | None = None,
) -> dict[str, str]:
    """What the session of this pipeline needs for its Delta and Iceberg sinks.

    It raises `PipelineCompileError` for a sink whose format has no release for this Spark.
    """
    configs: dict[str, str] = {}
    for kind in _sinks_by_format(spec):
        for name, value in FORMATS[kind].configs.items():
            configs[name] = f"{configs[name]},{value}" if name in configs else value
    packages = check_releases(spec, spark_version=spark_version, jars=jars)
    if packages:
        given = spec.spark.get(_PACKAGES)
        configs[_PACKAGES] = ",".join([given, *packages] if given else packages)
        if not spec.spark.keys() & {_IVY_SETTINGS, "spark.jars.repositories"}:
            configs[_IVY_SETTINGS] = str(_ivy_settings(cache or cache_root()))
    # What the file itself says goes first, but for packages, which are added to.
    return {
        name: value
        for name, value in configs.items()
        if name == _PACKAGES or name not in spec.spark
    }


def _ivy_settings(cache: Path) -> Path:
    """The file that has Spark fetch from Maven Central alone.

    It looks into Maven's local repository first otherwise, and gives up on what is half there.
    """
    file = cache / "ivy-maven-central.xml"
    cache.mkdir(parents=True, exist_ok=True)
    file.write_text(
        '<ivysettings><settings defaultResolver="central"/><resolvers>'
        '<ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>\n'
    )
    return file


def check_releases(
    spec: PipelineSpec,
    *,
    spark_version: str = pyspark.__version__,
    jars: Path = Path(pyspark.__file__).parent / "jars",
) -> list[str]:
    """The packages that have to be fetched for the pipeline's sinks.

    It raises `PipelineCompileError` for a sink whose format has no release for this Spark.
    """
    return [
        _package(spec, sink, FORMATS[kind], spark_version)
        for kind, sink in _sinks_by_format(spec).items()
        if not _is_given(spec, FORMATS[kind], jars)
    ]


def fetch_sentences(configs: Mapping[str, str]) -> list[str]:
    """What Spark will fetch when it starts with these settings, a sentence each."""
    home = Path(configs.get(_IVY_HOME, _IVY_HOME_DEFAULT)).expanduser()
    return [
        f"Fetching {wanted.title} ({package}) once, into {home}."
        for package in configs.get(_PACKAGES, "").split(",")
        for wanted in FORMATS.values()
        if package.startswith(f"{wanted.group}:") and not _was_fetched(package, home)
    ]


def _was_fetched(package: str, home: Path) -> bool:
    group, artifact, release = package.split(":")
    return (home / "jars" / f"{group}_{artifact}-{release}.jar").exists()


def _sinks_by_format(spec: PipelineSpec) -> dict[str, SinkSpec]:
    """The first sink of each format that needs jars."""
    found: dict[str, SinkSpec] = {}
    for sink in spec.sinks:
        if sink.kind in FORMATS:
            found.setdefault(sink.kind, sink)
    return found


def _is_given(spec: PipelineSpec, wanted: TableFormat, jars: Path) -> bool:
    """Whether somebody has seen to the jars already, for whichever Spark they are."""
    artifact = wanted.artifact.partition("{")[0].rstrip("_-")
    settings = (spec.spark.get(_PACKAGES, ""), spec.spark.get("spark.jars", ""))
    return any(artifact in text for text in settings) or any(jars.glob(f"{artifact}*.jar"))


def _package(spec: PipelineSpec, sink: SinkSpec, wanted: TableFormat, spark_version: str) -> str:
    module, release = wanted.module(spark_version), wanted.release(spark_version)
    if release is None:
        text = (
            f"sink '{sink.name}' needs {wanted.title}, of which no release for this Spark is known "
            f"({module}); write to a lake table instead (lake: PATH), or name jars that fit under "
            f"'spark' as {_PACKAGES}"
        )
        raise error_at(spec, sink.line, text)
    return f"{module}:{release}"


def check_class_path(spec: PipelineSpec, spark: SparkSession) -> None:
    """Refuse sinks whose classes the running session does not have."""
    for kind, sink in _sinks_by_format(spec).items():
        wanted = FORMATS[kind]
        if not _has_class(spark, wanted.probe):
            text = (
                f"sink '{sink.name}' needs {wanted.title}, whose jars are not on the class path of "
                f"this Spark {spark.version}: a release for it would be "
                f"{wanted.module(spark.version)}"
            )
            raise error_at(spec, sink.line, text)


def _has_class(spark: SparkSession, name: str) -> bool:
    java: Any = spark._jvm
    try:
        java.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    # What py4j raises for a ClassNotFoundException, whose package has no types to name it by.
    except Exception:
        return False
    return True
