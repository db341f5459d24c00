"""How a retry service runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from headwater.client.producer.delay_levels import Level
from headwater.delivery.delay_service.options import ServiceOptions
from headwater.delivery.worker.policy import RetryPolicy
from headwater.wire.delayed.retry_topics import retry_topic

_GROUP: Final = "headwater-retry-service"


class Intake(NamedTuple):
    """Where a group sends what failed. Nothing waits here."""

    name: str

    @property
    def topic(self) -> str:
        return retry_topic(self.name)

    @property
    def delay_ms(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class RetryServiceOptions:
    group: str
    policy: RetryPolicy
    dead_topic: str
    #: Of the delay service that it is as well. Others of the same name share its work.
    waiting: ServiceOptions

    @property
    def intake(self) -> ServiceOptions:
        return replace(self.waiting, group=_GROUP, levels=())


def levels_of(policy: RetryPolicy) -> tuple[Level, ...]:
    """A level for each delay, rising."""
    return tuple(sorted({Level(max(1, delay_ms)) for delay_ms in policy.delays_ms}))
