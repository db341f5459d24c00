"""What is wrong with a pipeline that only Spark could find, as one sentence with its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from headwater.base.errors import InvalidConfigError, KafkaError
from headwater.pipeline.compiled.spark_failures import analysis_problem
from headwater.pipeline.declared.specs.pipeline import PipelineSpec


class PipelineCompileError(InvalidConfigError):
    """A pipeline cannot run as it is declared; the sentence begins with `file:line:` if known."""


def error_at(spec: PipelineSpec, line: int, sentence: str) -> PipelineCompileError:
    """The error for a line of the pipeline's file; line 0 stands for the whole file."""
    file = str(spec.path) if spec.path else f"pipeline '{spec.name}'"
    place = f"{file}:{line}" if spec.path and line else file
    return PipelineCompileError(f"{place}: {sentence}")


@contextmanager
def told_as(spec: PipelineSpec, what: str, line: int, sql_line: int = 0) -> Iterator[None]:
    """Turn what Spark or a broker refuses into one sentence about a part of the file.

    `sql_line` is where the text of a query begins, if the part has one: Spark's own lines count
    from there.
    """
    try:
        yield
    except PipelineCompileError:
        raise
    except PySparkException as error:
        sentence, inside = analysis_problem(error)
        place = sql_line + inside - 1 if sql_line and inside else line
        raise error_at(spec, place, f"{what}: {sentence}") from error
    except KafkaError as error:
        raise error_at(spec, line, f"{what}: {error}") from error
