"""Questions about offsets, deleted records and fetches: see `questions`."""

from __future__ import annotations

from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headwater.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.other_clients.questions.questions import NOW_MS, STRANGER, Conversation
from tests.support.other_clients.raw import FETCH_BY_ID, fetch_topic


def offsets(conversation: Conversation) -> None:
    conversation.create("times", 2)
    conversation.produce("times", NOW_MS, NOW_MS + 20, NOW_MS + 10)

    def at(
        label: str,
        timestamp: int,
        *,
        partition: int = 0,
        epoch: int = -1,
        topic: str = "times",
        replica: int = -1,
        isolation: int = 0,
    ) -> None:
        wanted = ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=replica,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        )
        conversation.ask(f"offset {label}", lambda _: request)

    for timestamp in range(-7, 0):
        at(f"special {timestamp}", timestamp)
        at(f"special {timestamp} of nothing", timestamp, partition=1)
    for timestamp in (0, NOW_MS, NOW_MS + 5, NOW_MS + 15, NOW_MS + 20, NOW_MS + 21):
        at(f"time {timestamp - NOW_MS}", timestamp)
    at("time of nothing", NOW_MS, partition=1)
    at("committed", -1, isolation=1)
    at("no such partition", -1, partition=9)
    at("no such topic", -1, topic="stranger")
    at("epoch", -1, epoch=0)
    at("an older epoch", -1, epoch=-2)
    at("a newer epoch", -1, epoch=9)
    at("a replica", -1, replica=1)
    at("a debugger", -1, replica=-2)

    def twice(_: int) -> ListOffsetsRequest:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
        topic = ListOffsetsTopic(name="times", partitions=[wanted, wanted])
        return ListOffsetsRequest(replica_id=-1, topics=[topic])

    conversation.ask("offset twice", twice)

    def epoch_end(
        label: str, epoch: int, current: int = -1, partition: int = 0, topic: str = "times"
    ) -> None:
        wanted = OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=current, leader_epoch=epoch
        )
        request = OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
        )
        conversation.ask(f"epoch {label}", lambda _: request)

    for epoch in (-1, 0, 1, 9):
        epoch_end(f"{epoch}", epoch)
        epoch_end(f"{epoch} of nothing", epoch, partition=1)
    epoch_end("by the leader's", 0, current=0)
    epoch_end("by a newer leader's", 0, current=5)
    epoch_end("no such partition", 0, partition=7)
    epoch_end("no such topic", 0, topic="stranger")


def deleted_records(conversation: Conversation) -> None:
    conversation.create("shrinks", 2)
    conversation.produce("shrinks", *range(NOW_MS, NOW_MS + 5))

    def delete(label: str, offset: int, partition: int = 0, topic: str = "shrinks") -> None:
        wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=5_000
        )
        conversation.ask(f"delete records {label}", lambda _: request)

    delete("to 2", 2)
    delete("to 1", 1)
    delete("too far", 6)
    delete("below", -2)
    delete("of nothing", 0, partition=1)
    delete("no such partition", 0, partition=7)
    delete("no such topic", 0, topic="stranger")
    delete("all", -1)
    conversation.create("compacted", cleanup_policy="compact")
    delete("of a compacted topic", -1, topic="compacted")


def fetches(conversation: Conversation) -> None:
    conversation.create("fetched", 2)
    conversation.produce("fetched", *range(NOW_MS, NOW_MS + 5))
    topic_id = conversation.connection.topic_id("fetched")

    def fetch(
        label: str,
        *offsets: int,
        topic: str = "fetched",
        partition_bytes_max: int = 1_000_000,
        epoch: int = -1,
        fetched_epoch: int = -1,
        isolation: int = 0,
        bytes_max: int = 2**31 - 1,
    ) -> None:
        def make(version: int) -> FetchRequest:
            wanted = fetch_topic(topic, *offsets, partition_bytes_max=partition_bytes_max)
            if version >= FETCH_BY_ID:
                wanted.topic_id = topic_id if topic == "fetched" else STRANGER
            for partition in wanted.partitions:
                partition.current_leader_epoch = epoch
                partition.last_fetched_epoch = fetched_epoch
            return FetchRequest(
                topics=[wanted], isolation_level=isolation, max_bytes=bytes_max, session_epoch=-1
            )

        conversation.ask(f"fetch {label}", make)

    fetch("all", 0, 0)
    fetch("committed", 0, isolation=1)
    fetch("from within", 3)
    fetch("at the end", 5)
    fetch("behind the end", 6)
    fetch("below", -1)
    fetch("little", 0, partition_bytes_max=1)
    fetch("nothing", 0, partition_bytes_max=0)
    fetch("little in all", 0, 0, bytes_max=1)
    fetch("no such partition", 0, 0, 0)
    fetch("no such topic", 0, topic="stranger")
    fetch("by epoch", 0, epoch=0)
    fetch("by a newer epoch", 0, epoch=9)
    fetch("after its own epoch", 2, fetched_epoch=0)
    fetch("after a later epoch", 2, fetched_epoch=5)
