"""The tables of fields are what validation takes and what the specs hold."""

import dataclasses

import pytest
import yaml

from headwater.pipeline.declared.fields.pipeline import PIPELINE_FIELDS, STEP_FIELDS
from headwater.pipeline.declared.fields.sink import SINK_FIELDS
from headwater.pipeline.declared.fields.source import SOURCE_FIELDS
from headwater.pipeline.declared.fields.table import Field, FieldTable
from headwater.pipeline.declared.fields.tables import FIELD_TABLES
from headwater.pipeline.declared.problems import Place, Problems
from headwater.pipeline.declared.sections.reader import read_section
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.sink import SinkSpec
from headwater.pipeline.declared.specs.source import SourceSpec
from headwater.pipeline.declared.specs.step import StepSpec
from headwater.pipeline.declared.yaml_document import read_document

ROWS = [(table, field) for table in FIELD_TABLES for field in table]
#: Fields that a spec holds under another name, or in another form.
ELSEWHERE = {
    "The file": {"variables", "state_dir", "trigger"},
    "A source": {"topic", "schema_file"},
    "A step": {"from"},
    "A sink": {"from", "schema", "schema_file", "trigger"},
}


@pytest.mark.parametrize(
    ("table", "field"), ROWS, ids=lambda value: getattr(value, "name", value.__class__.__name__)
)
def test_an_example_is_what_the_field_takes(table: FieldTable, field: Field) -> None:
    assert field.doc.endswith(".")
    if not field.example:
        return
    text = f"{field.name}: {field.example}\n"
    assert isinstance(yaml.safe_load(text), dict)
    problems = Problems()
    document = read_document(text, problems)
    assert document is not None
    section = read_section("it", document, Place(1, 1), table, problems)
    assert section is not None and field.name in section.values


@pytest.mark.parametrize(
    ("table", "spec"),
    [
        (PIPELINE_FIELDS, PipelineSpec),
        (SOURCE_FIELDS, SourceSpec),
        (STEP_FIELDS, StepSpec),
        (SINK_FIELDS, SinkSpec),
    ],
)
def test_every_field_is_in_its_spec(table: FieldTable, spec: type) -> None:
    held = {field.name for field in dataclasses.fields(spec)}
    assert set(table.names()) - ELSEWHERE[table.section] <= held
