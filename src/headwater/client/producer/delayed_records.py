"""Records that are to be delivered later: how that is told to the cluster at hand.

Brokers of Headwater say that they delay by serving AlterDelayed, and a topic of theirs says in
`delay.mode` what counts: headers, or the time of the record. Where it is off they would pass over
the header in silence, so the first delayed record for a topic asks, and is refused here. Other
clusters have delay levels: topics that a delay service forwards from, if one runs; which ones there
are says which levels that service has. What was learned is kept for a while; records that are not
delayed never ask.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Final

from headwater.base.durations import LONG_MAX
from headwater.base.errors import ErrorCode
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.client.errors import topic_refusal
from headwater.client.producer.delay_levels import (
    LEVELS,
    Level,
    level_for,
    level_record,
    levels_among,
)
from headwater.client.producer.errors import NoDelaysError
from headwater.client.producer.intake.delay_request import DelayRequest
from headwater.client.producer.intake.serializers import checked_headers
from headwater.client.producer.record import ProducerRecord
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse

#: How long what a topic said is believed.
_KNOWN_S: Final = 300.0
_TOPIC_RESOURCE: Final = 2
_MODE: Final = "delay.mode"


class DelayWay(Enum):
    """What makes the records of a topic wait."""

    HEADER = "header"
    TIMESTAMP = "timestamp"
    #: Another topic, which a delay service forwards from.
    LEVEL_TOPIC = "level topic"


_WAY_BY_MODE: Final = {
    "header": DelayWay.HEADER,
    "levels": DelayWay.HEADER,
    "timestamp": DelayWay.TIMESTAMP,
}


class DelayedRecords:
    """Its `ready` may be called from any thread, all else on the producer's loop."""

    def __init__(
        self,
        connection: ClusterConnection,
        find_partitions: Callable[[str], Awaitable[list[PartitionInfo]]],
        *,
        timeout_s: float,
        wall_ms: Callable[[], int],
        now_s: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._find_partitions = find_partitions
        self._timeout_s = timeout_s
        self._wall_ms = wall_ms
        self._now_s = now_s
        #: How each topic's records are made to wait, and until when that is believed.
        self._ways: dict[str, tuple[DelayWay, float]] = {}
        #: The levels of the delay service, rising, as of the last time that somebody asked.
        self._levels: tuple[Level, ...] = ()

    def ready(self, record: ProducerRecord, asked: DelayRequest) -> ProducerRecord | None:
        """The record as it has to be sent; None if the cluster must be asked first."""
        way, until_s = self._ways.get(record.topic, (None, 0.0))
        if way is None or self._now_s() >= until_s:
            return None
        return _made(record, asked, way, self._wall_ms(), self._levels)

    async def prepare(self, record: ProducerRecord, asked: DelayRequest) -> ProducerRecord:
        """The same, after asking the cluster."""
        way = await self._find_way(record.topic)
        now_ms = self._wall_ms()
        if way is DelayWay.LEVEL_TOPIC:
            self._levels = await self._find_levels()
            if not self._levels:
                # Before anybody is told what such a service could not do either.
                _made(record, asked, way, now_ms, LEVELS)
                raise NoDelaysError.level(level_for(asked.delay_from(now_ms)).topic)
        made = _made(record, asked, way, now_ms, self._levels)
        self._ways[record.topic] = (way, self._now_s() + _KNOWN_S)
        return made

    async def _find_way(self, topic: str) -> DelayWay:
        # It may have to be created first, and then says what the cluster's default is.
        await self._find_partitions(topic)

        async def attempt() -> DelayWay:
            channel = await self._connection.channel()
            if ApiKey.ALTER_DELAYED not in channel.versions:
                return DelayWay.LEVEL_TOPIC
            resource = DescribeConfigsResource(
                resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=[_MODE]
            )
            request = DescribeConfigsRequest(resources=[resource])
            response = await self._connection.ask(request, DescribeConfigsResponse)
            [result] = response.results
            if result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                # Who may write need not see settings; then the caller must know.
                return DelayWay.HEADER
            if result.error_code:
                raise topic_refusal(result.error_code, result.error_message, topic)
            mode = next((each.value for each in result.configs if each.name == _MODE), None)
            way = _WAY_BY_MODE.get(mode or "")
            if way is None:
                raise NoDelaysError.topic(topic, mode or "off")
            return way

        return await self._connection.retrying(
            attempt, f"Asking for delay.mode of topic {topic!r}", timeout_s=self._timeout_s
        )

    async def _find_levels(self) -> tuple[Level, ...]:
        """Those whose topics are there: one that came into being by a record nobody forwards."""
        # Asked for here: what the producer knows of topics is its upkeep's to learn.
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)

        async def attempt() -> tuple[Level, ...]:
            response = await self._connection.ask(request, MetadataResponse)
            return levels_among(topic.name or "" for topic in response.topics)

        return await self._connection.retrying(
            attempt, "Looking up the topics of a delay service", timeout_s=self._timeout_s
        )


def _made(
    record: ProducerRecord,
    asked: DelayRequest,
    way: DelayWay,
    now_ms: int,
    levels: Sequence[Level],
) -> ProducerRecord:
    headers = checked_headers(record.headers)
    if way is DelayWay.LEVEL_TOPIC:
        return _for_level(record, asked, now_ms, levels)
    if not asked.has_time and way is DelayWay.HEADER:
        raise ValueError(
            f"delay_id and expire_at are for records that wait, and those of {record.topic!r} do "
            "so for a delay or deliver_at."
        )
    if way is DelayWay.TIMESTAMP and asked.has_time:
        if record.timestamp_ms is not None:
            raise ValueError(
                f"Records of {record.topic!r} are delivered at their own time: give either "
                "timestamp_ms, or delay or deliver_at."
            )
        due_ms = min(now_ms + asked.delay_from(now_ms), LONG_MAX)
        return record._replace(headers=(*headers, *asked.other_headers()), timestamp_ms=due_ms)
    return record._replace(headers=(*headers, *asked.due_headers(), *asked.other_headers()))


def _for_level(
    record: ProducerRecord, asked: DelayRequest, now_ms: int, levels: Sequence[Level]
) -> ProducerRecord:
    if asked.other_headers() or not asked.has_time:
        raise NoDelaysError.options()
    made = level_record(
        record.topic,
        asked.delay_from(now_ms),
        checked_headers(record.headers),
        partition=record.partition,
        levels=levels,
    )
    return record._replace(topic=made.topic, headers=made.headers, partition=None)
