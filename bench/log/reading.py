"""Reading a log back in fetches of 1 MB, into memory and straight into a socket.

All of it is in the page cache, as it is for consumers that keep up. The socket is a TCP connection
to a child process that receives the bytes and does nothing with them.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
from time import perf_counter

from bench.log.sizes import MEGABYTE, Sizes
from bench.log.workload import fill, fresh_directory, make_batches, open_log
from bench.rounds import Comparison, alternate
from bench.table import Goal, Row
from headwater.storage.disk.files import FileRegion
from headwater.storage.disk.handles import CachedFile
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import read_batch_header

_GOAL = Goal(0.8)


def measure(parent: str, sizes: Sizes) -> list[Row]:
    batches = make_batches(MEGABYTE)
    records_per_fetch = read_batch_header(batches[0]).record_count
    with fresh_directory(parent) as directory:
        log = open_log(directory)
        fill(log, batches, sizes.stream_bytes)
        log.flush()
        reader = LogReader(log, records_per_fetch)
        read = alternate(reader.read, reader.pread, sizes.round_count)
        sent = _alternate_sending(reader, sizes.round_count)
        log.close()
    return [
        Row.compared("Read 1 MB at a time", "GB/s", read, "`os.pread`", _GOAL),
        Row.compared("Send 1 MB at a time over TCP", "GB/s", sent, "`os.sendfile`", _GOAL),
    ]


class LogReader:
    """Goes through a log from end to end; each method returns its rate in GB/s."""

    def __init__(self, log: PartitionLog, records_per_fetch: int) -> None:
        self.log = log
        self.offsets = range(log.log_start_offset, log.log_end_offset, records_per_fetch)
        self.path = log.segments.active.log.path
        self.size_bytes = log.size_bytes

    def read(self) -> float:
        log = self.log
        start = perf_counter()
        for offset in self.offsets:
            region = log.read(offset, MEGABYTE).region
            if region is None or len(region.read()) != MEGABYTE:
                raise RuntimeError(f"Offset {offset} is not there to read.")
        return self._rate(perf_counter() - start)

    def pread(self) -> float:
        descriptor = os.open(self.path, os.O_RDONLY)
        start = perf_counter()
        for position in range(0, self.size_bytes, MEGABYTE):
            os.pread(descriptor, MEGABYTE, position)
        seconds = perf_counter() - start
        os.close(descriptor)
        return self._rate(seconds)

    def send(self, connection: int) -> float:
        log = self.log
        start = perf_counter()
        for offset in self.offsets:
            region = log.read(offset, MEGABYTE).region
            if not isinstance(region, FileRegion) or not isinstance(region.file, CachedFile):
                raise RuntimeError(f"Offset {offset} is not there to send.")
            region.file.pin()
            _send_all(connection, region.file.fileno(), region.position, region.size)
            region.file.unpin()
        return self._rate(perf_counter() - start)

    def sendfile(self, connection: int) -> float:
        descriptor = os.open(self.path, os.O_RDONLY)
        start = perf_counter()
        for position in range(0, self.size_bytes, MEGABYTE):
            _send_all(connection, descriptor, position, MEGABYTE)
        seconds = perf_counter() - start
        os.close(descriptor)
        return self._rate(seconds)

    def _rate(self, seconds: float) -> float:
        return self.size_bytes / 1e9 / seconds


def _send_all(connection: int, descriptor: int, position: int, size: int) -> None:
    while size > 0:
        sent = os.sendfile(connection, descriptor, position, size)
        position += sent
        size -= sent


def _alternate_sending(reader: LogReader, round_count: int) -> Comparison:
    with socket.create_server(("127.0.0.1", 0)) as server:
        drain = multiprocessing.get_context("spawn").Process(
            target=_drain, args=(server.getsockname()[1],), daemon=True
        )
        drain.start()
        connection, _ = server.accept()
        with connection:
            number = connection.fileno()
            comparison = alternate(
                lambda: reader.send(number), lambda: reader.sendfile(number), round_count
            )
        drain.join()
    return comparison


def _drain(port: int) -> None:
    """Receive as a consumer does, into memory, until the other side closes."""
    room = bytearray(4 * MEGABYTE)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while connection.recv_into(room):
            continue
