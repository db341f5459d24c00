"""The runtime of coordinators, with a state machine of words on a real broker's partitions."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.change import ImageChange, ImageEdits
from headwater.coordinator.key_hash import partition_for
from headwater.coordinator.outcome import Change, Outcome, ProducerIdentity, Reply
from headwater.coordinator.runtime import CoordinatorRuntime, RuntimeEnvironment
from headwater.coordinator.shard_log import ShardLog, ShardLogOptions
from headwater.coordinator.stored_record import StoredRecord
from headwater.coordinator.timers import Timers
from headwater.replication.partition.partition import Partition
from headwater.storage.errors import LogStorageError
from headwater.wire.records import Compression, ControlType, Record, encode_batch
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

TOPIC = "words"
PARTITIONS = 3
#: What a shard fails at, as one that was changed carelessly would.
POISON = b"poison"


class Words:
    """A shard that remembers a word for each key; a transaction's words count when it commits."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.words: dict[bytes, bytes] = {}
        self.pending: dict[ProducerIdentity, dict[bytes, bytes]] = {}
        self.is_loaded = False
        self.parked: list[Reply[str]] = []

    def put(self, key: str, word: str) -> Change[str]:
        if word == "bad":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "No such word.")
        before = self.words.get(key.encode(), b"").decode()
        return Change(before, [StoredRecord(key.encode(), word.encode())])

    def park(self, reply: Reply[str]) -> Outcome:
        self.parked.append(reply)
        return Outcome()

    def replay(
        self, record: StoredRecord, offset: int, producer: ProducerIdentity | None, now_ms: int
    ) -> None:
        if record.value == POISON:
            raise TypeError("Nobody understands this.")
        target = self.words if producer is None else self.pending.setdefault(producer, {})
        if record.value is None:
            target.pop(record.key, None)
        else:
            target[record.key] = record.value

    def replay_transaction_end(self, producer: ProducerIdentity, *, is_committed: bool) -> None:
        words = self.pending.pop(producer, {})
        if is_committed:
            self.words.update(words)

    def on_loaded(self, now_ms: int) -> None:
        self.is_loaded = True

    def on_image(self, change: ImageChange, now_ms: int) -> list[Outcome]:
        return []

    def close(self, error: KafkaError) -> None:
        for reply in self.parked:
            reply.fail(error)

    def stored_state(self) -> object:
        return self.words, self.pending


Runtime = CoordinatorRuntime[Words]


def new_runtime(broker: HandlerBroker) -> Runtime:
    context = broker.context
    environment = RuntimeEnvironment(
        node_id=context.node_id,
        partitions=context.partitions,
        parked=context.parked,
        timer=context.timer,
        clock=context.clock,
        run_in_thread=context.run_in_thread,
        tasks=context.background,
    )
    options = ShardLogOptions(
        write_timeout_ms=lambda: 5_000,
        load_bytes=lambda: 10_000,
        compression=lambda: Compression.LZ4,
    )
    runtime = CoordinatorRuntime(
        TOPIC, options, environment, lambda _number, _epoch, timers: Words(timers)
    )
    runtime.start(context.image)
    return runtime


def run(directory: Path, scenario: Callable[[HandlerBroker, Runtime], Awaitable[None]]) -> None:
    async def with_runtime(broker: HandlerBroker) -> None:
        await broker.create_topic(TOPIC, partitions=PARTITIONS)
        runtime = new_runtime(broker)
        await runtime.loaded()
        await scenario(broker, runtime)
        runtime.close()

    run_with_broker(directory, with_runtime)


async def put(runtime: Runtime, key: str, word: str) -> str:
    return await runtime.write(key, lambda shard, _: shard.put(key, word))


def words_of(runtime: Runtime) -> dict[bytes, bytes]:
    return {key: word for shard in runtime.shards() for key, word in shard.words.items()}


async def error_of(work: Awaitable[object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await work
    return caught.value.code


def test_a_write_is_replayed_and_answered(tmp_path: Path) -> None:
    async def scenario(_: HandlerBroker, runtime: Runtime) -> None:
        assert await put(runtime, "a", "one") == ""
        assert await put(runtime, "a", "two") == "one"
        assert await runtime.read("a", lambda shard, _: shard.words[b"a"]) == b"two"

    run(tmp_path, scenario)


def test_another_runtime_finds_everything_in_the_topic(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        for number in range(300):
            await put(runtime, f"key-{number % 70}", f"{number}" * 2_000)
        other = new_runtime(broker)
        assert other.is_loading
        assert (
            await error_of(other.read("key-1", lambda shard, _: shard.words))
            is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
        await other.loaded()
        assert words_of(other) == words_of(runtime)
        assert len(words_of(other)) == 70
        assert all(shard.is_loaded for shard in other.shards())
        other.close()

    run(tmp_path, scenario)


def test_what_an_operation_refuses_changes_nothing(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        assert await error_of(put(runtime, "a", "bad")) is ErrorCode.INVALID_REQUEST
        assert all(each.log_end_offset == 0 for each in broker.context.partitions)

    run(tmp_path, scenario)


def test_a_record_that_nobody_understands_costs_its_partition_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        for key in "abcdefgh":
            await put(runtime, key, "good")
        poisoned = partition_for("a", PARTITIONS)
        batch = encode_batch([Record(0, 0, b"a", POISON)])
        broker.context.partitions.get(TOPIC, poisoned).append(batch, acks=-1, now_ms=0)
        other = new_runtime(broker)
        await other.loaded()
        for key in "abcdefgh":
            if partition_for(key, PARTITIONS) == poisoned:
                code = await error_of(put(other, key, "more"))
                assert code is ErrorCode.NOT_COORDINATOR
            else:
                assert await put(other, key, "more") == "good"
        other.close()

    run(tmp_path, scenario)
    [line] = [each for each in caplog.records if "could not be loaded" in each.message]
    assert line.exc_info is not None


def test_a_failed_append_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(_: HandlerBroker, runtime: Runtime) -> None:
        await put(runtime, "a", "one")
        with monkeypatch.context() as patch:

            def fail(*_: object, **__: object) -> None:
                raise LogStorageError("The disk is full.")

            patch.setattr(Partition, "append", fail)
            assert await error_of(put(runtime, "a", "two")) is ErrorCode.NOT_COORDINATOR
        assert await put(runtime, "a", "three") == "one"

    run(tmp_path, scenario)


def test_answers_wait_until_what_they_tell_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Callable[[], None]] = []

    async def scenario(_: HandlerBroker, runtime: Runtime) -> None:
        monkeypatch.setattr(ShardLog, "is_all_safe", lambda _self: False)
        monkeypatch.setattr(
            ShardLog, "when_safe", lambda _self, on_safe, _on_failed: held.append(on_safe)
        )
        write = asyncio.ensure_future(put(runtime, "a", "one"))
        read = asyncio.ensure_future(runtime.read("a", lambda shard, _: dict(shard.words)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not write.done()
        assert not read.done()
        for on_safe in held:
            on_safe()
        assert (await write, await read) == ("", {b"a": b"one"})

    run(tmp_path, scenario)


def test_transactions_end_in_the_partition_and_in_the_state(tmp_path: Path) -> None:
    committed, aborted = ProducerIdentity(7, 0), ProducerIdentity(8, 0)

    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        async def put_pending(producer: ProducerIdentity, word: str) -> str:
            return await runtime.write(
                "a", lambda shard, _: Change("ok", shard.put("a", word).records, producer)
            )

        await put_pending(committed, "yes")
        await put_pending(aborted, "no")
        number = runtime.partition_of("a")
        assert words_of(runtime) == {}
        await runtime.end_transaction(number, committed, ControlType.COMMIT, 0)
        await runtime.end_transaction(number, aborted, ControlType.ABORT, 0)
        assert words_of(runtime) == {b"a": b"yes"}
        partition = broker.context.partitions.get(TOPIC, number)
        assert partition.last_stable_offset == partition.log_end_offset == 4
        other = new_runtime(broker)
        await other.loaded()
        assert words_of(other) == {b"a": b"yes"}
        other.close()

    run(tmp_path, scenario)


def test_a_timer_runs_an_operation_and_can_be_replaced_or_cancelled(tmp_path: Path) -> None:
    async def scenario(_: HandlerBroker, runtime: Runtime) -> None:
        fired: list[str] = []
        done = asyncio.Event()
        shard = next(runtime.shards())

        def operation(word: str) -> Callable[[int], Outcome]:
            def write(_now_ms: int) -> Outcome:
                fired.append(word)
                return Outcome([StoredRecord(b"timer", word.encode())], on_safe=done.set)

            return write

        shard.timers.schedule("x", 1, operation("replaced"))
        shard.timers.schedule("x", 2, operation("kept"))
        shard.timers.schedule("y", 1, operation("cancelled"))
        shard.timers.cancel("y")
        assert shard.timers.is_scheduled("x")
        await asyncio.wait_for(done.wait(), 5)
        assert fired == ["kept"]
        assert shard.words == {b"timer": b"kept"}

    run(tmp_path, scenario)


def test_a_topic_that_is_not_there_has_no_coordinator(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        runtime = new_runtime(broker)
        assert await error_of(put(runtime, "a", "one")) is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run_with_broker(tmp_path, scenario)


def test_whoever_waits_hears_that_the_coordinator_has_moved(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        broker.context.member.subscribe(runtime.on_image)

        def park(shard: Words, _: int, reply: Reply[str]) -> Outcome:
            return shard.park(reply)

        parked = asyncio.ensure_future(runtime.ask("a", park))
        await asyncio.sleep(0)
        await broker.context.controller.delete_topics([TOPIC])
        assert await error_of(parked) is ErrorCode.NOT_COORDINATOR
        assert await error_of(put(runtime, "a", "one")) is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(tmp_path, scenario)


def state_of(
    broker: HandlerBroker, number: int, *, leader: int = 0, leader_epoch: int = 0
) -> tuple[ImageChange, int]:
    """A change of one partition of the topic, which the partition itself has followed already."""
    image = broker.context.image
    present = image.topics[TOPIC].partitions[number]
    state = present._replace(
        leader=leader, leader_epoch=leader_epoch, partition_epoch=present.partition_epoch + 1
    )
    broker.context.partitions.get(TOPIC, number).apply(state)
    return ImageEdits(partitions={TOPIC: {number: state}}).apply(image), state.leader_epoch


def test_a_later_leader_epoch_means_another_shard_though_this_broker_leads_on(
    tmp_path: Path,
) -> None:
    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        number = runtime.partition_of("a")
        await put(runtime, "a", "one")
        before = set(runtime.shards())
        change, epoch = state_of(broker, number, leader_epoch=1)
        # The partition has a later epoch, and the shard does not know yet what came before it.
        assert await error_of(put(runtime, "a", "two")) is ErrorCode.NOT_COORDINATOR
        assert not runtime.is_led("a", epoch)
        await runtime.on_image(change)
        assert runtime.is_led("a", epoch)
        assert not runtime.is_led("a", epoch - 1)
        await runtime.loaded()
        (loaded,) = set(runtime.shards()) - before
        assert loaded.words == {b"a": b"one"}
        assert await put(runtime, "a", "three") == "one"

    run(tmp_path, scenario)


def test_a_partition_that_another_broker_leads_has_no_shard(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        number = runtime.partition_of("a")

        def park(shard: Words, _: int, reply: Reply[str]) -> Outcome:
            return shard.park(reply)

        parked = asyncio.ensure_future(runtime.ask("a", park))
        await asyncio.sleep(0)
        change, _ = state_of(broker, number, leader=9, leader_epoch=1)
        await runtime.on_image(change)
        assert await error_of(parked) is ErrorCode.NOT_COORDINATOR
        assert await error_of(put(runtime, "a", "one")) is ErrorCode.NOT_COORDINATOR
        assert len(list(runtime.shards())) == PARTITIONS - 1
        assert not runtime.is_led("a", 1)

    run(tmp_path, scenario)


def test_changes_of_the_in_sync_replicas_leave_a_shard_alone(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        before = list(runtime.shards())
        change, _ = state_of(broker, runtime.partition_of("a"))
        await runtime.on_image(change)
        assert list(runtime.shards()) == before

    run(tmp_path, scenario)


def test_what_is_taken_over_at_a_time_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        for number in range(40):
            await put(runtime, f"key-{number}", "word")
        caplog.clear()
        other = new_runtime(broker)
        await other.loaded()
        [line] = caplog.messages
        assert re.fullmatch(
            r"words: 3 partitions with 40 records loaded in \d+ ms: 0, 1, 2\.", line
        )
        caplog.clear()
        change, _ = state_of(broker, 1, leader=9, leader_epoch=1)
        await other.on_image(change)
        assert caplog.messages == ["words: 1 partition went to other coordinators: 1."]
        other.close()

    run(tmp_path, scenario)


def test_a_load_that_is_broken_off_does_not_silence_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(broker: HandlerBroker, runtime: Runtime) -> None:
        for number in range(40):
            await put(runtime, f"key-{number}", "word")
        other = new_runtime(broker)
        # Before the loads have begun.
        other.close()
        await other.loaded()
        caplog.clear()
        other.start(broker.context.image)
        await other.loaded()
        assert [line[:36] for line in caplog.messages] == ["words: 3 partitions with 40 records "]
        other.close()

    run(tmp_path, scenario)
