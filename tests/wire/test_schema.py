"""Message classes: defaults that are not shared, equality by fields, and how they are shown."""

import pytest

from headwater.wire.messages.fetch import FetchRequest, PartitionData
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def test_lists_and_structs_are_new_for_each_message() -> None:
    first, second = FetchRequest(), FetchRequest()
    first.rack_id = "r"
    first.replica_state.replica_id = 5
    assert first.topics is not second.topics
    assert second.replica_state.replica_id == -1
    assert second.rack_id == ""


def test_null_is_not_the_default() -> None:
    assert MetadataRequest(topics=None).topics is None
    assert MetadataRequest().topics == []
    assert PartitionData().records is None


def test_equality_is_by_class_and_fields() -> None:
    topic = MetadataRequestTopic(name="t")
    assert topic == MetadataRequestTopic(name="t")
    assert topic != MetadataRequestTopic(name="u")
    assert topic != "t"
    assert MetadataRequest(topics=[topic]) == MetadataRequest(
        topics=[MetadataRequestTopic(name="t")]
    )


def test_messages_are_mutable_and_have_no_hash() -> None:
    with pytest.raises(TypeError):
        hash(MetadataRequest())


def test_a_misspelled_field_is_an_error() -> None:
    with pytest.raises(AttributeError):
        MetadataRequest().topic = []  # type: ignore[attr-defined]


def test_a_message_shows_its_fields() -> None:
    shown = repr(MetadataRequestTopic(name="t"))
    assert shown.startswith("MetadataRequestTopic(")
    assert "name='t'" in shown
