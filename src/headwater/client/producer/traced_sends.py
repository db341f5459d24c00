"""The trace of a producer, put together: who tells, who samples, who asks for shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from headwater.base.settings import SettingValues
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.environment import ClientEnvironment
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.intake.record_intake import RecordIntake
from headwater.client.producer.intake.send_options import SendOptions
from headwater.client.producer.intake.topic_route import TopicRoute
from headwater.client.producer.intake.traced_intake import TracedIntake
from headwater.client.producer.metrics import ProducerMetrics
from headwater.client.producer.sending.traced_metrics import TracedMetrics
from headwater.client.tracing.producer_trace import ProducerTrace
from headwater.client.tracing.sampling import Sampler
from headwater.client.tracing.topic_shares import TopicShares
from headwater.client.tracing.tracer import make_tracer


class TracedSends(NamedTuple):
    """What a producer has in addition if it traces."""

    trace: ProducerTrace
    shares: TopicShares

    @classmethod
    def of_settings(
        cls, values: SettingValues, environment: ClientEnvironment, connection: ClusterConnection
    ) -> TracedSends | None:
        tracer = make_tracer(values, environment)
        if tracer is None:
            return None
        sampler = Sampler(environment.generator)
        own_share = values.optional_number("trace.sample")
        return cls(ProducerTrace(tracer, sampler), TopicShares(connection, sampler, own_share))

    async def close(self, timeout_s: float | None) -> None:
        await self.shares.close()
        await self.trace.tracer.close(timeout_s)


def make_metrics(now_s: float, traces: TracedSends | None) -> ProducerMetrics:
    return ProducerMetrics(now_s) if traces is None else TracedMetrics(now_s, traces.trace)


def make_intake(
    traces: TracedSends | None,
    options: SendOptions,
    accumulator: RecordAccumulator,
    routes: Mapping[str, TopicRoute],
    *,
    now_s: Callable[[], float],
    wake: Callable[[], None],
    on_exhausted: Callable[[], None],
) -> RecordIntake:
    given = (options, accumulator, routes)
    if traces is None:
        return RecordIntake(*given, now_s=now_s, wake=wake, on_exhausted=on_exhausted)
    return TracedIntake(traces.trace, *given, now_s=now_s, wake=wake, on_exhausted=on_exhausted)
