from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.storage.disk.files import DiskFiles
from headwater.storage.inspection.damage_scan import Damage, scan_past_damage
from headwater.storage.segments.batch_scan import ScannedBatch
from headwater.wire.records import Record, encode_batch

BATCHES = [encode_batch([Record(number, 0, b"key", b"x" * number)]) for number in range(5)]
LOG = b"".join(BATCHES)


def scan(path: Path, content: bytes) -> list[ScannedBatch | Damage]:
    path.write_bytes(content)
    return list(scan_past_damage(DiskFiles().open(str(path)), 0, len(content)))


def test_a_sound_log_has_no_damage(tmp_path: Path) -> None:
    found = scan(tmp_path / "log", LOG)
    assert [bytes(batch.data) for batch in found if isinstance(batch, ScannedBatch)] == BATCHES


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (BATCHES[0][:5], "5 bytes are too few"),
        (BATCHES[0][:-1], "of which"),
        (bytes(4000), "only zeros"),
    ],
    ids=["prefix", "batch", "blank"],
)
def test_a_torn_tail(tmp_path: Path, tail: bytes, reason: str) -> None:
    damage = scan(tmp_path / "log", LOG + tail)[-1]
    assert isinstance(damage, Damage)
    assert (damage.position, damage.size, damage.is_torn_tail) == (len(LOG), len(tail), True)
    assert reason in damage.reason


@pytest.mark.parametrize(
    "rubbish",
    [b"\x07" * 100, bytes(8) + b"\xff" * 92, bytes(99) + b"\x01" + bytes(4000)],
    ids=["long", "negative", "not blank"],
)
def test_rubbish_is_no_torn_tail(tmp_path: Path, rubbish: bytes) -> None:
    damage = scan(tmp_path / "log", LOG + rubbish)[-1]
    assert isinstance(damage, Damage)
    assert (damage.position, damage.is_torn_tail) == (len(LOG), False)


def test_a_batch_with_a_wrong_magic_is_stepped_over(tmp_path: Path) -> None:
    content = bytearray(LOG)
    content[len(BATCHES[0]) + 16] = 200
    found = scan(tmp_path / "log", bytes(content))
    assert [isinstance(each, Damage) for each in found] == [False, True, False, False, False]
    assert isinstance(found[1], Damage)
    assert (found[1].position, found[1].size) == (len(BATCHES[0]), len(BATCHES[1]))


@given(st.data())
def test_every_byte_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(LOG)
    for _ in range(data.draw(st.integers(0, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content += data.draw(st.binary(max_size=50))
    position = 0
    for found in scan(tmp_path_factory.getbasetemp() / "scanned", bytes(content)):
        assert found.position == position
        position += found.size if isinstance(found, Damage) else len(found.data)
    assert position == len(content)


def test_a_file_that_shrinks_meanwhile_ends_in_damage(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(LOG)
    found = list(scan_past_damage(DiskFiles().open(str(path)), 0, len(LOG) + 500))
    assert isinstance(found[-1], Damage)
    assert (found[-1].position, found[-1].is_torn_tail) == (len(LOG), True)
