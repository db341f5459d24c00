"""Reads back what clients have written to `__trace`."""

from collections.abc import Callable
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.admin import require_all
from headwater.client.admin.admin import Admin
from headwater.client.consumer.consumer import Consumer
from headwater.client.tracing.trace_step import (
    TRACE_TOPIC,
    TraceLink,
    TraceStep,
    decode_link,
    decode_step,
)


class Written(NamedTuple):
    steps: list[TraceStep]
    links: list[TraceLink]

    def of(self, topic: str) -> list[TraceStep]:
        return [step for step in self.steps if step.topic == topic]

    def of_message(self, message_id: str) -> list[TraceStep]:
        """The steps of the trace that a message is linked to, as they came."""
        ids = {link.trace_id for link in self.links if link.message_id == message_id}
        found = [step for step in self.steps if step.trace_id in ids]
        return sorted(found, key=lambda step: step.time_ms)


def read_traces(bootstrap: str, want: Callable[[TraceStep], bool] = lambda _: True) -> Written:
    """All that is there now; clients that have been closed have written what they will."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        topic = require_all(admin.describe_topics([TRACE_TOPIC]))[TRACE_TOPIC]
        partitions = [TopicPartition(TRACE_TOPIC, each.partition) for each in topic.partitions]
    written = Written([], [])
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for record in consumer.poll(0.2):
                step, link = decode_step(record.value), decode_link(record.value)
                assert (step is None) != (link is None)
                if step is not None and want(step):
                    assert record.key == step.trace_id.encode()
                    assert record.timestamp == step.time_ms
                    written.steps.append(step)
                elif link is not None:
                    assert record.key == link.message_id.encode()
                    written.links.append(link)
    return written
