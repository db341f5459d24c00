"""Which clients are asked for which metrics, how often: the subscriptions of the cluster.

A subscription is a set of settings in the cluster image (`client-metrics`). A client is asked for
what all that match it want together, as often as the most eager of them wants. What it is asked for
has an id; with each push it says which one it goes by, and so learns that it is out of date. The id
also depends on the client, so that a change makes not all of them come back with the same one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import crc32c

from headwater.base.settings import SettingError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.client_metrics import Matches, read_patterns
from headwater.broker.settings.rows.client_metrics import CLIENT_METRICS_SETTINGS
from headwater.cluster.image.image import ClusterImage, ResourceKind

#: Stands for all metrics.
ALL_METRICS: Final = "*"
_DEFAULTS: Final = CLIENT_METRICS_SETTINGS.defaults()
_DEFAULT_INTERVAL_MS: Final = _DEFAULTS.integer("interval.ms")


@dataclass(frozen=True, slots=True)
class Request:
    """What one client is asked for."""

    subscription_id: int
    interval_ms: int
    #: What names of metrics begin with, or `ALL_METRICS` alone; empty for none.
    prefixes: tuple[str, ...]

    def wants(self, metric: str) -> bool:
        return self.prefixes == (ALL_METRICS,) or metric.startswith(self.prefixes)


@dataclass(frozen=True, slots=True)
class _Subscription:
    interval_ms: int
    prefixes: frozenset[str]
    matches: Mapping[str, Matches]

    def is_for(self, client: Mapping[str, str]) -> bool:
        return all(
            what in client and matches(client[what]) for what, matches in self.matches.items()
        )


class Subscriptions:
    """The cluster's subscriptions as the image has them; read anew when its settings change."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        #: The settings of the last image, and what is said by those that are subscriptions.
        self._seen: object = None
        self._told: dict[str, dict[str, str]] = {}
        self._read: list[_Subscription] = []
        #: Counts the changes of any subscription.
        self.version = 0

    def follow(self, image: ClusterImage) -> None:
        """Take note of the image, if its settings are others than those of the last one."""
        if image.configs is self._seen:
            return
        self._seen = image.configs
        names = image.configured(ResourceKind.CLIENT_METRICS)
        told = {name: dict(image.client_metrics_configs(name)) for name in names}
        if told == self._told:
            return
        self._told = told
        self.version += 1
        self._read = [each for each in map(self._subscription, names) if each is not None]

    def request_for(self, instance_id: uuid.UUID, client: Mapping[str, str]) -> Request:
        """What a client is asked for, by the last image that was followed."""
        matching = [each for each in self._read if each.is_for(client)]
        prefixes = frozenset[str]().union(*(each.prefixes for each in matching))
        interval_ms = min((each.interval_ms for each in matching), default=_DEFAULT_INTERVAL_MS)
        asked = (ALL_METRICS,) if ALL_METRICS in prefixes else tuple(sorted(prefixes))
        checksum = crc32c.crc32c("\n".join((str(interval_ms), *asked)).encode())
        number = checksum ^ (instance_id.int & 0xFFFFFFFF)
        signed = number - (1 << 32) if number >> 31 else number
        return Request(signed, interval_ms, asked)

    def _subscription(self, name: str) -> _Subscription | None:
        texts = self._settings.client_metrics_overrides(name)
        if "match" in self._told[name] and "match" not in texts:
            # Meant for some clients, and nobody can tell which: certainly not for all.
            return None
        values = _DEFAULTS.with_overrides(texts, f"the subscription {name}")
        try:
            matches = dict(read_patterns(values.texts("match")))
        except SettingError:
            return None
        return _Subscription(
            values.integer("interval.ms"),
            frozenset(each for each in values.texts("metrics") if each),
            matches,
        )
