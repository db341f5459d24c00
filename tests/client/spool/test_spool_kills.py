"""A process with a spool is killed at each step, and the next one goes on: nothing is lost.

The bound: each time at most a window of records is sent twice, and the order is kept.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.testing.running_broker import RunningBroker
from tests.support.other_clients.users import read_all
from tests.support.tiers import full_tier

_WINDOW = 8
_COUNT = 60

#: A step, and at which of its occurrences the process ends.
_MOMENTS = (
    "before-segment-write:25",
    "amid-segment-write:25",
    "after-segment-write:25",
    "after-segment-sync:25",
    "before-send:20",
    "after-send:1",
    "after-send:20",
    "outcome:1",
    "outcome:20",
    "before-position-write:2",
    "amid-position-write:3",
    "after-position-write:2",
    "after-position-sync:2",
    "before-remove:1",
    "after-remove:1",
)
_SMALL_MOMENTS = (
    "amid-segment-write:25",
    "after-segment-sync:25",
    "after-send:20",
    "outcome:20",
    "amid-position-write:3",
    "after-remove:1",
)


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as running:
        yield running


class _Life(list[int]):
    """The numbers that one process said are in the spool."""

    was_killed = False


def _live(
    broker: RunningBroker, topic: str, directory: Path, first: int, count: int, moment: str
) -> _Life:
    arguments = [broker.bootstrap, topic, str(directory), first, count, _WINDOW, moment]
    finished = subprocess.run(
        [sys.executable, "-m", "tests.support.logs.spool_process", *map(str, arguments)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    life = _Life(map(int, finished.stdout.split()))
    life.was_killed = finished.returncode == -signal.SIGKILL
    assert life.was_killed or finished.returncode == 0, finished.stderr.decode()
    return life


def _numbers(broker: RunningBroker, topic: str) -> list[int]:
    return [int(record.value) for record in read_all(broker.bootstrap, topic)]


def _check(delivered: list[int], taken: set[int], kill_count: int) -> None:
    distinct = set(delivered)
    assert taken <= distinct, f"lost: {sorted(taken - distinct)}"
    doubled_count = len(delivered) - len(distinct)
    assert doubled_count <= kill_count * _WINDOW
    # A number whose append was cut short may be there or not; each that is there is in order.
    assert list(dict.fromkeys(delivered)) == sorted(distinct)


@pytest.mark.parametrize("moment", _MOMENTS if full_tier() else _SMALL_MOMENTS)
def test_a_kill_at_each_step(broker: RunningBroker, tmp_path: Path, moment: str) -> None:
    topic = broker.create_topic()
    killed = _live(broker, topic, tmp_path, 0, _COUNT, moment)
    assert killed.was_killed
    after = _live(broker, topic, tmp_path, 1000, 5, "never")
    assert list(after) == [1000, 1001, 1002, 1003, 1004]
    _check(_numbers(broker, topic), {*killed, *after}, 1)


def test_kill_after_kill(broker: RunningBroker, tmp_path: Path) -> None:
    topic = broker.create_topic()
    taken: set[int] = set()
    moments = ("outcome:5", "after-send:9", "amid-segment-write:30", "after-position-sync:1")
    for index, moment in enumerate(moments):
        life = _live(broker, topic, tmp_path, 100 * index, 50, moment)
        assert life.was_killed
        taken.update(life)
    taken.update(_live(broker, topic, tmp_path, 900, 1, "never"))
    _check(_numbers(broker, topic), taken, len(moments))
