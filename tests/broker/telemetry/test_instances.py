"""Whose turn it is: to ask, and to push; and whom the broker forgets."""

from __future__ import annotations

import uuid

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.telemetry.instances import Instances, expiry_ms
from headwater.broker.telemetry.subscriptions import Subscriptions
from headwater.cluster.image.image import ClusterImage, ConfigImage, ConfigResource, ResourceKind
from headwater.cluster.image.layered_map import LayeredMap

ANN, BOB = uuid.UUID(int=10), uuid.UUID(int=11)
CLIENT = {"client_id": "ann", "client_software_name": "apache-kafka-java"}


def image_with(subscriptions: dict[str, dict[str, str]]) -> ClusterImage:
    return ClusterImage(
        configs=LayeredMap(
            {
                ConfigResource(ResourceKind.CLIENT_METRICS, name): ConfigImage(texts, 1)
                for name, texts in subscriptions.items()
            }
        )
    )


class World:
    """The instances of one broker, with the subscriptions of its cluster."""

    def __init__(self, instances_max: int = 100, **subscription: str) -> None:
        self.settings = BrokerSettings.from_texts({"broker.id": "1"})
        self.subscriptions = Subscriptions(self.settings)
        self.instances = Instances(self.subscriptions, instances_max)
        self.subscribe({"s": {"metrics": "*", "interval.ms": "1000", **subscription}})

    def subscribe(self, subscriptions: dict[str, dict[str, str]]) -> None:
        image = image_with(subscriptions)
        self.settings.take_image(image)
        self.subscriptions.follow(image)

    def ask(self, now_ms: int, client: uuid.UUID = ANN) -> ErrorCode:
        try:
            self.instances.ask(client, CLIENT, now_ms)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def push(
        self, now_ms: int, *, by: int | None = None, is_last: bool = False, client: uuid.UUID = ANN
    ) -> ErrorCode:
        if by is None:
            by = self.subscriptions.request_for(client, CLIENT).subscription_id
        try:
            self.instances.push(client, CLIENT, now_ms, subscription_id=by, is_last=is_last)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE


TOO_EARLY = ErrorCode.THROTTLING_QUOTA_EXCEEDED
UNKNOWN = ErrorCode.UNKNOWN_SUBSCRIPTION_ID


def test_one_asks_and_pushes_once_an_interval() -> None:
    world = World()
    assert world.ask(0) is ErrorCode.NONE
    assert world.ask(999) is TOO_EARLY
    # Right behind the question, and then an interval later.
    assert world.push(5) is ErrorCode.NONE
    assert world.push(1004) is TOO_EARLY
    assert world.push(1005) is ErrorCode.NONE
    assert world.ask(2004) is TOO_EARLY
    assert world.ask(2005) is ErrorCode.NONE


def test_who_goes_by_an_old_subscription_asks_again_at_once() -> None:
    world = World()
    assert world.ask(0) is ErrorCode.NONE
    old = world.subscriptions.request_for(ANN, CLIENT).subscription_id
    world.subscribe({"s": {"metrics": "a.", "interval.ms": "1000"}})
    assert world.push(10, by=old) is UNKNOWN
    assert world.ask(11) is ErrorCode.NONE
    assert world.push(12) is TOO_EARLY
    assert world.push(1012) is ErrorCode.NONE


def test_a_push_without_a_question_is_refused_by_its_id_alone() -> None:
    world = World()
    assert world.push(0, by=1) is UNKNOWN
    assert world.push(1, by=1) is TOO_EARLY


def test_the_last_push_may_come_early_and_is_the_last() -> None:
    world = World()
    world.ask(0)
    assert world.push(1) is ErrorCode.NONE
    assert world.push(2, is_last=True) is ErrorCode.NONE
    for _ in range(2):
        assert world.push(9_000) is ErrorCode.INVALID_REQUEST


def test_what_several_subscriptions_ask_of_one_client() -> None:
    world = World()
    world.subscribe(
        {
            "producers": {"metrics": "b.,a.", "interval.ms": "5000"},
            "java": {
                "metrics": "c.",
                "interval.ms": "2000",
                "match": "client_software_name=apache-.*",
            },
            "other": {"metrics": "*", "match": "client_id=bob"},
            "both": {"metrics": "*", "match": "client_id=ann,client_software_name=lib.*"},
            "unknown": {"metrics": "*", "match": "client_source_port=1"},
        }
    )
    request = world.subscriptions.request_for(ANN, CLIENT)
    assert (request.prefixes, request.interval_ms) == (("a.", "b.", "c."), 2000)
    assert request.wants("a.b") and not request.wants("d")
    # The whole text has to match; and each client has an id of its own for the same.
    other = world.subscriptions.request_for(BOB, {"client_id": "ann2"})
    assert (other.prefixes, other.interval_ms) == (("a.", "b."), 5000)
    assert world.subscriptions.request_for(BOB, CLIENT).subscription_id != request.subscription_id
    assert -(1 << 31) <= request.subscription_id < 1 << 31
    everything = world.subscriptions.request_for(ANN, {"client_id": "bob"})
    assert everything.prefixes == ("*",) and everything.wants("d")


def test_without_a_subscription_nothing_is_wanted() -> None:
    world = World()
    world.subscribe({})
    request = world.subscriptions.request_for(ANN, CLIENT)
    assert (request.prefixes, request.interval_ms) == ((), 300_000)
    assert not request.wants("a")


def test_a_stored_pattern_that_cannot_be_read_is_for_nobody() -> None:
    world = World(match="client_id=(?=a)a")
    assert world.subscriptions.request_for(ANN, CLIENT).prefixes == ()


def test_other_settings_of_the_cluster_change_no_turn() -> None:
    world = World()
    world.ask(0)
    version = world.subscriptions.version
    image = image_with({"s": {"metrics": "*", "interval.ms": "1000"}})
    world.subscriptions.follow(image)
    assert world.subscriptions.version == version
    assert world.ask(1) is TOO_EARLY


def test_those_not_heard_of_are_forgotten() -> None:
    world = World()
    world.ask(0)
    world.ask(30_000, BOB)
    world.instances.forget_expired(expiry_ms(1000))
    assert ANN not in world.instances and BOB in world.instances
    assert expiry_ms(100) == 60_000 and expiry_ms(300_000) == 900_000


def test_of_too_many_the_oldest_are_forgotten() -> None:
    world = World(instances_max=10)
    for number in range(100):
        world.ask(0, uuid.UUID(int=100 + number))
        world.push(0, client=ANN)
    assert len(world.instances) == 10
    assert ANN in world.instances


@pytest.mark.parametrize("text", ["client_id=(?=a)a", r"client_id=(a)\1"])
def test_patterns_that_might_run_for_ever_are_refused(text: str) -> None:
    from headwater.broker.settings.client_metrics import check_client_metrics_setting

    with pytest.raises(KafkaError) as raised:
        check_client_metrics_setting("match", text)
    assert raised.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("expression", "matching", "other"),
    [
        (r"\p{Alpha}+", "abC", "a1"),
        (r"[\p{Digit}x]+", "1x2", "y"),
        (r"\P{Space}+", "ab", "a b"),
        (r"[^\p{Upper}]+", "ab", "aB"),
        (r"\p{L}+", "z\u00fcr", "1"),
        (r"a\[b", "a[b", "ab"),
    ],
)
def test_java_s_classes_of_characters(expression: str, matching: str, other: str) -> None:
    world = World()
    world.subscribe({"s": {"metrics": "*", "match": f"client_id={expression}"}})
    for text, is_asked in ((matching, True), (other, False)):
        request = world.subscriptions.request_for(ANN, {"client_id": text})
        assert bool(request.prefixes) is is_asked, text
