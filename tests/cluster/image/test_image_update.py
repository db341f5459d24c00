"""The controller's message brings a broker to the controller's image, whatever has changed."""

import uuid
from dataclasses import replace
from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.image.change import ImageChange, ImageEdits
from headwater.cluster.image.image import (
    BrokerInfo,
    ClusterImage,
    ConfigImage,
    ConfigResource,
    EndpointInfo,
    PartitionImage,
    ResourceKind,
    TopicImage,
)
from headwater.cluster.image.reception import fits, updated
from headwater.cluster.image.update import TouchedParts, snapshot
from headwater.wire.cluster_messages.update_image import UpdateImageRequest
from headwater.wire.codec import decode, encode

_NAMES = st.sampled_from(["orders", "payments", "__consumer_offsets", "a.b-c_d"])
_BROKER_IDS = st.integers(0, 3)
_REPLICAS = st.lists(_BROKER_IDS, min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def _partition(draw: st.DrawFn) -> PartitionImage:
    replicas = draw(_REPLICAS)
    isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    leader = draw(st.sampled_from([*isr, -1]))
    epochs = draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))
    return PartitionImage(replicas, tuple(isr), leader, *epochs)


_PARTITIONS = _partition()
_BROKERS = st.builds(
    BrokerInfo,
    broker_id=_BROKER_IDS,
    endpoints=st.lists(
        st.builds(
            EndpointInfo, st.sampled_from(["PLAINTEXT", "INSIDE"]), st.just("host"), st.just(9092)
        ),
        max_size=2,
    ).map(tuple),
    rack=st.none() | st.just("rack"),
    broker_epoch=st.integers(0, 9),
    log_dirs=st.sampled_from([(), ("/a", "/b")]),
    cordoned_log_dirs=st.sampled_from([(), ("*",), ("/a",)]),
)
_CONFIGS = st.builds(
    lambda configs, version: ConfigImage(MappingProxyType(configs), version),
    st.dictionaries(st.sampled_from(["retention.ms", "cleanup.policy"]), st.text(max_size=3)),
    st.integers(0, 9),
)


@st.composite
def _edits(draw: st.DrawFn, image: ClusterImage) -> ImageEdits:
    edits = ImageEdits()
    for name in draw(st.lists(_NAMES, unique=True, max_size=3)):
        known = image.topics.get(name)
        kind = draw(st.sampled_from(["new", "gone", "grown", "partly"]))
        if known is not None and kind == "partly":
            numbers = st.integers(0, len(known.partitions) - 1)
            edits.partitions[name] = draw(st.dictionaries(numbers, _PARTITIONS, min_size=1))
        elif known is not None and kind == "grown":
            partitions = (*known.partitions, draw(_PARTITIONS))
            edits.topics[name] = TopicImage(name, known.topic_id, partitions)
        elif kind == "gone":
            edits.topics[name] = None
        else:
            partitions = draw(st.lists(_PARTITIONS, min_size=1, max_size=3).map(tuple))
            edits.topics[name] = TopicImage(name, draw(st.uuids(version=4)), partitions)
    for owner in (ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLIENT_METRICS):
        for name in draw(st.lists(_NAMES, unique=True, max_size=2)):
            edits.configs[ConfigResource(owner, name)] = draw(st.none() | _CONFIGS)
    for broker in draw(st.lists(_BROKERS, unique_by=lambda each: each.broker_id, max_size=2)):
        edits.brokers[broker.broker_id] = draw(st.none() | st.just(broker))
    return edits


def _sent(request: UpdateImageRequest) -> UpdateImageRequest:
    """As it arrives."""
    received, _ = decode(UpdateImageRequest, encode(request, 0), 0)
    return received


def _content(image: ClusterImage) -> tuple[object, ...]:
    return (
        image.cluster_id,
        image.controller_id,
        image.controller_epoch,
        image.version,
        dict(image.brokers),
        dict(image.topics),
        dict(image.topic_names),
        {
            resource: (dict(config.configs), config.version)
            for resource, config in image.configs.items()
        },
    )


def _follow(image: ClusterImage, change: ImageChange) -> None:
    """What a change says of itself is what differs."""
    for name in (
        change.image.topics.keys() - change.changed_topics - change.changed_partitions.keys()
    ):
        assert change.image.topics[name] == image.topics[name]
    gone = {topic.topic_id for topic in change.deleted_topics}
    assert gone == image.topic_names.keys() - change.image.topic_names.keys()


@given(st.data())
def test_a_broker_that_misses_changes_gets_them_in_one_message(data: st.DataObject) -> None:
    controllers = ClusterImage("cluster", controller_id=1, controller_epoch=4, version=1)
    brokers = ClusterImage()
    request = _sent(snapshot(controllers))
    assert fits(brokers, request)
    brokers = updated(brokers, request).image
    assert _content(brokers) == _content(controllers)
    for _ in range(data.draw(st.integers(1, 3))):
        touched = TouchedParts()
        for _ in range(data.draw(st.integers(1, 4))):
            change = data.draw(_edits(controllers)).apply(controllers)
            _follow(controllers, change)
            touched.add(change)
            controllers = change.image
        request = _sent(touched.delta(controllers, brokers.version))
        assert fits(brokers, request)
        change = updated(brokers, request)
        _follow(brokers, change)
        brokers = change.image
        assert _content(brokers) == _content(controllers)
    # Whoever has something else altogether gets there by a snapshot.
    other = data.draw(_edits(ClusterImage())).apply(ClusterImage()).image
    change = updated(other, _sent(snapshot(controllers)))
    _follow(other, change)
    assert _content(change.image) == _content(controllers)


def test_a_delta_fits_only_what_it_begins_at() -> None:
    image = ClusterImage("cluster", controller_id=1, controller_epoch=4, version=7)
    change = ImageEdits(brokers={2: BrokerInfo(2, ())}).apply(image)
    touched = TouchedParts()
    touched.add(change)
    delta = touched.delta(change.image, 7)
    assert fits(image, delta)
    assert not fits(replace(image, version=6), delta)
    assert not fits(replace(image, controller_epoch=3), delta)
    assert fits(replace(image, controller_epoch=3), snapshot(change.image))


def test_a_topic_that_was_made_anew_is_another_one() -> None:
    partition = PartitionImage((0,), (0,), 0, 0, 0)
    old = TopicImage("orders", uuid.UUID(int=1), (partition,))
    new = TopicImage("orders", uuid.UUID(int=2), (partition, partition))
    image = ImageEdits({"orders": old}).apply(ClusterImage(controller_id=0)).image
    touched = TouchedParts()
    gone = ImageEdits({"orders": None}).apply(image)
    touched.add(gone)
    back = ImageEdits({"orders": new}).apply(gone.image)
    touched.add(back)
    change = updated(image, touched.delta(back.image, image.version))
    assert change.deleted_topics == (old,)
    assert change.changed_topics == {"orders"}
    assert change.image.topics["orders"] == new


def test_brokers_of_earlier_releases_are_told_what_they_understand() -> None:
    config = ConfigImage(MappingProxyType({"name": "value"}), 0)
    named = (ResourceKind.GROUP, ResourceKind.CLIENT_METRICS)
    older = (ResourceKind.TOPIC, ResourceKind.BROKER)
    edits = ImageEdits()
    for kind in (*named, *older):
        edits.configs[ConfigResource(kind, "7")] = config
    change = edits.apply(ClusterImage("cluster", controller_id=1))
    touched = TouchedParts()
    touched.add(change)
    for request in (snapshot(change.image), touched.delta(change.image, 0)):
        # A kind that such a broker does not know would have it refuse the whole message.
        assert sorted(each.kind for each in request.configs) == sorted(older)
        assert sorted(each.kind for each in request.named_configs) == sorted(named)
