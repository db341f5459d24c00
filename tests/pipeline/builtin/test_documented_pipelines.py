"""What docs/pipelines.md shows of files is true: they load, and built-in ones have those variables.

The rest of its output was printed by a run, and has times and ids of that run in it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from headwater.pipeline.builtin.catalogue import builtin_names, builtin_path
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.problems import PipelineFileError

TEXT = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_worked_example_is_a_valid_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "revenue.yaml"
    path.write_text(BLOCKS[0])
    spec = load_pipeline(path)
    assert (spec.name, [sink.lake for sink in spec.sinks]) == ("revenue", ["lake/revenue"])
    assert "1 source, 1 step, 1 sink" in TEXT


def test_the_slips_of_the_pen_are_told_as_shown(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    wrong = BLOCKS[0].replace("watermark", "watermrk").replace("dead_letter", "deadletter")
    path.write_text(wrong)
    with pytest.raises(PipelineFileError) as raised:
        load_pipeline(path)
    lines = [line.replace(str(path), "wrong.yaml") for line in raised.value.lines()]
    assert len(lines) == 2
    assert "\n".join(lines) in TEXT


def test_every_fragment_is_yaml_of_known_sections() -> None:
    assert len(BLOCKS) >= 5
    for block in BLOCKS:
        known = {"name", "bootstrap_servers", "sources", "steps", "sinks"}
        assert yaml.safe_load(block).keys() <= known


@pytest.mark.parametrize("name", builtin_names())
def test_the_table_of_built_in_pipelines_names_their_variables(name: str) -> None:
    section = TEXT.partition("## Built-in pipelines")[2]
    row = re.search(rf"^\| `{name}` \|.*\| (.*) \|$", section, re.MULTILINE)
    assert row is not None
    variables = yaml.safe_load(builtin_path(name).read_text())["variables"]
    assert set(re.findall(r"`(\w+)`", row[1])) == set(variables)
