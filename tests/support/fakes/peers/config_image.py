"""A stand-in for the part of the cluster image that holds settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class FakeConfigImage:
    topics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    brokers: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    client_metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def topic_configs(self, topic: str, /) -> Mapping[str, str]:
        return self.topics.get(topic, {})

    def broker_configs(self, broker_id: int | None, /) -> Mapping[str, str]:
        return self.brokers.get(broker_id, {})

    def group_configs(self, group_id: str, /) -> Mapping[str, str]:
        return self.groups.get(group_id, {})

    def client_metrics_configs(self, name: str, /) -> Mapping[str, str]:
        return self.client_metrics.get(name, {})
