"""Appends to a log in a process of its own, with whatever source is on its path.

    PYTHONPATH=SOURCE python append_job.py DIRECTORY COUNT ROUNDS

prints the appends of one record a second of each round. It imports nothing that older versions do
not have.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter

from headwater.base.ids import TopicPartition
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.recovery.loader import LogLoader
from headwater.wire.records import Record, encode_batch

NOW_MS = 1_700_000_000_000


def main(directory: str, count: int, rounds: int) -> list[float]:
    files = DiskFiles()
    log = LogLoader(
        TopicPartition("bench", 0),
        directory,
        LogConfig(),
        files,
        HandleCache(files, 64),
        now_ms=NOW_MS,
        is_clean=False,
    ).load()
    batch = encode_batch([Record(0, NOW_MS, None, b"x" * 100)])
    rates = []
    for _ in range(rounds + 1):
        copies = [bytearray(batch) for _ in range(count)]
        start = perf_counter()
        for each in copies:
            log.append_as_leader(each, leader_epoch=1, now_ms=NOW_MS)
        rates.append(count / (perf_counter() - start))
    # The first is for the caches.
    return rates[1:]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
