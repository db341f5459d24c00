"""Spark's own parser for SQL, in a Java without a session: what is no query is found in seconds.

It knows the grammar and nothing else: whether tables and columns exist is found when a pipeline is
compiled. Where this process has a Spark already, its Java does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headwater.pipeline.compiled.spark_failures import parse_problem
from headwater.pipeline.declared.query_fault import QueryFault
from headwater.pipeline.spark.errors import SparkUnavailableError
from headwater.pipeline.spark.session import java_for_spark, look_around, require_pyspark
from headwater.pipeline.spark.session_plan import plan_session


def find_faults(queries: Sequence[str]) -> list[QueryFault | None]:
    """What is wrong with each, None for those that are well formed.

    `SparkUnavailableError` says what is missing where there is no Spark or no Java.
    """
    require_pyspark()
    with _java() as java:
        parser = java.org.apache.spark.sql.execution.SparkSqlParser()
        return [_fault(parser, query) for query in queries]


def _fault(parser: Any, query: str) -> QueryFault | None:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import ParseException

    try:
        parser.parsePlan(query)
    except Py4JJavaError as error:
        return parse_problem(str(error.java_exception.getMessage()))
    # What it is where a session has taught py4j Spark's own errors.
    except ParseException as error:
        return parse_problem(str(error))
    return None


@contextmanager
def _java() -> Iterator[Any]:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._jvm is not None:
        yield SparkContext._jvm
        return
    plan = plan_session("local", {}, look_around())
    try:
        with java_for_spark(plan):
            launch: Any = launch_gateway
            gateway = launch(SparkConf().setAll(list(plan.configs.items())))
    except PySparkRuntimeError as failure:
        raise SparkUnavailableError("Java ended before Spark's parser was up.") from failure
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        # The end of its standard input ends Java.
        gateway.proc.stdin.close()
        gateway.proc.wait()
