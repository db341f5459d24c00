"""A range of time is refused before anything is started if it would spoil what a sink has."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.pipeline.declared.backfill_rules import check_backfill
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.problems import PipelineFileError
from headwater.pipeline.declared.specs.pipeline import PipelineSpec

SOURCES = """\
name: revenue
bootstrap_servers: localhost:9092
sources:
  orders: {topic: orders}
sinks:
"""


def spec_with(directory: Path, *sinks: str) -> PipelineSpec:
    path = directory / "revenue.yaml"
    path.write_text(SOURCES + "".join(f"  {sink}\n" for sink in sinks))
    return load_pipeline(path)


def test_what_adds_rows_or_replaces_its_own_may_be_backfilled(tmp_path: Path) -> None:
    check_backfill(
        spec_with(
            tmp_path,
            "copy: {from: orders, topic: copy}",
            "rows: {from: orders, lake: ./rows}",
            "seen: {from: orders, screen: true}",
        )
    )


def test_every_sink_that_would_be_spoilt_is_named_with_its_line(tmp_path: Path) -> None:
    spec = spec_with(
        tmp_path,
        "copy: {from: orders, topic: copy}",
        "kept: {from: orders, archive: ./kept}",
        "sums: {from: orders, lake: ./sums, mode: complete}",
    )
    with pytest.raises(PipelineFileError) as caught:
        check_backfill(spec)
    first, second = caught.value.lines()
    assert first.startswith(f"{tmp_path / 'revenue.yaml'}:7:1: sink 'kept' is an archive")
    assert second.startswith(f"{tmp_path / 'revenue.yaml'}:8:1: sink 'sums' has the mode complete")
