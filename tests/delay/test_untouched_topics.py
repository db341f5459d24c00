"""A topic without delays is what it always was: its files are those of a log that knows of none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.storage.disk.disk_files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import NO_DELAYS, LogConfig
from headwater.storage.recovery.loader import LogLoader
from headwater.wire.delayed.headers import DELAY_HEADER, DELAY_ID_HEADER, DELIVER_AT_HEADER
from headwater.wire.records import Compression, Record, encode_batch
from tests.support.brokers.running_broker import RunningBroker, run_broker_scenario

NOW_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
#: So large that the topic's smallest segments are rolled.
_LARGE = 400_000


def batch(number: int, compression: Compression = Compression.NONE, size: int = 100) -> bytes:
    """Records with every header that delays know, of a producer that numbers them."""
    headers = (
        (DELAY_HEADER, b"cancel" if number % 3 == 2 else b"30s"),
        (DELIVER_AT_HEADER, b"9000000000000"),
        (DELAY_ID_HEADER, b"mine"),
    )
    records = [
        Record(each, NOW_MS + number, b"key", bytes([number]) * size, headers[: each % 4])
        for each in range(4)
    ]
    return encode_batch(
        records,
        compression=compression,
        producer_id=7,
        producer_epoch=0,
        base_sequence=4 * number,
    )


BATCHES = [
    *(batch(number) for number in range(50)),
    batch(50, Compression.GZIP),
    batch(51, Compression.LZ4),
    *(batch(number, size=_LARGE // 4) for number in range(52, 58)),
]


def files_of(directory: Path) -> dict[str, bytes]:
    """All that a log's directory holds, but for its topic's id, which is never the same."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name != "partition.metadata"
    }


def write_plainly(directory: Path, config: LogConfig) -> None:
    """Write the batches to a log that nobody looks after."""
    files = DiskFiles()
    log = LogLoader(
        ORDERS, str(directory), config, files, HandleCache(files, 100), now_ms=NOW_MS
    ).load()
    for each in BATCHES:
        log.append_as_leader(bytearray(each), leader_epoch=0, now_ms=NOW_MS)
    log.close()


@pytest.mark.parametrize("settings", [{}, {"delay.mode": "off"}], ids=["by default", "asked for"])
def test_a_topic_without_delays_does_not_change_by_a_byte(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    configs: list[LogConfig] = []
    written = tmp_path / "broker"

    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic(ORDERS.topic, configs={**settings, "segment.bytes": "1048576"})
        for number, each in enumerate(BATCHES):
            answer = await broker.produce_batch(ORDERS.topic, each)
            assert (answer.error_code, answer.base_offset) == (0, 4 * number)
        context = broker.server.context
        assert list(context.delays) == []
        configs.append(context.partitions.get(*ORDERS).log.config)

    run_broker_scenario(written, scenario)
    write_plainly(tmp_path / "plain", replace(configs[0], delay=NO_DELAYS))
    found = files_of(written / str(ORDERS))
    assert len([name for name in found if name.endswith(".log")]) > 1
    assert found == files_of(tmp_path / "plain")
