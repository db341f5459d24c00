"""What clients are asked to push, and what they would, made with OpenTelemetry's own classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

KAFKA = "org.apache.kafka."
_TEMPORALITY = {
    True: pb.AGGREGATION_TEMPORALITY_DELTA,
    False: pb.AGGREGATION_TEMPORALITY_CUMULATIVE,
}


def subscription(**configs: str) -> IncrementalAlterConfigsRequest:
    """Has all clients push; `interval_ms` stands for `interval.ms`."""
    settings = [
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in configs.items()
    ]
    of_all = AlterConfigsResource(resource_type=16, resource_name="all", configs=settings)
    return IncrementalAlterConfigsRequest(resources=[of_all])


def key_values(attributes: Mapping[str, str]) -> list[KeyValue]:
    return [
        KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in attributes.items()
    ]


def gauge(name: str, value: float, **attributes: str) -> pb.Metric:
    point = pb.NumberDataPoint(as_double=value, attributes=key_values(attributes))
    return pb.Metric(name=name, gauge=pb.Gauge(data_points=[point]))


def total(name: str, value: int, *, is_delta: bool = False, **attributes: str) -> pb.Metric:
    point = pb.NumberDataPoint(as_int=value, attributes=key_values(attributes))
    held = pb.Sum(
        data_points=[point], is_monotonic=True, aggregation_temporality=_TEMPORALITY[is_delta]
    )
    return pb.Metric(name=name, sum=held)


def histogram(name: str, count: int, total: float, *, is_delta: bool = False) -> pb.Metric:
    point = pb.HistogramDataPoint(count=count, sum=total)
    held = pb.Histogram(data_points=[point], aggregation_temporality=_TEMPORALITY[is_delta])
    return pb.Metric(name=name, histogram=held)


def pushed(metrics: Sequence[pb.Metric], **resource: str) -> bytes:
    """All of them in one push; `resource` is what the client says of itself."""
    scope = pb.ScopeMetrics(metrics=metrics)
    held = Resource(attributes=key_values(resource))
    resource_metrics = pb.ResourceMetrics(resource=held, scope_metrics=[scope])
    written: bytes = pb.MetricsData(resource_metrics=[resource_metrics]).SerializeToString()
    return written
