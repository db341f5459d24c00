"""Built-in pipelines are found by name, and each of their files stands for itself."""

from __future__ import annotations

import pytest

from headwater.base.errors import InvalidConfigError
from headwater.pipeline.builtin.catalogue import builtin_names, builtin_path
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.problems import PipelineFileError

REQUIRED = {
    "archive": {"topics": "orders,payments"},
    "replay": {"topic": "orders", "target": "again"},
}


def test_all_of_them_are_there() -> None:
    assert builtin_names() == ("aggregate", "archive", "audit", "join", "replay")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidConfigError, match="'archve'; did you mean 'archive'"):
        builtin_path("archve")
    with pytest.raises(InvalidConfigError, match="there are aggregate, archive, audit, join"):
        builtin_path("zzz")


@pytest.mark.parametrize("name", builtin_names())
def test_each_is_valid_named_as_its_file_and_tells_how_to_run_it(name: str) -> None:
    spec = load_pipeline(builtin_path(name), REQUIRED.get(name, {}))
    assert spec.name == name
    assert spec.description
    text = builtin_path(name).read_text()
    assert f"headwater pipeline run {name}" in text
    assert f"headwater pipeline show {name}" in text


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_what_has_no_default_must_be_given(name: str) -> None:
    with pytest.raises(PipelineFileError) as raised:
        load_pipeline(builtin_path(name), {})
    for variable in REQUIRED[name]:
        assert variable in str(raised.value)


def test_variables_reach_topics_windows_and_tables() -> None:
    spec = load_pipeline(
        builtin_path("aggregate"),
        {"orders": "sales", "lake": "/lake", "window": "5 minutes", "every": "1 minute"},
    )
    assert spec.sources[0].topics == ("sales",)
    assert spec.sources[0].dead_letter == "sales.rejected"
    assert "window(placed_at, '5 minutes')" in spec.steps[-1].sql
    assert [sink.lake for sink in spec.sinks] == ["/lake/revenue", ""]
    assert {sink.trigger_ms for sink in spec.sinks} == {60_000}
