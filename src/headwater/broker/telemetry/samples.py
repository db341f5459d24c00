"""Points of clients' metrics, named and labelled as Prometheus has them.

`org.apache.kafka.producer.connection.creation.total` becomes
`headwater_client_producer_connection_creation_total`: a family for each metric, as people who write
queries expect, with the client's id and its instance's, and the attributes of the point. What else
is known of an instance stands on one line of `headwater_client_info`, to be joined when needed.

Names and labels are chosen by strangers. So letters that Prometheus does not know become `_`, what
is too long is left out, and nobody can pass for another instance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headwater.broker.metrics.exposition import labels
from headwater.broker.telemetry.metrics_data import Point, PointKind

PREFIX: Final = "headwater_client_"
INFO: Final = "headwater_client_info"
_KAFKA_PREFIX: Final = "org.apache.kafka."
_NAME_LENGTH_MAX: Final = 200
_LABELS_LENGTH_MAX: Final = 1_000
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_]")


class Sample(NamedTuple):
    """A point of a client, or what is to stand in its place."""

    family: str
    kind: PointKind
    labels: str
    value: float
    #: How many values a summary is of.
    seen_count: int
    is_delta: bool


def samples_of(points: Iterable[Point], client: Mapping[str, str]) -> tuple[list[Sample], int]:
    """What can be shown of the points, and how many cannot; `client` are labels of them all."""
    found: list[Sample] = []
    refused_count = 0
    for point in points:
        family = family_name(point.name, point.kind)
        names = labels({**_sanitised(point.attributes), **client})
        if not family or family == INFO or len(names) > _LABELS_LENGTH_MAX:
            refused_count += 1
        else:
            found.append(
                Sample(family, point.kind, names, point.value, point.count, point.is_delta)
            )
    return found, refused_count


def info_of(resource: Mapping[str, str], client: Mapping[str, str]) -> Sample | None:
    """The line that tells what else is known of an instance, unless that is too much."""
    names = labels({**_sanitised(resource), **client})
    if len(names) > _LABELS_LENGTH_MAX:
        names = labels(client)
    if len(names) > _LABELS_LENGTH_MAX:
        return None
    return Sample(INFO, PointKind.GAUGE, names, 1, 0, is_delta=False)


def family_name(metric: str, kind: PointKind) -> str:
    """What a metric is called on the page; empty if that cannot be."""
    name = _FOREIGN.sub("_", metric.removeprefix(_KAFKA_PREFIX))
    if not name or len(name) > _NAME_LENGTH_MAX:
        return ""
    is_counter = kind is PointKind.COUNTER
    return f"{PREFIX}{name}{'_total' if is_counter and not name.endswith('_total') else ''}"


def is_shown(value: float) -> bool:
    """Whether a value says anything: clients push NaN for what they have not measured."""
    return not math.isnan(value)


def _sanitised(attributes: Mapping[str, str]) -> dict[str, str]:
    """Attributes with names that labels may have, in a fixed order; those too long are left out."""
    return {
        _label_name(name): value
        for name, value in sorted(attributes.items())
        if name and len(name) <= _NAME_LENGTH_MAX and len(value) <= _LABELS_LENGTH_MAX
    }


def _label_name(name: str) -> str:
    """Letters, digits and underscores, no digit first, and not `__`, which is Prometheus' own."""
    sanitised = _FOREIGN.sub("_", name)
    is_taken = (
        sanitised[0].isdigit() or sanitised.startswith("__") or sanitised in ("le", "quantile")
    )
    return f"label_{sanitised}" if is_taken else sanitised
