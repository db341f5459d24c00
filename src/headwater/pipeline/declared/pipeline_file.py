"""A pipeline's file, read and checked as a whole: `load_pipeline` gives its spec or all problems.

Nothing is run: no Spark, no broker, no module of the user's. What only those can know, such as
whether a column of a query exists, is found when the pipeline is compiled. Whoever has Spark's
parser at hand may have it look at the queries.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from headwater.pipeline.declared.fields.option_names import check_kafka_settings
from headwater.pipeline.declared.fields.pipeline import PIPELINE_FIELDS
from headwater.pipeline.declared.problems import NOWHERE, PipelineFileError, Place, Problems
from headwater.pipeline.declared.query_fault import FindFaults
from headwater.pipeline.declared.sections.reader import Section, read_section
from headwater.pipeline.declared.sections.sink import read_sink
from headwater.pipeline.declared.sections.source import read_source
from headwater.pipeline.declared.sections.step import DraftStep, query_text, read_step
from headwater.pipeline.declared.sections.step_order import resolve_steps
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.sink import SinkSpec
from headwater.pipeline.declared.specs.source import SourceSpec
from headwater.pipeline.declared.variables import SECTION as VARIABLES
from headwater.pipeline.declared.variables import Variables
from headwater.pipeline.declared.yaml_document import Entry, MapValue, Value, read_document
from headwater.pipeline.lake.errors import LakeError
from headwater.pipeline.lake.table.local_path import local_path

STATE_DIRECTORY: Final = "headwater-pipelines"
BOOTSTRAP_DEFAULT: Final = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE: Final = "HEADWATER_BOOTSTRAP_SERVER"
_TABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", re.ASCII)
#: The query that writes bad records of a source is called so, after the source.
DEAD_LETTERS_SUFFIX: Final = "-dead-letters"


def load_pipeline(
    path: Path,
    variables: Mapping[str, str] | None = None,
    *,
    bootstrap_servers: str | None = None,
    state_directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    find_faults: FindFaults | None = None,
) -> PipelineSpec:
    """The pipeline that a file declares; `PipelineFileError` holds everything wrong with it.

    The keywords win over what the file says. `find_faults` is asked about the queries of SQL steps.
    """
    problems = Problems()
    environment = os.environ if environment is None else environment
    text = _read(path, problems)
    spec = None
    if text is not None:
        spec = _Load(path, variables or {}, environment, problems, find_faults).spec(text)
    if problems or spec is None:
        raise PipelineFileError(str(path), problems.in_order())
    if bootstrap_servers:
        spec = replace(spec, bootstrap_servers=bootstrap_servers)
    return replace(spec, state_directory=state_directory) if state_directory else spec


def _read(path: Path, problems: Problems) -> str | None:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        problems.add(NOWHERE, f"{(error.strerror or 'it cannot be read').rstrip('.').lower()}.")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problems.add(Place(line, 1), "the file is not text in UTF-8.")
    except ValueError:
        problems.add(NOWHERE, "this is not the name of a file.")
    return None


class _Load:
    """One reading of one file."""

    def __init__(
        self,
        path: Path,
        variables: Mapping[str, str],
        environment: Mapping[str, str],
        problems: Problems,
        find_faults: FindFaults | None,
    ) -> None:
        self._find_faults = find_faults
        self._path = path
        self._directory = path.parent
        self._environment = environment
        self._problems = problems
        self._variables = Variables(variables, environment, problems)

    def spec(self, text: str) -> PipelineSpec | None:
        document = read_document(text, self._problems)
        if document is None:
            return None
        section = self._top_level(document)
        if section is None:
            return None
        name = self._name(section)
        sources = self._sources(section, name)
        drafts = self._drafts(section, sources)
        steps = resolve_steps(sources, drafts, self._problems)
        sinks = self._sinks(section, sources, drafts)
        check_kafka_settings(section, self._problems)
        self._check_queries(drafts)
        _check_checkpoints(section, sinks, self._problems)
        if self._problems:
            return None
        return PipelineSpec(
            name=name,
            description=section.get("description", "").strip(),
            path=self._path,
            directory=self._directory,
            bootstrap_servers=section.get("bootstrap_servers")
            or self._environment.get(BOOTSTRAP_VARIABLE)
            or BOOTSTRAP_DEFAULT,
            state_directory=Path(section.get("state_dir") or STATE_DIRECTORY) / name,
            checkpoints=section.get("checkpoints", ""),
            kafka=section.get("kafka", {}),
            spark=section.get("spark", {}),
            sources=tuple(spec for spec in sources.values() if spec is not None),
            steps=steps,
            sinks=sinks,
        )

    def _top_level(self, document: Value) -> Section | None:
        """The fields of the file, with variables put in everywhere but in their own section."""
        if isinstance(document, MapValue):
            declared = document.get(VARIABLES)
            self._variables.declare(declared.value if declared is not None else None)
            entries = tuple(
                entry
                if entry.key == VARIABLES
                else replace(entry, value=self._variables.substitute(entry.value))
                for entry in document.entries
            )
            self._variables.refuse_unknown()
            # The section of variables is read above; what it holds may be empty.
            others = tuple(entry for entry in entries if entry.key != VARIABLES)
            document = replace(document, entries=others)
        return read_section("the file", document, Place(1, 1), PIPELINE_FIELDS, self._problems)

    def _name(self, section: Section) -> str:
        name = str(section.get("name") or self._path.stem)
        if not _FILE_NAME.fullmatch(name):
            self._problems.add(
                section.place_of("name"),
                f"{name!r} is not a name for a pipeline: use letters, digits, '.', '_' and '-'; "
                "give it one with 'name'.",
            )
        return name

    def _sources(self, section: Section, pipeline: str) -> dict[str, SourceSpec | None]:
        found: dict[str, SourceSpec | None] = {}
        for entry in self._entries(section, "sources"):
            self._check_table_name("source", entry)
            if entry.key.lower() in map(str.lower, found):
                self._problems.add(entry.place, f"the name {entry.key!r} is used twice.")
            found[entry.key] = read_source(entry, pipeline, self._directory, self._problems)
        return found

    def _drafts(
        self, section: Section, sources: Mapping[str, SourceSpec | None]
    ) -> list[DraftStep]:
        before = list(sources)[-1] if sources else None
        found = []
        for entry in self._entries(section, "steps"):
            self._check_table_name("step", entry)
            found.append(read_step(entry, before, self._directory, self._problems))
            before = entry.key
        return found

    def _check_queries(self, drafts: list[DraftStep]) -> None:
        queries = [draft.query for draft in drafts if draft.query is not None]
        if self._find_faults is None or not queries:
            return
        texts = [query_text(query) for query in queries]
        for query, text, fault in zip(queries, texts, self._find_faults(texts), strict=True):
            if fault is not None:
                place = query.place_at(fault.offset_in(text))
                self._problems.add(place, f"the query is wrong: {fault.sentence}.")

    def _sinks(
        self,
        section: Section,
        sources: Mapping[str, SourceSpec | None],
        drafts: list[DraftStep],
    ) -> tuple[SinkSpec, ...]:
        names = {**sources, **{draft.name: None for draft in drafts}}
        last = drafts[-1].name if drafts else None
        if not drafts and len(sources) == 1:
            [last] = sources
        if not names:
            self._problems.add(section.place, "the file has neither sources nor steps.")
        found = []
        for entry in self._entries(section, "sinks"):
            if not _FILE_NAME.fullmatch(entry.key):
                self._problems.add(
                    entry.place,
                    f"{entry.key!r} is not a name for a sink: use letters, digits, '.', '_' and "
                    "'-'.",
                )
            source = entry.key.removesuffix(DEAD_LETTERS_SUFFIX)
            if source != entry.key and source in sources:
                self._problems.add(
                    entry.place,
                    f"{entry.key!r} is the name of what writes the bad records of {source!r}.",
                )
            trigger_ms = section.get("trigger")
            sink = read_sink(entry, names, last, trigger_ms, self._directory, self._problems)
            if sink is not None:
                found.append(sink)
        return tuple(found)

    def _entries(self, section: Section, name: str) -> tuple[Entry, ...]:
        value = section.get(name)
        return value.entries if isinstance(value, MapValue) else ()

    def _check_table_name(self, what: str, entry: Entry) -> None:
        if not _TABLE_NAME.fullmatch(entry.key):
            self._problems.add(
                entry.place,
                f"{entry.key!r} is not a name for a {what}: use letters, digits and '_', as it is "
                "a table in SQL.",
            )


def _check_checkpoints(section: Section, sinks: tuple[SinkSpec, ...], problems: Problems) -> None:
    """An archive reads the ranges of offsets from its checkpoint."""
    archives = [sink.name for sink in sinks if sink.archive]
    if not archives:
        return
    try:
        local_path(section.get("checkpoints", ""))
    except LakeError:
        problems.add(
            section.place_of("checkpoints"),
            f"'checkpoints' must be a local or mounted directory, because sink {archives[0]!r} is "
            "an archive.",
        )
