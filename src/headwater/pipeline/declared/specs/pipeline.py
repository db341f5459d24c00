"""A whole pipeline as its file declares it: sources, steps and sinks, checked and with defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.client.failures.letter_topics import letter_topic
from headwater.pipeline.declared.specs.run_mode import RunMode
from headwater.pipeline.declared.specs.sink import SinkSpec
from headwater.pipeline.declared.specs.source import SourceSpec
from headwater.pipeline.declared.specs.step import StepSpec


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """Names of sources and steps are unique together, and a step reads only what is before it."""

    name: str
    bootstrap_servers: str
    sources: tuple[SourceSpec, ...]
    steps: tuple[StepSpec, ...]
    sinks: tuple[SinkSpec, ...]
    #: Where the run, its progress and, without `checkpoints`, its checkpoints are.
    state_directory: Path
    description: str = ""
    #: The folder of the file: modules of `python` steps are looked for there too.
    directory: Path = Path()
    #: The file, as it was given.
    path: Path | None = None
    #: Where checkpoints are kept if not in the state directory: a path or an address that every
    #: member of the Spark cluster can use.
    checkpoints: str = ""
    #: Settings of the Kafka clients behind all sources and sinks, without `kafka.` before them.
    kafka: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)

    def checkpoint_location(self, name: str, mode: RunMode) -> str:
        """Where the query of that name (a sink's, or another that a compiler adds) keeps its own.

        It is absolute, or an address.
        """
        root = self.checkpoints or str(self.state_directory.absolute())
        return "/".join(filter(None, (root.rstrip("/"), mode.folder, "checkpoints", name)))

    def group(self, source: SourceSpec) -> str:
        """The consumer group as which the progress of a source is shown."""
        return source.group or self.name

    def dead_letter_topic(self, source: SourceSpec) -> str:
        """Where the records of a source go that cannot be decoded, if it has dead letters."""
        return source.dead_letter or letter_topic(self.group(source))
