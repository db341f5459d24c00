"""How a producer has a record delivered later, on each kind of cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Unpack, cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.client.kafka_errors import ClusterAuthorizationFailedError
from headwater.client.producer.delayed_records import DelayedRecords
from headwater.client.producer.errors import NoDelaysError
from headwater.client.producer.intake.delay_request import (
    DelayArguments,
    DelayRequest,
    read_delay_request,
)
from headwater.client.producer.record import ProducerRecord
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)

NOW_MS = 1_000_000
RECORD = ProducerRecord("orders", b"v", b"k", 3, {"source": "web"})
SOURCE = ("source", b"web")


class FakeConnection:
    """What a cluster says of one topic's delays; stands for a channel too."""

    def __init__(self, mode: str | None, *, delays: bool = True, error_code: int = 0) -> None:
        self.mode = mode
        self.error_code = error_code
        self.versions = {ApiKey.ALTER_DELAYED: (0, 0)} if delays else {}
        self.level_topics: set[str] = set()
        self.asked: list[str] = []

    async def channel(self) -> "FakeConnection":
        return self

    async def ask(
        self, request: DescribeConfigsRequest | MetadataRequest, _: object
    ) -> DescribeConfigsResponse | MetadataResponse:
        if isinstance(request, MetadataRequest):
            return self._metadata(request)
        [resource] = request.resources
        assert resource.configuration_keys == ["delay.mode"]
        self.asked.append(resource.resource_name)
        configs = [] if self.mode is None else [
            DescribeConfigsResourceResult(name="delay.mode", value=self.mode)
        ]  # fmt: skip
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(error_code=self.error_code, configs=configs)]
        )

    async def retrying(
        self, attempt: Callable[[], Awaitable[Any]], *_: object, **__: object
    ) -> Any:
        return await attempt()

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        assert not request.allow_auto_topic_creation
        assert request.topics is None
        self.asked.append("all topics")
        names = ["orders", "__delay_dead", "__delay_", "__delay_60s", *sorted(self.level_topics)]
        return MetadataResponse(topics=[MetadataResponseTopic(name=name) for name in names])


class Tried:
    """A producer's delayed records on such a cluster."""

    def __init__(self, connection: FakeConnection) -> None:
        self.now_s = 0.0

        async def find_partitions(_: str) -> list[PartitionInfo]:
            return []

        self.records = DelayedRecords(
            cast(ClusterConnection, connection),
            find_partitions,
            timeout_s=1,
            wall_ms=lambda: NOW_MS,
            now_s=lambda: self.now_s,
        )

    def send(self, record: ProducerRecord = RECORD, **arguments: Any) -> ProducerRecord:
        asked = delayed(record, **arguments)
        ready = self.records.ready(record, asked)
        return asyncio.run(self.records.prepare(record, asked)) if ready is None else ready


def delayed(record: ProducerRecord = RECORD, **arguments: Unpack[DelayArguments]) -> DelayRequest:
    asked = read_delay_request(arguments, has_timestamp=record.timestamp_ms is not None)
    assert asked is not None
    return asked


@pytest.mark.parametrize("mode", ["header", "levels"])
def test_headers_where_they_count(mode: str) -> None:
    tried = Tried(FakeConnection(mode))
    sent = tried.send(delay="30s")
    assert sent == RECORD._replace(headers=(SOURCE, ("headwater-delay", b"30000")))
    sent = tried.send(deliver_at=5, delay_id="mine", expire_at=6)
    assert sent.headers == (
        SOURCE,
        ("headwater-deliver-at", b"5"),
        ("headwater-delay-id", b"mine"),
        ("headwater-expire-at", b"6"),
    )


def test_the_records_time_where_that_counts() -> None:
    tried = Tried(FakeConnection("timestamp"))
    sent = tried.send(delay="1s", delay_id=b"mine")
    assert sent.timestamp_ms == NOW_MS + 1000
    assert sent.headers == (SOURCE, ("headwater-delay-id", b"mine"))
    assert tried.send(deliver_at=NOW_MS + 7).timestamp_ms == NOW_MS + 7
    timed = RECORD._replace(timestamp_ms=NOW_MS + 9)
    assert tried.send(timed, delay_id="mine").timestamp_ms == NOW_MS + 9
    with pytest.raises(ValueError, match="give either timestamp_ms"):
        tried.send(timed, delay="1s")


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("off", "its delay.mode is off. .*headwater configs alter --topic orders"),
        (None, "its delay.mode is off"),
        ("fixed", "all of its records wait for delay.ms"),
    ],
)
def test_a_topic_that_would_ignore_it_is_told(mode: str | None, sentence: str) -> None:
    connection = FakeConnection(mode)
    tried = Tried(connection)
    with pytest.raises(NoDelaysError, match=sentence):
        tried.send(delay="30s")
    # Whoever sets it need not make the producer anew.
    connection.mode = "header"
    assert tried.send(delay="30s").topic == "orders"


def test_a_topic_is_asked_once_in_a_while() -> None:
    connection = FakeConnection("header")
    tried = Tried(connection)
    for _ in range(3):
        tried.send(delay=1)
    tried.send(RECORD._replace(topic="payments"), delay=1)
    assert connection.asked == ["orders", "payments"]
    tried.now_s = 301
    connection.mode = "off"
    with pytest.raises(NoDelaysError):
        tried.send(delay=1)


def test_who_may_not_see_settings_is_believed() -> None:
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    tried = Tried(FakeConnection(None, error_code=refused))
    assert tried.send(delay=1).headers == (SOURCE, ("headwater-delay", b"1"))


def test_other_errors_are_told() -> None:
    tried = Tried(FakeConnection(None, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    with pytest.raises(ClusterAuthorizationFailedError):
        tried.send(delay=1)


def test_on_other_clusters_the_level_topic_is_chosen() -> None:
    connection = FakeConnection(None, delays=False)
    connection.level_topics = {"__delay_30s", "__delay_5s"}
    tried = Tried(connection)
    for _ in range(2):
        sent = tried.send(delay="17s")
        assert sent == ProducerRecord(
            "__delay_30s",
            b"v",
            b"k",
            None,
            (SOURCE, ("headwater-topic", b"orders"), ("headwater-partition", b"3")),
        )
    assert connection.asked == ["all topics"]
    assert tried.send(deliver_at=NOW_MS + 5000).topic == "__delay_5s"
    # What is over is due at once: after the shortest delay that there is.
    assert tried.send(deliver_at=5).topic == "__delay_5s"


def test_a_delay_service_with_levels_of_its_own() -> None:
    connection = FakeConnection(None, delays=False)
    connection.level_topics = {"__delay_250ms", "__delay_90s", "__delay_3d"}
    tried = Tried(connection)
    sent = [tried.send(delay=delay).topic for delay in ("1ms", "1s", "90s", "91s")]
    assert sent == ["__delay_250ms", "__delay_90s", "__delay_90s", "__delay_3d"]
    with pytest.raises(ValueError, match="longer than the longest level, 3d"):
        tried.send(delay="4d")
    # A level that is new is found when what is known is old.
    connection.level_topics.add("__delay_1s")
    assert tried.send(delay="1s").topic == "__delay_90s"
    tried.now_s = 301
    assert tried.send(delay="1s").topic == "__delay_1s"
    assert connection.asked == ["all topics"] * 2


def test_a_level_topic_must_be_there_already() -> None:
    tried = Tried(FakeConnection(None, delays=False))
    with pytest.raises(NoDelaysError, match="no topic '__delay_30s', or any other"):
        tried.send(delay="30s")


def test_a_delay_service_has_delays_alone() -> None:
    tried = Tried(FakeConnection(None, delays=False))
    with pytest.raises(NoDelaysError, match="need brokers of Headwater"):
        tried.send(delay="30s", delay_id="mine")
    with pytest.raises(ValueError, match="longer than the longest level"):
        tried.send(delay="3h")


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"delay": 1, "deliver_at": 1}, ValueError, "either delay or deliver_at, not both"),
        ({"delay_id": "mine"}, ValueError, "give a delay too"),
        ({"expire_at": 5}, ValueError, "give a delay too"),
        ({"delay": 1, "expire_at": -5}, ValueError, "expire_at .* negative"),
        ({"delay": 1, "delay_id": ""}, ValueError, "cannot be empty"),
        ({"delay": -1}, ValueError, "negative"),
        ({"delay": 2**63}, ValueError, "later than any time"),
        ({"delay": "soon"}, ValueError, "no length of time"),
        ({"deliver_at": "now"}, TypeError, "must be a datetime"),
        ({"partion": 3}, TypeError, r"send\(\) has no argument 'partion'"),
    ],
)
def test_wrong_use(arguments: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        delayed(**arguments)


def test_an_id_alone_delays_nothing() -> None:
    tried = Tried(FakeConnection("header"))
    with pytest.raises(ValueError, match="for a delay or deliver_at"):
        tried.send(RECORD._replace(timestamp_ms=NOW_MS + 9), delay_id="mine")


def test_a_refusal_is_an_error_of_the_clients() -> None:
    assert issubclass(NoDelaysError, KafkaError)
    assert NoDelaysError.options().code is ErrorCode.INVALID_CONFIG


def test_arguments_that_are_none_are_none() -> None:
    assert read_delay_request({"delay": None, "expire_at": None}, has_timestamp=False) is None
