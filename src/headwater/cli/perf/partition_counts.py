"""What a number of partitions costs and brings, measured on a topic that is made for it.

More partitions let more brokers, disks and consumers work at once, so a topic takes and gives more,
up to a threshold; behind it each batch is smaller and everything takes longer. And each partition
has to be made, opened when its broker starts, led by somebody else when it fails, and deleted. So
for each number there are, on a topic of that many partitions, which is deleted again:

    start     from asking for the topic until every partition has a leader
    written   as fast as one producer goes, for so many seconds; and read again by one consumer
    latency   of acknowledgements, at a fifth of that rate
    failover  every partition is led by another broker at once: from asking for that until each of
              them has taken a record again. Replicas stay where they are
    stop      from asking to delete the topic until nobody knows it any more
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.perf.report import Latencies
from headwater.cli.perf.runs import (
    Pace,
    ProduceLoad,
    make_producer,
    measure_consume,
    random_values,
)
from headwater.client.admin import AdminOperations, NewTopic
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata

#: More than one controller takes in one go.
PARTITIONS_MAX: Final = 10_000
_VALUES_DIFFERENT: Final = 500
#: At full speed the clock is looked at once for so many records.
_BETWEEN_LOOKS: Final = 256
#: What a latency is measured at, of the rate that can be had, so that nothing queues.
_STEADY_SHARE: Final = 0.2
_STEADY_PER_S_MAX: Final = 1_000.0
_QUIET_S: Final = 10.0
_LOOK_S: Final = 0.02


class CountLoad(NamedTuple):
    """How it is measured."""

    seconds: float
    record_size: int
    acks: str
    #: None for that of the cluster.
    replication_factor: int | None


class CountResult(NamedTuple):
    """What one number of partitions brought; None for what could not be measured."""

    partition_count: int
    replica_count: int
    start_s: float
    written_per_s: float
    read_per_s: float
    p50_ms: float
    p99_ms: float
    #: With one replica there is nobody else to lead.
    failover_s: float | None
    stop_s: float

    def as_dict(self) -> dict[str, object]:
        return {
            "partitions": self.partition_count,
            "replicas": self.replica_count,
            "start_seconds": round(self.start_s, 4),
            "bytes_written_per_second": round(self.written_per_s),
            "bytes_read_per_second": round(self.read_per_s),
            "latency_p50_ms": round(self.p50_ms, 3),
            "latency_p99_ms": round(self.p99_ms, 3),
            "failover_seconds": None if self.failover_s is None else round(self.failover_s, 4),
            "stop_seconds": round(self.stop_s, 4),
        }


async def measure_count(
    connection: ClusterConnection,
    bootstrap: str,
    partition_count: int,
    load: CountLoad,
    tell: Callable[[str], None],
) -> CountResult:
    """Make a topic, measure, and delete it, whatever happens."""
    admin = AdminOperations(connection)
    topic = f"headwater-perf-{partition_count}-{secrets.token_hex(4)}"
    produced = ProduceLoad(
        topic, 0, load.record_size, None, load.acks, "none", 256 << 10, 5, partition_count
    )
    tell("made")
    begun_s = time.perf_counter()
    factor = load.replication_factor
    wanted = NewTopic(topic, partition_count=partition_count)
    await admin.create_topics(
        [wanted if factor is None else wanted._replace(replication_factor=factor)]
    )
    try:
        info = await _led_topic(connection, topic, partition_count)
        start_s = time.perf_counter() - begun_s
        tell("written")
        record_count, elapsed_s = await _write(bootstrap, produced, load.seconds)
        per_s = record_count / elapsed_s
        tell("read")
        read = await measure_consume(
            connection,
            bootstrap,
            topic,
            record_count,
            from_latest=False,
            quiet_s=_QUIET_S,
            show_bar=False,
        )
        tell("timed")
        steady = min(per_s * _STEADY_SHARE, _STEADY_PER_S_MAX)
        latencies = await _time(bootstrap, produced, steady, load.seconds)
        tell("led by others")
        failover_s = await _fail_over(connection, bootstrap, produced, info)
        tell("deleted")
        begun_s = time.perf_counter()
    finally:
        await admin.delete_topics([topic])
    await _until_gone(connection, topic)
    return CountResult(
        partition_count,
        len(info.partitions[0].replicas),
        start_s,
        per_s * load.record_size,
        read.size_bytes / max(read.elapsed_s, 1e-9),
        latencies.get("p50", 0.0),
        latencies.get("p99", 0.0),
        failover_s,
        time.perf_counter() - begun_s,
    )


async def _write(bootstrap: str, load: ProduceLoad, seconds: float) -> tuple[int, float]:
    """How many records were written in how long, to the last acknowledgement."""
    values = random_values(load.record_size, _VALUES_DIFFERENT)
    sent_count = 0
    async with make_producer(bootstrap, load) as producer:
        await producer.partitions_for(load.topic)
        begun_s = time.perf_counter()
        while time.perf_counter() - begun_s < seconds:
            for number in range(_BETWEEN_LOOKS):
                await producer.send(load.topic, values[number % len(values)])
            sent_count += _BETWEEN_LOOKS
        await producer.flush()
        elapsed_s = time.perf_counter() - begun_s
        failed_count = int((await producer.metrics())["record-error-total"])
    if failed_count:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"{failed_count:,} of {sent_count:,} records were not written.",
        )
    return sent_count, elapsed_s


async def _time(
    bootstrap: str, load: ProduceLoad, per_s: float, seconds: float
) -> dict[str, float]:
    """Acknowledgements in milliseconds, from when each record was due."""
    latencies = Latencies()
    [value] = random_values(load.record_size, 1)

    def timed_from(due_s: float) -> OnDelivery:
        def note(_metadata: RecordMetadata | None, _error: KafkaError | None) -> None:
            latencies.add(time.perf_counter() - due_s)

        return note

    pace = Pace(per_s)
    async with make_producer(bootstrap, load._replace(linger_ms=0)) as producer:
        await producer.partitions_for(load.topic)
        for _ in range(max(1, int(per_s * seconds))):
            due_s = await pace.next()
            await producer.send(load.topic, value, on_delivery=timed_from(due_s))
        await producer.flush()
    return latencies.summary_ms()


async def _fail_over(
    connection: ClusterConnection, bootstrap: str, load: ProduceLoad, info: TopicInfo
) -> float | None:
    """Have the next replica of each partition lead it, and write to all of them."""
    if any(len(each.replicas) < 2 for each in info.partitions):
        return None
    admin = AdminOperations(connection)
    keys = {TopicPartition(load.topic, each.partition): each.replicas for each in info.partitions}
    async with asyncio.timeout(connection.timeout_s):
        # The same brokers in another order: nothing moves.
        await admin.alter_partition_reassignments(
            {key: (*replicas[1:], replicas[0]) for key, replicas in keys.items()}
        )
        while await admin.list_partition_reassignments(list(keys)):
            await asyncio.sleep(_LOOK_S)
        async with make_producer(bootstrap, load._replace(linger_ms=0)) as producer:

            async def write_to_each() -> None:
                sent = [
                    await producer.send(load.topic, b"failover", partition=key.partition)
                    for key in keys
                ]
                for acknowledged in sent:
                    await acknowledged

            await write_to_each()
            begun_s = time.perf_counter()
            await admin.elect_leaders(list(keys))
            await write_to_each()
            return time.perf_counter() - begun_s


async def _led_topic(connection: ClusterConnection, topic: str, partition_count: int) -> TopicInfo:
    """The topic, when all of its partitions have leaders."""
    async with asyncio.timeout(connection.timeout_s):
        while True:
            await connection.refresh([topic])
            found = connection.metadata.topic(topic)
            if (
                found is not None
                and len(found.partitions) == partition_count
                and all(each.has_leader for each in found.partitions)
            ):
                return found
            await asyncio.sleep(_LOOK_S)


async def _until_gone(connection: ClusterConnection, topic: str) -> None:
    async with asyncio.timeout(connection.timeout_s):
        while True:
            await connection.refresh([topic])
            if connection.metadata.topic(topic) is None:
                return
            await asyncio.sleep(_LOOK_S)


def smallest_of(results: Collection[CountResult], share: float) -> CountResult:
    """The one with the fewest partitions that writes so much of what the best one does."""
    best = max(each.written_per_s for each in results)
    return min(
        (each for each in results if each.written_per_s >= share * best),
        key=lambda each: each.partition_count,
    )
