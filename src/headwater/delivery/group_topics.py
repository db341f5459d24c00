"""The topics of a group on a cluster that knows no retry topics, with a retry service between them.

billing  --- fails --->  retry.billing        what failed; the service counts
                         __delay_5s, ...      where it waits
billing  <-------------  retry.billing.ready  what has waited
                         dlq.billing          what is given up
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.client.admin.topics import NewTopic
from headwater.wire.delayed.retry_topics import dead_letter_topic, ready_topic, retry_topic

#: Of Apache Kafka 4.4 on: what says that a topic is there for dead letters.
DEAD_LETTER_CONFIGS: Final[Mapping[str, str]] = {"errors.deadletterqueue.group.enable": "true"}
#: Letters wait for somebody to look at them, and not for the week that brokers keep records by
#: default. Whoever wants that otherwise changes the topic, which nobody changes back.
KEPT_CONFIGS: Final[Mapping[str, str]] = {"retention.ms": "-1"}


def service_topics(
    group: str, partition_count: int, replication_factor: int, dead_topic: str | None = None
) -> list[NewTopic]:
    """All but those in which records wait; -1 for what is the brokers' default.

    The time of a failure is when the broker got it, as on Headwater, whatever clocks clients have.
    """
    append_time = {"message.timestamp.type": "LogAppendTime"}
    dead = dead_topic or dead_letter_topic(group)
    return [
        NewTopic(dead, partition_count, replication_factor, configs=KEPT_CONFIGS),
        NewTopic(retry_topic(group), partition_count, replication_factor, configs=append_time),
        NewTopic(ready_topic(group), partition_count, replication_factor),
    ]
