"""What clients push: OpenTelemetry's MetricsData, as far as it can be shown or passed on.

    MetricsData > ResourceMetrics > ScopeMetrics > Metric > Gauge | Sum | Histogram > data point

Of a data point its attributes and its value are read, of a histogram the count and the sum; other
kinds of metrics, units, exemplars and times are skipped. The library that has all of it
(`opentelemetry-proto`) is not needed by a broker; the tests hold this reader against it.

What is read is bounded: the bytes by the caller, fields and data points here. Points beyond that
are only counted. `MetricsDataError` is all that bad bytes raise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from headwater.broker.telemetry import protobuf
from headwater.broker.telemetry.protobuf import BYTES, FIXED64, VARINT, Budget, fields

FIELDS_MAX: Final = 100_000
POINTS_MAX: Final = 5_000
#: Java's client sends one for each metric. What is passed on has more attributes in each of them.
RESOURCES_MAX: Final = POINTS_MAX

_DELTA: Final = 1


class MetricsDataError(Exception):
    """What was pushed cannot be read; the text is a sentence."""


class PointKind(Enum):
    GAUGE = "gauge"
    #: A sum that only grows.
    COUNTER = "counter"
    #: A count and a sum, as histograms have them.
    SUMMARY = "summary"


@dataclass(slots=True)
class Point:
    """One value of one metric."""

    name: str
    kind: PointKind
    attributes: dict[str, str]
    value: float
    #: Of a summary.
    count: int = 0
    #: Whether it tells what has come since the push before, and not all since the beginning.
    is_delta: bool = False


@dataclass(slots=True)
class MetricsData:
    #: What the client says of itself.
    resource: dict[str, str] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    #: Points that were not read, because there are too many.
    omitted_count: int = 0


def read_metrics_data(data: bytes) -> MetricsData:
    """What a push holds; raises `MetricsDataError`."""
    found = MetricsData()
    budget = Budget(FIELDS_MAX)
    try:
        for count, resource_metrics in enumerate(_messages(memoryview(data), 1, budget)):
            if count == RESOURCES_MAX:
                raise MetricsDataError(f"Metrics of more than {RESOURCES_MAX:,} resources.")
            for number, wire_type, value in fields(resource_metrics, budget):
                if wire_type != BYTES or isinstance(value, int):
                    continue
                if number == 1:
                    found.resource.update(_attributes(_messages(value, 1, budget), budget))
                elif number == 2:
                    for metric in _messages(value, 2, budget):
                        _read_metric(metric, found, budget)
    except protobuf.ProtobufError as error:
        raise MetricsDataError(str(error)) from None
    return found


def with_resource(data: bytes, attributes: Mapping[str, str]) -> bytes:
    """The same with more attributes of the resource; `data` has been read before.

    A message that stands twice means both taken together, so nothing of it need be written anew.
    What a client has said itself should not be among the attributes.
    """
    added = protobuf.bytes_field(
        1, b"".join(protobuf.bytes_field(1, _attribute(*each)) for each in attributes.items())
    )
    return b"".join(
        protobuf.bytes_field(1, b"".join((resource_metrics, added)))
        for resource_metrics in _messages(memoryview(data), 1, Budget(FIELDS_MAX))
    )


def _attribute(key: str, value: str) -> bytes:
    any_value = protobuf.bytes_field(1, value.encode())
    return protobuf.bytes_field(1, key.encode()) + protobuf.bytes_field(2, any_value)


def _messages(data: memoryview, wanted: int, budget: Budget) -> Iterator[memoryview]:
    """The fields with a number, which hold messages."""
    for number, wire_type, value in fields(data, budget):
        if number == wanted and wire_type == BYTES and not isinstance(value, int):
            yield value


def _read_metric(data: memoryview, found: MetricsData, budget: Budget) -> None:
    name, content, content_number = "", memoryview(b""), 0
    for number, wire_type, value in fields(data, budget):
        if wire_type != BYTES or isinstance(value, int):
            continue
        if number == 1:
            name = protobuf.text(value)
        elif number in (5, 7, 9):
            content, content_number = value, number
    if not content_number:
        return
    points, temporality, is_monotonic = [], 0, False
    for number, wire_type, value in fields(content, budget):
        if number == 1 and wire_type == BYTES and not isinstance(value, int):
            points.append(value)
        elif number == 2 and isinstance(value, int):
            temporality = value
        elif number == 3 and isinstance(value, int):
            is_monotonic = bool(value)
    is_histogram, is_sum = content_number == 9, content_number == 7
    kind = PointKind.COUNTER if is_sum and is_monotonic else PointKind.GAUGE
    for each in points:
        point = Point(name, PointKind.SUMMARY if is_histogram else kind, {}, 0.0)
        point.is_delta = temporality == _DELTA and (is_histogram or is_sum)
        read = _read_histogram_point if is_histogram else _read_number_point
        if not read(each, point, budget):
            continue
        if len(found.points) < POINTS_MAX:
            found.points.append(point)
        else:
            found.omitted_count += 1


def _read_number_point(data: memoryview, point: Point, budget: Budget) -> bool:
    """Whether it has a value."""
    has_value, attributes = False, []
    for number, wire_type, value in fields(data, budget):
        if isinstance(value, int):
            continue
        if number == 7 and wire_type == BYTES:
            attributes.append(value)
        elif number in (4, 6) and wire_type == FIXED64:
            point.value = protobuf.double(value) if number == 4 else protobuf.fixed_int(value)
            has_value = True
    point.attributes = _attributes(attributes, budget)
    return has_value


def _read_histogram_point(data: memoryview, point: Point, budget: Budget) -> bool:
    attributes = []
    for number, wire_type, value in fields(data, budget):
        if isinstance(value, int):
            continue
        if number == 9 and wire_type == BYTES:
            attributes.append(value)
        elif number == 4 and wire_type == FIXED64:
            point.count = int.from_bytes(value, "little")
        elif number == 5 and wire_type == FIXED64:
            point.value = protobuf.double(value)
    point.attributes = _attributes(attributes, budget)
    return True


def _attributes(
    messages: Iterator[memoryview] | list[memoryview], budget: Budget
) -> dict[str, str]:
    """Keys and values; lists and maps among the values are left out."""
    found: dict[str, str] = {}
    for message in messages:
        key, value = "", None
        for number, wire_type, held in fields(message, budget):
            if wire_type != BYTES or isinstance(held, int):
                continue
            if number == 1:
                key = protobuf.text(held)
            elif number == 2:
                value = _any_value(held, budget)
        if value is not None:
            found[key] = value
    return found


def _any_value(data: memoryview, budget: Budget) -> str | None:
    found = None
    for number, wire_type, value in fields(data, budget):
        if isinstance(value, int):
            if wire_type == VARINT and number == 2:
                found = "true" if value else "false"
            elif wire_type == VARINT and number == 3:
                found = str(protobuf.signed(value))
        elif number == 1 and wire_type == BYTES:
            found = protobuf.text(value)
        elif number == 4 and wire_type == FIXED64:
            found = repr(protobuf.double(value))
    return found
