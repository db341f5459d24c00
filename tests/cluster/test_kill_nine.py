"""A process that is killed while it changes a cluster's metadata, again and again."""

import asyncio
import random
import subprocess
import sys
from pathlib import Path

from headwater.base.ids import topic_id_to_text
from headwater.cluster.controller.controller import Controller
from headwater.cluster.topics.new_topic import NewTopic
from tests.support.brokers.controllers import take_seat
from tests.support.brokers.metadata_stores import open_sqlite
from tests.support.tiers import rounds

ROOT = Path(__file__).parents[2]


def _change_until_killed(directory: Path, prefix: str, lines_min: int) -> list[list[str]]:
    """Run the process, kill it after some lines; returns what it said, in words."""
    program = "tests.support.brokers.metadata_process"
    command = [sys.executable, "-m", program, str(directory), prefix]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    lines: list[bytes] = []
    try:
        while len(lines) < lines_min and (line := process.stdout.readline()):
            lines.append(line)
    finally:
        process.kill()
        lines += process.stdout.read().splitlines(keepends=True)
        process.stdout.close()
        process.wait()
    # The kill may have cut the last line.
    return [line.decode().split() for line in lines if line.endswith(b"\n")]


class _Ledger:
    """What was acknowledged so far, over all lives of the process."""

    def __init__(self) -> None:
        self.topic_ids: dict[str, str] = {}
        self.partition_counts: dict[str, set[int]] = {}
        self.deleting: set[str] = set()
        self.deleted: set[str] = set()
        self.producer_id_end = 0

    def enter(self, said: list[list[str]]) -> None:
        for word, *values in said:
            match word:
                case "created":
                    self.topic_ids[values[0]] = values[1]
                    self.partition_counts[values[0]] = {3}
                case "ids":
                    assert int(values[0]) >= self.producer_id_end, "a producer id came again"
                    self.producer_id_end = int(values[1])
                case "growing":
                    self.partition_counts[values[0]] = {3, 5}
                case "grown":
                    self.partition_counts[values[0]] = {5}
                case "deleting":
                    self.deleting.add(values[0])
                case "deleted":
                    self.deleted.add(values[0])

    def check(self, controller: Controller) -> None:
        topics = controller.image.topics
        for name, topic_id in self.topic_ids.items():
            if name in topics:
                assert name not in self.deleted, f"{name} came back"
                assert topic_id_to_text(topics[name].topic_id) == topic_id
                assert len(topics[name].partitions) in self.partition_counts[name]
            else:
                assert name in self.deleting, f"{name} is lost"


async def _check_after(directory: Path, ledger: _Ledger) -> None:
    store = await open_sqlite(directory)
    session = store.connect()
    seat = await take_seat(session)
    controller = seat.controller
    ledger.check(controller)
    for change in seat.publisher.changes:
        assert {topic.name for topic in change.deleted_topics} <= ledger.deleting
    assert await session.children("/admin/delete_topics") == []
    names = await session.children("/brokers/topics")
    assert names == await session.children("/config/topics") == sorted(controller.image.topics)
    block = await controller.allocate_producer_ids(0)
    assert block.start >= ledger.producer_id_end
    ledger.producer_id_end = block.stop
    # What was interrupted can be done again.
    answers = await controller.create_topics([NewTopic(name) for name in ledger.deleted])
    assert set(await controller.delete_topics(list(answers))) == ledger.deleted
    await controller.close()
    await store.close()


def test_nothing_acknowledged_is_lost_and_no_producer_id_comes_twice(tmp_path: Path) -> None:
    generator = random.Random(4)
    ledger = _Ledger()
    for number in range(rounds(small=3, full=30)):
        said = _change_until_killed(tmp_path, f"r{number}", generator.randrange(1, 150))
        assert said, f"round {number} got nothing done"
        ledger.enter(said)
        asyncio.run(_check_after(tmp_path, ledger))
