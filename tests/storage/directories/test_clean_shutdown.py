import random

import pytest

from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.directories.clean_shutdown import UNKNOWN_BROKER_EPOCH, CleanShutdownMarker
from headwater.storage.disk.files import read_bytes, write_atomically
from tests.support.tiers import rounds

PATH = "/data/.kafka_cleanshutdown"


def new_disk(seed: int = 0) -> FaultyDisk:
    return FaultyDisk(seed, directories=["/data"])


def test_the_text_is_kafkas() -> None:
    disk = new_disk()
    CleanShutdownMarker(disk, "/data").write(9)
    assert read_bytes(disk, PATH) == b'{"version":0,"brokerEpoch":9}'


def test_a_marker_comes_and_goes() -> None:
    marker = CleanShutdownMarker(new_disk(), "/data")
    assert not marker.exists
    assert marker.read() is None
    marker.remove()
    marker.write(41)
    assert marker.exists
    assert marker.read() == 41
    marker.remove()
    assert not marker.exists
    assert marker.read() is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[1]",
        b"7",
        b'"brokerEpoch"',
        b'{"brokerEpoch":null}',
        b'{"brokerEpoch":"5"}',
        b'{"brokerEpoch":true}',
        b'{"version":0,"brokerEpoch":',
        b"version: 0\nbrokerEpoch: 5",
        b"\xff\xfe",
    ],
)
def test_other_content_is_a_clean_shutdown_of_an_unknown_epoch(content: bytes) -> None:
    disk = new_disk()
    write_atomically(disk, PATH, content)
    marker = CleanShutdownMarker(disk, "/data")
    assert marker.exists
    assert marker.read() == UNKNOWN_BROKER_EPOCH


@pytest.mark.parametrize("seed", range(rounds(20, 200)))
def test_a_removed_marker_does_not_come_back(seed: int) -> None:
    disk = new_disk(seed)
    marker = CleanShutdownMarker(disk, "/data")
    marker.write(1)
    marker.remove()
    assert CleanShutdownMarker(disk.crash(random.Random(seed)), "/data").read() is None


@pytest.mark.parametrize("cut_at", range(8))
def test_a_crash_leaves_a_whole_marker_or_none(cut_at: int) -> None:
    disk = new_disk(cut_at)
    disk.before_operation = PowerCut(cut_at)
    try:
        CleanShutdownMarker(disk, "/data").write(123456789)
    except SimulatedCrash:
        allowed = [None, 123456789]
    else:
        allowed = [123456789]
    after = disk.crash(random.Random(cut_at))
    assert CleanShutdownMarker(after, "/data").read() in allowed
