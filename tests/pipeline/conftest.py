"""The Spark that all tests of the pipeline share."""

from tests.support.spark.session import spark, spark_with_kafka

__all__ = ["spark", "spark_with_kafka"]
