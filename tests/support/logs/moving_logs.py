"""A log on its way from one of two directories to the other."""

from headwater.sim.campaigns.broker_logs import TOPIC_ID, append, open_directories, orders
from headwater.sim.campaigns.logs import NOW_MS, read_records
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.directories.future_log import FutureLog
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog

PATHS = ["/a", "/b"]
CONFIG = LogConfig(segment_bytes=600)


def values_of(log: PartitionLog) -> list[bytes]:
    return [record.value or b"" for record in read_records(log, log.log_start_offset)]


def directories_with_log(
    disk: FaultyDisk, batch_count: int = 10, high_watermark: int | None = None
) -> tuple[LogDirectories, PartitionLog]:
    directories = open_directories(disk, PATHS, CONFIG)
    log = directories.create(orders(0), TOPIC_ID, NOW_MS, path="/a")
    for number in range(batch_count):
        append(log, b"%d" % number, b"%d+" % number)
    log.raise_high_watermark(log.log_end_offset if high_watermark is None else high_watermark)
    return directories, log


def started(directories: LogDirectories) -> FutureLog:
    move = directories.moves.start(orders(0), "/b", NOW_MS)
    assert move is not None
    return move


def copy_all(move: FutureLog) -> None:
    while move.lag:
        assert move.copy(NOW_MS, max_bytes=300) > 0
