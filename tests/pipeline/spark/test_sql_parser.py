"""Spark's parser finds what is no query, with its place, and asks for no table."""

from pyspark.sql import SparkSession

from headwater.pipeline.spark.sql_parser import find_faults


def test_faults_have_their_places(spark: SparkSession) -> None:
    queries = [
        "SELECT window.start, count(*) FROM nowhere GROUP BY window(at, '1 minute')",
        "SELECT id\nFROM orders orders twice",
        "SELECT 1 +",
    ]
    good, twice, short = find_faults(queries)
    assert good is None
    assert twice is not None and (twice.line, twice.position) == (2, 19)
    assert twice.sentence.startswith("Syntax error at or near 'twice'")
    assert queries[1][twice.offset_in(queries[1]) :] == "twice"
    assert short is not None and "end of input" in short.sentence
    assert short.offset_in(queries[2]) == len(queries[2]) - 1
