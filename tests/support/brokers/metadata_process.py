"""A process that changes a cluster's metadata until it is killed: `python -m tests.support....`.

Arguments: the data directory, and a prefix for the names of its topics. It creates, grows and
deletes topics and takes producer ids. When a change is done, and not before, a line on the standard
output says so.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from headwater.base.ids import topic_id_to_text
from headwater.cluster.controller.controller import Controller
from headwater.cluster.topics.new_topic import CreatedTopic, NewPartitions, NewTopic
from tests.support.brokers.controllers import start_controller
from tests.support.brokers.metadata_stores import open_sqlite

#: It gives up by itself, should nobody ever kill it.
TOPICS_MAX = 2_000


async def _work(controller: Controller, prefix: str) -> None:
    for number in range(TOPICS_MAX):
        name = f"{prefix}{number}"
        created = (await controller.create_topics([NewTopic(name, 3)]))[name]
        if not isinstance(created, CreatedTopic):
            raise created
        _say(f"created {name} {topic_id_to_text(created.topic_id)}")
        block = await controller.allocate_producer_ids(0)
        _say(f"ids {block.start} {block.stop}")
        if number % 3 == 1:
            _say(f"growing {name}")
            assert await controller.create_partitions([NewPartitions(name, 5)]) == {name: None}
            _say(f"grown {name}")
        if number % 3 == 2:
            _say(f"deleting {name}")
            assert await controller.delete_topics([name]) == {name: None}
            _say(f"deleted {name}")


def _say(line: str) -> None:
    os.write(sys.stdout.fileno(), line.encode() + b"\n")


async def _main(directory: str, prefix: str) -> None:
    store = await open_sqlite(Path(directory))
    controller = await start_controller(store.connect(), seed=os.getpid())
    await asyncio.gather(*(_work(controller, f"{prefix}-{each}-") for each in "abc"))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
