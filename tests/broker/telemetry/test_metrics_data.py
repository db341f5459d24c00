"""Reading what clients push, held against the official library; and bytes that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from headwater.broker.telemetry.metrics_data import (
    FIELDS_MAX,
    POINTS_MAX,
    RESOURCES_MAX,
    MetricsDataError,
    PointKind,
    read_metrics_data,
    with_resource,
)

#: What is told of a point: name, kind, attributes, value, count, whether it is a delta.
Told = tuple[str, PointKind, dict[str, str], float, int, bool]

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
DOUBLES = st.floats(allow_nan=False)
VALUES = (
    st.builds(AnyValue, string_value=st.text(max_size=5))
    | st.builds(AnyValue, bool_value=st.booleans())
    | st.builds(AnyValue, int_value=NUMBERS)
    | st.builds(AnyValue, double_value=DOUBLES)
    | st.builds(AnyValue, bytes_value=st.binary(max_size=3))
)
ATTRIBUTES = st.lists(
    st.builds(KeyValue, key=st.text(max_size=5), value=VALUES),
    max_size=3,
    unique_by=lambda each: each.key,
)
NUMBER_POINTS = st.builds(
    pb.NumberDataPoint, attributes=ATTRIBUTES, as_int=NUMBERS, time_unix_nano=st.just(7)
) | st.builds(pb.NumberDataPoint, attributes=ATTRIBUTES, as_double=DOUBLES)
HISTOGRAM_POINTS = st.builds(
    pb.HistogramDataPoint,
    attributes=ATTRIBUTES,
    count=st.integers(0, (1 << 64) - 1),
    sum=DOUBLES,
    bucket_counts=st.lists(st.integers(0, 9), max_size=3),
)
TEMPORALITIES = st.sampled_from([0, 1, 2])
METRICS = st.one_of(
    st.builds(
        pb.Metric,
        name=st.text(max_size=9),
        gauge=st.builds(pb.Gauge, data_points=st.lists(NUMBER_POINTS, max_size=3)),
    ),
    st.builds(
        pb.Metric,
        name=st.text(max_size=9),
        unit=st.just("ms"),
        sum=st.builds(
            pb.Sum,
            data_points=st.lists(NUMBER_POINTS, max_size=3),
            is_monotonic=st.booleans(),
            aggregation_temporality=TEMPORALITIES,
        ),
    ),
    st.builds(
        pb.Metric,
        name=st.text(max_size=9),
        histogram=st.builds(
            pb.Histogram,
            data_points=st.lists(HISTOGRAM_POINTS, max_size=3),
            aggregation_temporality=TEMPORALITIES,
        ),
    ),
    st.builds(pb.Metric, name=st.text(max_size=9), summary=st.just(pb.Summary())),
)
RESOURCE_METRICS = st.builds(
    pb.ResourceMetrics,
    resource=st.builds(Resource, attributes=ATTRIBUTES),
    scope_metrics=st.lists(
        st.builds(pb.ScopeMetrics, metrics=st.lists(METRICS, max_size=3)), max_size=2
    ),
)
DATA = st.builds(pb.MetricsData, resource_metrics=st.lists(RESOURCE_METRICS, max_size=2))


def attributes_of(given: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:  # type: ignore[attr-defined]
        kind = each.value.WhichOneof("value")
        held = getattr(each.value, kind)
        if kind == "bool_value":
            found[each.key] = "true" if held else "false"
        elif kind != "bytes_value":
            found[each.key] = str(held)
    return found


def told(data: pb.MetricsData) -> list[Told]:
    """What the official library reads."""
    found: list[Told] = []
    metrics = [
        metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    for metric in metrics:
        kind = metric.WhichOneof("data")
        if kind == "histogram":
            is_delta = metric.histogram.aggregation_temporality == 1
            for each in metric.histogram.data_points:
                names = attributes_of(each.attributes)
                of = (metric.name, PointKind.SUMMARY, names)
                found.append((*of, each.sum, each.count, is_delta))
        elif kind in ("gauge", "sum"):
            held = metric.sum if kind == "sum" else metric.gauge
            is_counter = kind == "sum" and metric.sum.is_monotonic
            is_delta = kind == "sum" and metric.sum.aggregation_temporality == 1
            for point in held.data_points:
                value = getattr(point, point.WhichOneof("value"))
                of_point = metric.name, PointKind.COUNTER if is_counter else PointKind.GAUGE
                found.append((*of_point, attributes_of(point.attributes), value, 0, is_delta))
    return found


def read(data: bytes) -> list[Told]:
    return [
        (each.name, each.kind, each.attributes, each.value, each.count, each.is_delta)
        for each in read_metrics_data(data).points
    ]


@given(DATA)
def test_it_reads_what_the_official_library_reads(data: pb.MetricsData) -> None:
    written = data.SerializeToString()
    assert read(written) == told(data)
    resource: dict[str, str] = {}
    for each in data.resource_metrics:
        resource |= attributes_of(each.resource.attributes)
    assert read_metrics_data(written).resource == resource


@given(DATA)
def test_attributes_of_the_resource_are_added(data: pb.MetricsData) -> None:
    written = with_resource(data.SerializeToString(), {"client_id": "a", "name": "z\u00fc"})
    changed = pb.MetricsData.FromString(written)
    assert told(changed) == told(data)
    for before, after in zip(data.resource_metrics, changed.resource_metrics, strict=True):
        names = {**attributes_of(before.resource.attributes), "client_id": "a", "name": "z\u00fc"}
        assert attributes_of(after.resource.attributes) == names


@given(st.binary(max_size=200))
def test_garbage_is_one_error_or_is_skipped(data: bytes) -> None:
    try:
        read_metrics_data(data)
    except MetricsDataError as error:
        assert str(error)


@given(DATA, st.data())
def test_what_is_cut_or_changed_is_too(data: pb.MetricsData, draw: st.DataObject) -> None:
    written = bytearray(data.SerializeToString())
    if not written:
        return
    position = draw.draw(st.integers(0, len(written) - 1))
    written[position] = draw.draw(st.integers(0, 255))
    end = draw.draw(st.integers(0, len(written)))
    for each in (written, written[:end]):
        try:
            read_metrics_data(bytes(each))
        except MetricsDataError as error:
            assert str(error)


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x7f",
        b"\x0a" + b"\xff" * 20,
        b"\x00\x00",
        b"\x0b\x0c",
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0a\x02\x0a\x7f",
        bytes(2),
    ],
)
def test_what_is_no_message(data: bytes) -> None:
    with pytest.raises(MetricsDataError):
        read_metrics_data(data)


def test_a_text_that_is_none() -> None:
    # ResourceMetrics > ScopeMetrics > Metric with the name \xff.
    with pytest.raises(MetricsDataError, match="UTF-8"):
        read_metrics_data(b"\x0a\x07\x12\x05\x12\x03\x0a\x01\xff")


def test_more_fields_than_are_read() -> None:
    with pytest.raises(MetricsDataError, match="more fields"):
        read_metrics_data(b"\x10\x00" * (FIELDS_MAX + 1))


def test_points_beyond_the_bound_are_counted() -> None:
    points = [pb.NumberDataPoint(as_int=each) for each in range(POINTS_MAX + 3)]
    metric = pb.Metric(name="m", gauge=pb.Gauge(data_points=points))
    scope = pb.ScopeMetrics(metrics=[metric])
    data = pb.MetricsData(resource_metrics=[pb.ResourceMetrics(scope_metrics=[scope])])
    found = read_metrics_data(data.SerializeToString())
    assert (len(found.points), found.omitted_count) == (POINTS_MAX, 3)


def _of_resources(count: int) -> bytes:
    """A metric of each, as Java's client writes them."""
    point = pb.NumberDataPoint(as_int=1)
    scope = pb.ScopeMetrics(metrics=[pb.Metric(name="m", gauge=pb.Gauge(data_points=[point]))])
    each = pb.ResourceMetrics(scope_metrics=[scope])
    written: bytes = pb.MetricsData(resource_metrics=[each] * count).SerializeToString()
    return written


def test_each_metric_may_have_a_resource_of_its_own() -> None:
    assert len(read_metrics_data(_of_resources(RESOURCES_MAX)).points) == RESOURCES_MAX


def test_more_resources_than_are_passed_on() -> None:
    with pytest.raises(MetricsDataError, match="more than 5,000 resources"):
        read_metrics_data(_of_resources(RESOURCES_MAX + 1))
