"""Looking into clients' records in threads, with a bound on what all of them hold at once.

A batch of some kilobytes may decompress to `max.decompressed.message.bytes`, and nobody can tell
before it is done. If each thread were allowed that much, a dozen small requests would take
gigabytes. So every batch is tried with a small bound first, which nearly all keep. One that turns
out to be larger is put aside, and decompressed again on the one thread that has all of those, in
the order in which they came.

So what is held is at most the small bound for each thread of the pool, and the large one once. A
lock would not be enough for that: malloc keeps memory back for each thread that has used much, and
eight threads kept 430 MB.
"""

from __future__ import annotations

import traceback
from typing import Final

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.threads import RunInThread
from headwater.storage.append.leader import PreparedBatches, prepare_batches
from headwater.storage.log_config import LogConfig
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.records import Buffer, DecompressedTooLargeError

#: What any number of threads may have decompressed each: several times the usual batch of 1 MB.
SMALL_BYTES_MAX: Final = 8 << 20


class RecordInspections:
    """One for all partitions of a broker; its owner is the event loop."""

    __slots__ = ("_run_in_one_thread", "_run_in_thread")

    def __init__(self, run_in_thread: RunInThread, run_in_one_thread: RunInThread) -> None:
        self._run_in_thread = run_in_thread
        self._run_in_one_thread = run_in_one_thread

    async def prepare(
        self, records: Buffer, config: LogConfig, now_ms: int, partition: TopicPartition
    ) -> PreparedBatches:
        """`prepare_batches` in a thread; raises what that raises."""

        def prepare(allowed: int) -> PreparedBatches:
            try:
                return prepare_batches(
                    records,
                    config,
                    now_ms,
                    AppendOrigin.CLIENT,
                    partition,
                    max_decompressed_bytes=allowed,
                )
            except KafkaError as error:
                # As long as an error is around, its traceback keeps what was decompressed.
                traceback.clear_frames(error.__traceback__)
                raise

        try:
            return await self._run_in_thread(lambda: prepare(SMALL_BYTES_MAX))
        except DecompressedTooLargeError:
            allowed = config.max_decompressed_message_bytes
            if allowed <= SMALL_BYTES_MAX:
                raise
        return await self._run_in_one_thread(lambda: prepare(allowed))
