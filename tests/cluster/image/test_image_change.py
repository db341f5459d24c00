"""Edits of an image, and what is told about them."""

import uuid

from headwater.cluster.image.change import ImageEdits
from headwater.cluster.image.image import (
    BrokerInfo,
    ClusterImage,
    ConfigImage,
    ConfigResource,
    PartitionImage,
    ResourceKind,
    TopicImage,
    is_brokers_own,
    is_internal,
)

PARTITION = PartitionImage((0,), (0,), 0, 0, 0)


def _topic(name: str, number: int, partition_count: int = 1) -> TopicImage:
    return TopicImage(name, uuid.UUID(int=number), (PARTITION,) * partition_count)


def test_an_edit_leaves_the_old_image_as_it_was() -> None:
    first = ImageEdits({"a": _topic("a", 1), "b": _topic("b", 2)}).apply(ClusterImage("id"))
    assert first.changed_topics == {"a", "b"} and first.deleted_topics == ()
    resource = ConfigResource(ResourceKind.TOPIC, "a")
    second = ImageEdits(
        {"a": _topic("a", 1, 3), "b": None, "never": None},
        {resource: ConfigImage({"x": "1"}, 0)},
        {4: BrokerInfo(4, ())},
    ).apply(first.image)
    assert second.changed_topics == {"a"}
    assert second.deleted_topics == (_topic("b", 2),)
    assert second.changed_configs == {resource} and second.changed_brokers == {4}
    assert set(first.image.topics) == {"a", "b"} and first.image.brokers == {}
    assert first.image.topic_configs("a") == {}
    assert set(second.image.topics) == {"a"} and set(second.image.brokers) == {4}
    assert second.image.cluster_id == "id"
    assert second.image.topic_configs("a") == {"x": "1"}


def test_ids_follow_their_topics() -> None:
    image = ImageEdits({"a": _topic("a", 1)}).apply(ClusterImage()).image
    assert image.topic_by_id(uuid.UUID(int=1)) == _topic("a", 1)
    # A topic of the same name again, with another id.
    image = ImageEdits({"a": _topic("a", 2)}).apply(image).image
    assert image.topic_by_id(uuid.UUID(int=1)) is None
    assert image.topic_by_id(uuid.UUID(int=2)) == _topic("a", 2)
    image = ImageEdits({"a": None}).apply(image).image
    assert image.topic_by_id(uuid.UUID(int=2)) is None
    assert len(image.topic_names) == 0


def test_a_broker_that_goes_is_out_of_the_image() -> None:
    image = ClusterImage(brokers={1: BrokerInfo(1, ()), 3: BrokerInfo(3, ())})
    change = ImageEdits(brokers={1: None, 2: BrokerInfo(2, ())}).apply(image)
    assert list(change.image.brokers) == [2, 3]


def test_internal_topics_are_known_by_name() -> None:
    assert is_internal("__consumer_offsets") and _topic("__transaction_state", 1).is_internal
    assert not is_internal("orders") and not is_internal("__other")
    assert is_brokers_own("__consumer_offsets") and is_brokers_own("__transaction_state")


def test_topics_of_delay_services_are_internal_but_not_the_brokers_own() -> None:
    assert is_internal("__delay_30s") and is_internal("__delay_dead")
    assert not is_brokers_own("__delay_30s")
