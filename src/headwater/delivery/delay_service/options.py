"""How a delay service runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from headwater.client.producer.delay_levels import LEVELS, Level

GROUP_DEFAULT: Final = "headwater-delay-service"
WAITING_MAX_DEFAULT: Final = 10_000
WAITING_BYTES_DEFAULT: Final = 32 << 20

#: What may be changed, and what must not: that would cost a promise.
_CONSUMER: Final[Mapping[str, object]] = {
    "auto.offset.reset": "earliest",
    # Those who keep their partitions keep what waits of them.
    "partition.assignment.strategy": "cooperative-sticky",
    # One bad batch must not keep the others waiting; the client logs what it leaves out.
    "corrupt.batch.policy": "skip",
    "fetch.max.bytes": 4 << 20,
}
_PRODUCER: Final[Mapping[str, object]] = {
    "max.request.size": 64 << 20,
    "buffer.memory": 128 << 20,
    "compression.type": "lz4",
    "request.timeout.ms": 15_000,
    "delivery.timeout.ms": 30_000,
    # A service that died holds up the readers of what it wrote last for so long, unless it comes
    # back under its name.
    "transaction.timeout.ms": 30_000,
}


class Stage(Protocol):
    """What a loop reads: a level, or the intake of a retry service."""

    @property
    def name(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def delay_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    bootstrap_servers: str
    #: Unlike that of any other service of the cluster. One that stays the same over restarts lets
    #: the next start end at once what the last one left open.
    instance: str
    levels: tuple[Level, ...] = LEVELS
    group: str = GROUP_DEFAULT
    waiting_max_per_partition: int = WAITING_MAX_DEFAULT
    waiting_bytes_max: int = WAITING_BYTES_DEFAULT
    #: Of topics that it creates; -1 for what the brokers have as their default.
    partition_count: int = -1
    replication_factor: int = -1
    creates_topics: bool = True
    consumer_settings: Mapping[str, object] = field(default_factory=dict)
    producer_settings: Mapping[str, object] = field(default_factory=dict)

    def group_of(self, stage: Stage) -> str:
        """A group for each: when services come and go, levels do not wait for each other."""
        return f"{self.group}-{stage.name}"

    def consumer_config(self, stage: Stage) -> dict[str, object]:
        return {
            **_CONSUMER,
            **self.consumer_settings,
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": f"{self.group}-{self.instance}-{stage.name}",
            "group.id": self.group_of(stage),
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }

    def producer_config(self, stage: Stage) -> dict[str, object]:
        return {
            **_PRODUCER,
            **self.producer_settings,
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": f"{self.group}-{self.instance}-{stage.name}",
            "transactional.id": f"{self.group_of(stage)}-{self.instance}",
        }
