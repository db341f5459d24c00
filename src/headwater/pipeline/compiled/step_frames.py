"""Sources and steps as frames by name: each source and step once, in the order of the file.

A frame becomes a temporary view while the steps are made, so that SQL can name it; frames keep what
they were resolved to, so the views go when all are made. The same declaration gives streaming
frames for a run and plain ones for a backfill.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession

from headwater.base.errors import KafkaError
from headwater.pipeline.compiled.compile_error import error_at, told_as
from headwater.pipeline.compiled.topic_source import TopicSource
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Backfill, RunMode
from headwater.pipeline.declared.specs.source import SourceSpec, Watermark
from headwater.pipeline.declared.specs.step import StepSpec
from headwater.pipeline.lake.lake_table import LakeTable

#: Where Spark notes on a column that a watermark follows it.
_WATERMARK: Final = "spark.watermarkDelayMs"


class StepFrames:
    """The frames of one run of a pipeline."""

    def __init__(self, spec: PipelineSpec, spark: SparkSession, mode: RunMode) -> None:
        self._spec = spec
        self._spark = spark
        self._backfill = mode if isinstance(mode, Backfill) else None
        self._frames: dict[str, DataFrame] = {}
        self._made_views: list[str] = []
        self._observations: dict[str, Observation] = {}

    def build(self) -> dict[str, DataFrame]:
        """All frames that a sink needs, by name."""
        needed = needed_names(self._spec)
        try:
            for source in self._spec.sources:
                if source.name in needed:
                    with told_as(self._spec, f"source '{source.name}'", source.line):
                        self._add(source.name, self._source(source))
            for step in self._spec.steps:
                if step.name in needed:
                    with told_as(self._spec, f"step '{step.name}'", step.line, step.sql_line):
                        self._add(step.name, self._step(step))
        finally:
            for name in self._made_views:
                self._spark.catalog.dropTempView(name)
        return self._frames

    def observations(self, name: str) -> dict[str, Observation]:
        """What counts the rows of the sources that a step reads, by name, if they are no stream."""
        needed = needed_names(self._spec, (name,))
        return {each: found for each, found in self._observations.items() if each in needed}

    def topic_source(self, source: SourceSpec, *, streaming: bool | None = None) -> TopicSource:
        """The reader of a source's topics; a backfill reads all of them as batches."""
        if streaming is None:
            streaming = source.streaming and self._backfill is None
        return TopicSource(
            self._spec, source, self._spark, streaming=streaming, backfill=self._backfill
        )

    def _add(self, name: str, frame: DataFrame) -> None:
        self._frames[name] = frame
        frame.createOrReplaceTempView(name)
        self._made_views.append(name)

    # -- sources and steps -----------------------------------------------------------------------

    def _source(self, source: SourceSpec) -> DataFrame:
        if not source.is_lake:
            reader = self.topic_source(source)
            self._observations |= reader.observations
            return reader.rows()
        frame = LakeTable(source.lake).read(self._spark)
        return _watermarked(frame, source.watermark)

    def _step(self, step: StepSpec) -> DataFrame:
        if step.sql:
            frame = self._spark.sql(step.sql)
        elif step.python:
            frame = self._called(step)
        else:
            frame = _deduplicated(self._frames[step.inputs[0]], step.deduplicate)
        return _watermarked(frame, step.watermark)

    def _called(self, step: StepSpec) -> DataFrame:
        function = load_function(step.python, self._spec.directory, self._spark)
        arguments: dict[str, Any] = dict(step.arguments)
        given = {"spark": self._spark, "bootstrap_servers": self._spec.bootstrap_servers}
        for name in given.keys() & inspect.signature(function).parameters.keys():
            arguments.setdefault(name, given[name])
        try:
            frame = function(*(self._frames[name] for name in step.inputs), **arguments)
        except (PySparkException, KafkaError):
            raise
        # Whatever a function of the user's raises is told as its own.
        except Exception as error:
            text = f"step '{step.name}': {step.python} failed: {type(error).__name__}: {error}"
            raise error_at(self._spec, step.line, text) from error
        if not isinstance(frame, DataFrame):
            found = f"{type(frame).__name__}, not a DataFrame"
            text = f"step '{step.name}': {step.python} returned {found}"
            raise error_at(self._spec, step.line, text)
        return frame


def needed_names(spec: PipelineSpec, inputs: Iterable[str] | None = None) -> set[str]:
    """The sources and steps that a sink reads, or these inputs, directly or through steps."""
    needed = {sink.input for sink in spec.sinks} if inputs is None else set(inputs)
    for step in reversed(spec.steps):
        if step.name in needed:
            needed.update(step.inputs)
    return needed


def _watermarked(frame: DataFrame, watermark: Watermark | None) -> DataFrame:
    return frame if watermark is None else frame.withWatermark(watermark.column, watermark.delay)


def _deduplicated(frame: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Within the watermark if there is one, whose delay bounds what has to be remembered."""
    has_watermark = any(_WATERMARK in field.metadata for field in frame.schema.fields)
    if frame.isStreaming and has_watermark:
        return frame.dropDuplicatesWithinWatermark(list(columns))
    return frame.dropDuplicates(list(columns))


def load_function(name: str, directory: Path, spark: SparkSession) -> Callable[..., Any]:
    """The function `module:function`, looked for beside the pipeline's file too.

    A module that lies there is sent to Spark's executors, which may have to import it.
    """
    module_name, _, function_name = name.partition(":")
    folder = str(directory.absolute())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.import_module(module_name)
    _send_module(module_name.partition(".")[0], directory, spark)
    found: Callable[..., Any] = getattr(module, function_name)
    return found


def _send_module(top: str, directory: Path, spark: SparkSession) -> None:
    context = spark.sparkContext
    if (directory / f"{top}.py").is_file():
        context.addPyFile(str((directory / f"{top}.py").absolute()))
    elif (directory / top / "__init__.py").is_file():
        packed = Path(tempfile.mkdtemp(prefix="headwater-pipeline-")) / f"{top}.zip"
        with zipfile.ZipFile(packed, "w") as archive:
            for path in sorted((directory / top).rglob("*.py")):
                archive.write(path, path.relative_to(directory))
        context.addPyFile(str(packed))
