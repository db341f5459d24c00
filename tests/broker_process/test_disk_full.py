"""A disk that is full: the broker refuses, loses nothing, and goes on when there is room again."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import BrokerProcess, wait_until
from headwater.wire.messages.produce import PartitionProduceData
from headwater.wire.records import Record, encode_batch
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.load import SteadyProducer
from tests.support.other_clients.raw import RawConnection, produce_request

SIZE_MB = 64
ENLARGED_MB = 128
LATER_COUNT = 100
SETTINGS = {"log.segment.bytes": "8388608"}


class SmallDisk:
    """A file system of its own, which can be enlarged while it is in use."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mount(self) -> None:
        self.path.mkdir()
        self._run("mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(self.path))

    def enlarge(self) -> None:
        self._run("mount", "-o", f"remount,size={ENLARGED_MB}m", str(self.path))

    def unmount(self) -> None:
        self._run("umount", str(self.path))

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.path).free

    def _run(self, *command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    mounted = SmallDisk(tmp_path / "disk")
    try:
        mounted.mount()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this test needs the permission to mount a file system")
    yield mounted
    mounted.unmount()


def numbered(number: int) -> bytes:
    return encode_batch(
        [Record(0, int(time.time() * 1000), None, b"%d-" % number + b"x" * 400_000)]
    )


def test_it_refuses_and_goes_on(disk: SmallDisk, tmp_path: Path) -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(
            BrokerProcess(tmp_path, data_dir=disk.path / "data", settings=SETTINGS)
        )
        client = ConfluentClient(broker.bootstrap)
        client.create_topic("filled")
        with RawConnection(broker.bootstrap) as connection:
            count = 0
            while (answer := connection.produce("filled", numbered(count))).error_code == 0:
                assert answer.base_offset == count
                count += 1
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert count * 400_000 > SIZE_MB * 1_000_000 * 0.7
            # What is there can still be read, by who is connected and by who comes.
            assert len(client.consume("filled", 0)) == count
            assert connection.produce("filled", numbered(count)).error_code != 0

            disk.enlarge()
            answer = connection.produce("filled", numbered(count))
            assert (answer.error_code, answer.base_offset) == (0, count)
        # Whoever looks after the broker is told twice, not with every request.
        wait_until(
            lambda: "takes appends again" in broker.output.read_text(), "the log tells of it"
        )
        assert broker.output.read_text().count("takes appends again") == 1
        assert broker.output.read_text().count("No space left on device") == 1
        broker.kill()
        broker.start()
        found = client.consume("filled", 0)
        numbers = [int((record.value or b"").partition(b"-")[0]) for record in found]
        assert numbers == list(range(count + 1))


def test_topics_without_room_are_made_later(disk: SmallDisk, tmp_path: Path) -> None:
    small = encode_batch([Record(0, int(time.time() * 1000), None, b"small")])
    with ExitStack() as stack:
        broker = stack.enter_context(
            BrokerProcess(tmp_path, data_dir=disk.path / "data", settings=SETTINGS)
        )
        client = ConfluentClient(broker.bootstrap)
        client.create_topic("before")
        filler = disk.path / "other"
        # There is room for what the metadata store notes of a topic, and not for all of its logs.
        filler.write_bytes(bytes(disk.free_bytes() - 300_000))
        client.create_topic("later", LATER_COUNT)
        with RawConnection(broker.bootstrap) as connection:

            def refused() -> list[int]:
                request = produce_request("later", small)
                request.topic_data[0].partition_data = [
                    PartitionProduceData(index=number, records=small)
                    for number in range(LATER_COUNT)
                ]
                (topic,) = connection.ask(request, 9).responses
                codes = [each.error_code for each in topic.partition_responses]
                assert set(codes) <= {0, ErrorCode.KAFKA_STORAGE_ERROR}
                return [number for number, code in enumerate(codes) if code]

            assert refused()
            filler.unlink()
            wait_until(lambda: not refused(), "all partitions take records")
            assert connection.produce("before", small).error_code == 0


def test_records_wait_for_room(disk: SmallDisk, tmp_path: Path) -> None:
    """Killed while the disk is full and producers try again: each record is there once."""
    with ExitStack() as stack:
        broker = stack.enter_context(
            BrokerProcess(tmp_path, data_dir=disk.path / "data", settings=SETTINGS)
        )
        client = ConfluentClient(broker.bootstrap)
        client.create_topic("load", 2)
        # Most of the room is taken from outside, so that the load meets the end soon.
        (disk.path / "other").write_bytes(bytes((SIZE_MB - 12) * 1_000_000))
        with ExitStack() as load:
            producers = [
                load.enter_context(
                    SteadyProducer(broker.bootstrap, "load", each, "p", enable_idempotence=True)
                )
                for each in range(2)
            ]
            wait_until(
                lambda: "takes no appends" in broker.output.read_text(), "the disk is full", 60
            )
            acknowledged = sum(len(each.acknowledged) for each in producers)
            broker.kill()
            disk.enlarge()
            broker.start()
            wait_until(
                lambda: sum(len(each.acknowledged) for each in producers) > acknowledged + 500,
                "the producers get on",
            )
        for producer in producers:
            assert producer.errors == []
            found = client.consume("load", 0, producer.partition)
            expected = [producer.value(number) for number in range(producer.sent_count)]
            assert [record.value for record in found] == expected


def fill_up(disk: SmallDisk) -> None:
    """Take what is left, from outside."""
    with (disk.path / "other").open("ab", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(10_000))
    assert disk.free_bytes() < 10_000


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_start_without_room(disk: SmallDisk, tmp_path: Path, end: str) -> None:
    """It serves what is there, and lets a topic go that makes room for records again."""
    quick = {"log.segment.delete.delay.ms": "100", "log.initial.task.delay.ms": "100"}
    broker = BrokerProcess(tmp_path, data_dir=disk.path / "data", settings={**SETTINGS, **quick})
    with broker:
        client = ConfluentClient(broker.bootstrap)
        client.create_topic("kept")
        client.create_topic("filled")
        with RawConnection(broker.bootstrap) as connection:
            assert connection.produce("kept", numbered(0)).error_code == 0
            count = 0
            while connection.produce("filled", numbered(count)).error_code == 0:
                count += 1
        for _ in range(2):
            fill_up(disk)
            if end == "stop":
                assert broker.stop() == 0
                fill_up(disk)
            else:
                broker.kill()
            printed_before = len(broker.output.read_text())
            broker.start()
            assert len(client.consume("filled", 0)) == count
            assert len(client.consume("kept", 0)) == 1
        with RawConnection(broker.bootstrap) as connection:
            for _ in range(3):
                answer = connection.produce("kept", numbered(1))
                assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            client.delete_topic("filled")
            wait_until(
                lambda: connection.produce("kept", numbered(1)).error_code == 0,
                "there is room again",
            )
        # A thread writes the log, so a line may come after the answer.
        wait_until(
            lambda: "takes appends again" in broker.output.read_text()[printed_before:],
            "the log tells of it",
        )
        printed = broker.output.read_text()[printed_before:]
        assert printed.count("takes no appends") == 1
        assert printed.count("takes appends again") == 1
        assert "Traceback" not in printed
        assert len(client.consume("kept", 0)) == 2
        assert broker.stop() == 0


def test_a_start_without_room_and_reserve(disk: SmallDisk, tmp_path: Path) -> None:
    """It comes up or it says in a sentence why not; with room it has everything."""
    broker = BrokerProcess(
        tmp_path,
        data_dir=disk.path / "data",
        settings={**SETTINGS, "log.dir.reserve.bytes": "0"},
    )
    with broker:
        client = ConfluentClient(broker.bootstrap)
        with SteadyProducer(broker.bootstrap, "kept", 0, "p", acks="all") as producer:
            wait_until(lambda: len(producer.acknowledged) > 500, "there is something")
        broker.kill()
        fill_up(disk)
        printed_before = len(broker.output.read_text())
        broker.launch()
        wait_until(
            lambda: (
                not broker.is_running
                or "Headwater is ready" in broker.output.read_text()[printed_before:]
            ),
            "it is up, or it has ended",
        )
        assert "Traceback" not in broker.output.read_text()
        if not broker.is_running:
            assert broker.wait() != 0
            assert broker.tail(1).startswith("headwater: ")
        else:
            broker.kill()
        disk.enlarge()
        broker.start()
        found = client.consume("kept", 0)
        assert len(found) == producer.sent_count
        broker.kill()
