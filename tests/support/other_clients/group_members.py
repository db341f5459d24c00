"""Members of consumer groups for tests of what others see of them: librdkafka's consumers."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from tests.support.kafka.node import require_confluent_kafka

JOIN_TIMEOUT_S = 30.0
POLL_S = 0.05


@contextlib.contextmanager
def group_member(bootstrap: str, group_id: str, topic: str, **settings: str) -> Iterator[Any]:
    """A consumer that has its partitions, until the end of the block."""
    confluent = require_confluent_kafka()
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group_id,
            "client.id": "tester",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + JOIN_TIMEOUT_S
        while not consumer.assignment():
            assert time.monotonic() < deadline, f"{group_id} got no partitions"
            consumer.poll(POLL_S)
        yield consumer
    finally:
        consumer.close()
