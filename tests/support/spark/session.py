"""A real Spark for tests: one session a pytest process, small, quiet and on loopback only.

Spark's own connector for Kafka is part of it where it has been fetched, because it cannot be added
to a session later.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from pyspark.sql import SparkSession

from headwater.java.installation import ProgramUnavailableError
from headwater.pipeline.spark.errors import SparkUnavailableError
from headwater.pipeline.spark.session import start_session
from headwater.testing.spark_connector import find_connector_jars, resolve_connector_jars
from tests.support.requirements import skip_or_fail

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "UTC",
}


def small_session(
    master: str = "local[2]", configs: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    """A session with little memory; the running test is skipped, or failed, without Java."""
    jars = ",".join(map(str, connector_jars() or ()))
    try:
        return start_session(
            "headwater-tests",
            master=master,
            configs={**SETTINGS, **({"spark.jars": jars} if jars else {}), **configs},
        )
    except SparkUnavailableError as unavailable:
        skip_or_fail(str(unavailable))


def connector_jars() -> list[Path] | None:
    """Spark's own connector, if it is there; it is fetched only where nothing may be skipped."""
    try:
        must_run = os.environ.get("HEADWATER_REQUIRE_ALL") == "1"
        return resolve_connector_jars() if must_run else find_connector_jars()
    except ProgramUnavailableError:
        return None


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = small_session()
    yield session
    session.stop()


@pytest.fixture
def spark_with_kafka(spark: SparkSession) -> SparkSession:
    """The session, which has Spark's own `format("kafka")`; else the test is skipped, or failed."""
    if not spark.conf.get("spark.jars", ""):
        skip_or_fail(
            "this test needs Spark's own connector for Kafka: "
            "fetch it once with `python -m headwater.testing.spark_connector`"
        )
    return spark
