"""The reference page of pipelines' files is the one that the tables give, and its examples hold."""

import re
from pathlib import Path

import pytest

from headwater.pipeline.declared.fields.table import FieldTable
from headwater.pipeline.declared.fields.tables import FIELD_TABLES
from headwater.pipeline.declared.pipeline_file import load_pipeline
from tools.pipeline_reference import pipeline_reference_page

PAGE = Path(__file__).parents[2] / "docs" / "pipeline-reference.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == pipeline_reference_page(), "run `make docs`"


@pytest.mark.parametrize("table", FIELD_TABLES, ids=lambda table: table.section)
def test_every_field_has_a_line_in_its_section(table: FieldTable) -> None:
    section = pipeline_reference_page().split(f"## {table.section}\n")[1].split("\n## ")[0]
    assert all(section.count(f"\n| `{field.name}` |") == 1 for field in table)


def test_the_examples_are_pipelines(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", pipeline_reference_page(), re.DOTALL)
    assert len(examples) >= 2
    for number, text in enumerate(examples):
        path = tmp_path / f"example{number}.yaml"
        path.write_text(text)
        assert load_pipeline(path).sinks
