"""Questions about transactions: see `questions`.

Producer ids are a broker's own, so each conversation asks with those that it was given.
"""

from __future__ import annotations

from typing import Any

from headwater.testing.broker_process import wait_until
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headwater.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headwater.wire.messages.describe_transactions import DescribeTransactionsRequest
from headwater.wire.messages.end_txn import EndTxnRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.list_transactions import ListTransactionsRequest
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headwater.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headwater.wire.records import Record, encode_batch
from tests.support.other_clients.questions.groups import GroupConversation
from tests.support.other_clients.questions.questions import NOW_MS
from tests.support.other_clients.raw import PRODUCE_BY_ID, RawConnection, produce_request
from tests.support.other_clients.transactions.raw import (
    Producer,
    add_partitions,
    end,
    new_producer,
    stable_offset,
    write,
)

#: Since when AddPartitionsToTxn speaks of several transactions.
SEVERAL = 4


def _add(producer: Producer, **topics: int) -> Any:
    """Adds a partition of each topic; underscores stand for dashes."""
    wanted = [
        AddPartitionsToTxnTopic(name=name.replace("_", "-"), partitions=[number])
        for name, number in topics.items()
    ]

    def make(version: int) -> AddPartitionsToTxnRequest:
        if version >= SEVERAL:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                verify_only=True,
                topics=wanted,
            )
            return AddPartitionsToTxnRequest(transactions=[transaction])
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=wanted,
        )

    return make


def _initialise(transactional_id: str | None, timeout_ms: int = 60_000, **more: Any) -> Any:
    return lambda _: InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, **more
    )


def _end(producer: Producer, commit: bool) -> Any:
    return lambda _: EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )


def _offsets(producer: Producer, group: str, topic: str, **more: Any) -> Any:
    partition = TxnOffsetCommitRequestPartition(
        partition_index=more.pop("partition", 0),
        committed_offset=3,
        committed_metadata=more.pop("metadata", ""),
    )
    return lambda _: TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        **more,
    )


def producers(conversation: GroupConversation) -> None:
    """Who may begin a transaction, and who is fenced."""
    talk = conversation
    offered = talk.versions[ApiKey.INIT_PRODUCER_ID]
    # What comes with version 6 is for brokers that let transactions be prepared.
    below_6 = range(offered.start, min(offered.stop, 6))
    talk.ask("init idempotent", _initialise(None), below_6)
    talk.ask("init empty", _initialise(""), below_6)
    talk.ask("init without time", _initialise("refused", 0), below_6)
    talk.ask("init with negative time", _initialise("refused", -1), below_6)
    talk.ask("init with too much time", _initialise("refused", 10**9), below_6)
    talk.ask("init", _initialise("init"), below_6)
    producer = new_producer(talk.connection, "known")
    since_3 = range(3, below_6.stop)
    for label, identity in {
        "its own": (producer.producer_id, producer.epoch),
        "a later epoch": (producer.producer_id, producer.epoch + 50),
        "another id": (producer.producer_id + 1_000, 0),
        "half of it": (producer.producer_id, -1),
    }.items():
        talk.ask(
            f"init with {label}",
            _initialise("known", producer_id=identity[0], producer_epoch=identity[1]),
            since_3,
        )


def refusals(conversation: GroupConversation) -> None:
    """What producers are told that are unknown, fenced or early."""
    talk = conversation
    talk.create("written", 2)
    first = new_producer(talk.connection, "twice")
    second = new_producer(talk.connection, "twice")
    idle = new_producer(talk.connection, "idle")
    for label, producer in {
        "idle": idle,
        "fenced": first,
        "ahead": second._replace(epoch=second.epoch + 5),
        "with another id": second._replace(producer_id=second.producer_id + 1_000),
        "unknown": second._replace(transactional_id="unknown"),
        "unnamed": second._replace(transactional_id=""),
    }.items():
        for commit in (True, False):
            if label == "idle" and not commit:
                # From version 5 on that ends a transaction which never began, and so changes it.
                talk.ask(f"{label}: abort", _end(producer, commit), range(5))
            else:
                talk.ask(f"{label}: end {commit}", _end(producer, commit))
        if label != "idle":
            talk.ask(f"{label}: add", _add(producer, written=0))
            talk.ask_this(
                f"{label}: add offsets",
                AddOffsetsToTxnRequest(
                    transactional_id=producer.transactional_id,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    group_id="group",
                ),
            )
            talk.ask(f"{label}: offsets", _offsets(producer, "group", "written"))
        batch = encode_batch(
            [Record(0, NOW_MS, None, b"value")],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )

        def produce(version: int, producer: Producer = producer, batch: bytes = batch) -> Any:
            request = produce_request("written", batch)
            request.transactional_id = producer.transactional_id
            return request

        # In later versions writing is what begins a transaction.
        stop = PRODUCE_BY_ID - 1 if label == "idle" else PRODUCE_BY_ID
        talk.ask(f"{label}: write", produce, range(3, stop))
    talk.ask("verify what is not there", _add(idle, written=0), range(4, 6))
    talk.ask("verify no such topic", _add(idle, stranger=0), range(4, 6))
    talk.ask("add no such topic", _add(idle, stranger=0, written=0), range(4))
    talk.ask("add no such partition", _add(idle, written=7), range(4))
    talk.ask("offsets without a word before", _offsets(idle, "group", "written"), range(5))
    talk.ask_this(
        "add offsets without a group",
        AddOffsetsToTxnRequest(
            transactional_id="idle",
            producer_id=idle.producer_id,
            producer_epoch=idle.epoch,
            group_id="",
        ),
    )


def open_transactions(conversation: GroupConversation) -> None:
    """A transaction from its beginning to its end, as tools show it."""
    talk = conversation
    connection = talk.connection
    talk.create("shown", 2)
    producer = new_producer(connection, "shown")
    _show(talk, "before")
    assert add_partitions(connection, producer, "shown") == [0]
    talk.ask("add again", _add(producer, shown=0))
    assert write(connection, producer, "shown", timestamp_ms=NOW_MS, version=11) == 0
    _show(talk, "open")
    # One that its producer does not know of.
    marker = WritableTxnMarker(
        producer_id=producer.producer_id + 5_000,
        producer_epoch=0,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name="stranger", partition_indexes=[0])],
    )
    talk.ask_this("a mark nowhere", WriteTxnMarkersRequest(markers=[marker]))
    assert end(connection, producer, commit=True, version=4).error_code == 0
    _settle(connection, "shown", 2)
    wait_until(lambda: _state(connection, "shown") == "CompleteCommit", "the end is known")
    _show(talk, "committed")
    talk.ask("commit again", _end(producer, True), range(5))
    talk.ask("abort what is committed", _end(producer, False), range(5))
    assert write(connection, producer, "shown", sequence=1, timestamp_ms=NOW_MS) == 0
    _show(talk, "open again")
    ended = end(connection, producer, commit=False)
    assert ended.error_code == 0
    _settle(connection, "shown", 4)
    wait_until(lambda: _state(connection, "shown") == "CompleteAbort", "the end is known")
    _show(talk, "aborted")
    later = producer._replace(epoch=ended.producer_epoch)
    talk.ask("abort again", _end(producer, False), range(5, 6))
    talk.ask("commit what is aborted", _end(producer, True), range(5, 6))
    talk.ask("commit nothing", _end(later, True), range(5, 6))


def _settle(connection: RawConnection, topic: str, offset: int) -> None:
    wait_until(lambda: stable_offset(connection, topic) == offset, "the mark is written")


def _state(connection: RawConnection, transactional_id: str) -> str:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    state: str = connection.ask(request, 0).transaction_states[0].transaction_state
    return state


def _show(talk: GroupConversation, when: str) -> None:
    talk.ask_this(
        f"{when}: describe",
        DescribeTransactionsRequest(transactional_ids=["shown", "unknown", ""]),
    )
    for states in ([], ["Ongoing"], ["CompleteCommit", "CompleteAbort"], ["Nonsense"]):
        talk.ask_this(
            f"{when}: list {states}",
            ListTransactionsRequest(state_filters=states, transactional_id_pattern="shown|nothing"),
            range(2, 3),
        )
    wanted = [
        TopicRequest(name="shown", partition_indexes=[0, 1, 7]),
        TopicRequest(name="stranger", partition_indexes=[0]),
    ]
    talk.ask_this(f"{when}: producers", DescribeProducersRequest(topics=wanted))
