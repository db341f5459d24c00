"""The offsets of a checkpoint: what is written is read, in one form only."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.offset_json import OffsetJsonError, SourceOffsets

topics = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
positions = st.dictionaries(
    st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1)
)


@given(positions, st.text(), st.text(), st.none() | positions)
def test_offsets_survive_a_checkpoint(
    positions: dict[TopicPartition, int],
    servers: str,
    group: str,
    first: dict[TopicPartition, int] | None,
) -> None:
    offsets = SourceOffsets(positions, servers, group, first)
    text = json.dumps(offsets.to_json())
    assert SourceOffsets.from_json(text) == offsets
    assert SourceOffsets.from_json(json.loads(text)) == offsets
    # Spark takes another text for another offset.
    shuffled = SourceOffsets(dict(reversed(positions.items())), servers, group, first)
    assert json.dumps(shuffled.to_json()) == text


def test_the_form_is_that_of_sparks_connector_with_one_more_entry() -> None:
    offsets = SourceOffsets({TopicPartition("orders", 1): 42}, "localhost:9092", "billing")
    assert offsets.to_json() == {
        "orders": {"1": 42},
        "@headwater": {"bootstrap": "localhost:9092", "group": "billing"},
    }
    assert SourceOffsets.from_json('{"orders": {"1": 42}}').positions == offsets.positions


@pytest.mark.parametrize("text", ["", "[]", "{", '{"orders": 5}', '{"orders": {"x": 1}}', "7"])
def test_what_is_no_offsets_is_refused(text: str) -> None:
    with pytest.raises(OffsetJsonError, match="is not the offsets of a source"):
        SourceOffsets.from_json(text)
