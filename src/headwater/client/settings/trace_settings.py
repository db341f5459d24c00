"""The settings of a client's trace: what producers and consumers write about records."""

from __future__ import annotations

from typing import Final

from headwater.base.ids import TRACE_TOPIC
from headwater.base.settings import Setting, SettingKind, SettingTable

_BOOLEAN, _STRING = SettingKind.BOOLEAN, SettingKind.STRING

# fmt: off
TRACE_SETTINGS: Final = SettingTable("client", [
    Setting("trace.enable", _BOOLEAN, False, "Whether the client writes what it does with records, "
            "for headwater trace and for OpenTelemetry. Without it tracing costs nothing."),
    Setting("trace.sample", SettingKind.DOUBLE, None, "Which share of its records a producer "
            "traces, from 0 to 1, whatever their topics say. Without it the topic's trace.sample "
            "counts, and nothing is sampled on a cluster that has no such setting. Records that "
            "carry a traceparent are traced if that is sampled. A consumer traces what producers "
            "have chosen.", lower=0, upper=1),
    Setting("trace.topic", _STRING, TRACE_TOPIC, "The topic that steps are written to; empty for "
            "none, where they are only exported."),
    Setting("trace.buffer.steps", SettingKind.INT, 10000, "How many steps may wait to be written. "
            "What comes beyond that is dropped and counted (trace-steps-dropped-total).", lower=1),
    Setting("trace.otlp.endpoint", _STRING, None, "Where steps are exported to as spans of "
            "OpenTelemetry, by OTLP over HTTP, as in http://127.0.0.1:4318. Needs "
            "the extra otel."),
    Setting("trace.otlp.parent", _BOOLEAN, False, "Whether the span of a handler is a child of the "
            "span that sent the record. Otherwise it is linked to that, and has a trace of its "
            "own."),
])
# fmt: on
