"""What the log tools say of delayed batches, and of an index that hides the wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.sim.campaigns.logs import NOW_MS, append, open_log
from headwater.storage.disk.files import DiskFiles
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.delayed.delayed_batch import (
    DelayedKind,
    delayed_change,
    delayed_message,
    encode_delayed_batch,
)
from headwater.wire.records import Record, encode_batch
from tests.support.logs.dumps import DEEP, json_of, text_of
from tests.support.logs.verification import problems, verify
from tests.support.models.hidden_log import append_delayed

NAME = f"{0:020d}"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    directory = tmp_path / "topic-0"
    opened = open_log(DiskFiles(), str(directory))
    append(opened, b"seen")
    records = [
        delayed_message(Record(0, 5, b"k", b"v"), 900, expires_ms=950, sender_id=b"mine"),
        delayed_change(1, DelayedKind.CANCEL, original=17),
    ]
    opened.append_as_leader(
        encode_delayed_batch(records, append_ms=NOW_MS + 1),
        leader_epoch=0,
        now_ms=NOW_MS,
        origin=AppendOrigin.COORDINATOR,
    )
    append(opened, b"seen")
    append_delayed(opened, b"hidden", append_ms=NOW_MS + 2)
    opened.close()
    return directory


def test_a_dump_says_what_waits(log: Path) -> None:
    lines, faults = text_of(log / f"{NAME}.log", options=DEEP, print_data=True)
    assert faults == []
    message, cancel, _ = [line for line in lines if "controlType: DELAYED(1000)" in line]
    assert message.endswith(
        "kind: MESSAGE due: 900 original: -1 sent: 5 expires: 950 senderId: mine key: k payload: v"
    )
    assert "kind: CANCEL due: -1 original: 17" in cancel and "payload" not in cancel
    found = json_of(log / f"{NAME}.log", DEEP, print_data=True)
    first = next(each for each in found if each.get("control_type") == "DELAYED")
    expected = {"kind": "MESSAGE", "due_ms": 900, "original": -1, "sender_id": "mine", "value": "v"}
    assert {name: first[name] for name in expected} == expected


def test_a_dump_shows_the_hidden_index(log: Path) -> None:
    lines, faults = text_of(log / f"{NAME}.hiddenindex")
    assert faults == [] and len(lines) == 2
    assert lines[0].startswith("hiddenFrom: 1 hiddenUpTo: 2 position: ")
    _, first, second = json_of(log / f"{NAME}.hiddenindex")
    assert (first["type"], first["first_offset"], first["next_offset"]) == ("hidden_stretch", 1, 3)
    assert (second["first_offset"], second["next_offset"]) == (4, 5)
    assert second["largest_ms"] == NOW_MS + 2


def test_nothing_is_wrong_with_a_log_that_has_hidden_batches(log: Path) -> None:
    assert verify(log) == verify(log, deep=False) == []


def _lacks_all(data: bytes) -> bytes:
    return b""


def _lacks_last(data: bytes) -> bytes:
    return data[:24]


def _hides_too_much(data: bytes) -> bytes:
    return data[:4] + b"\0\0\0\4" + data[8:]


def _has_one_more(data: bytes) -> bytes:
    return data + data[24:]


@pytest.mark.parametrize("change", [_lacks_all, _lacks_last, _hides_too_much, _has_one_more])
def test_an_index_that_hides_the_wrong_batches_is_found(
    log: Path, change: Callable[[bytes], bytes]
) -> None:
    path = log / f"{NAME}.hiddenindex"
    path.write_bytes(change(path.read_bytes()))
    assert [finding.path for finding in problems(log)] == [str(path)]


def test_an_index_that_is_gone_is_found(log: Path) -> None:
    (log / f"{NAME}.hiddenindex").unlink()
    assert ["hidden" in str(finding) for finding in problems(log)] == [True]


def test_a_delayed_batch_that_cannot_be_read_is_found(tmp_path: Path) -> None:
    opened = open_log(DiskFiles(), str(tmp_path / "topic-0"))
    bad = encode_batch([Record(0, NOW_MS, b"\0\0\x03\xe8", b"")], control=True)
    opened.append_as_leader(bad, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    opened.close()
    assert "the delayed records cannot be read" in str(problems(tmp_path / "topic-0")[0])
