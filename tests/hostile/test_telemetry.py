"""Pushes of metrics by clients that mean no good: bombs, garbage, floods of ids and names."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.broker.telemetry.instances import INSTANCES_MAX
from headwater.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from headwater.wire.messages.push_telemetry import PushTelemetryRequest
from headwater.wire.records.compression import Compression, compress
from tests.support.brokers.hostile_broker import MEBIBYTE, AttackedBroker, attacked_broker
from tests.support.metric_figures import figure, read
from tests.support.other_clients.raw import RawConnection
from tests.support.tiers import rounds
from tests.support.values.pushed_metrics import gauge, pushed, subscription

SERIES_MAX = 2_000
NONE, TOO_LARGE = ErrorCode.NONE, ErrorCode.TELEMETRY_TOO_LARGE


def push(connection: RawConnection, data: bytes, compression: int = 0) -> ErrorCode:
    """A push of an instance that nobody has heard of."""
    told = connection.ask(GetTelemetrySubscriptionsRequest(), 0)
    request = PushTelemetryRequest(
        client_instance_id=told.client_instance_id,
        subscription_id=told.subscription_id,
        compression_type=compression,
        metrics=data,
    )
    return ErrorCode.from_wire(connection.ask(request, 0).error_code)


def test_pushes_that_mean_no_good(tmp_path: Path) -> None:
    settings = {"telemetry.series.max": str(SERIES_MAX)}
    with (
        attacked_broker(tmp_path, settings=settings) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        connection.ask(subscription(metrics="*", interval_ms="3600000"), 1)
        _bombs(connection)
        _garbage(connection)
        _names(broker, connection)
        _instances(broker, connection)


def _bombs(connection: RawConnection) -> None:
    for compression in (Compression.GZIP, Compression.LZ4, Compression.ZSTD):
        bomb = compress(compression, bytes(40 * MEBIBYTE))
        if len(bomb) <= MEBIBYTE:
            assert push(connection, bomb, compression) is TOO_LARGE
    assert push(connection, bytes(2 * MEBIBYTE)) is TOO_LARGE


def _garbage(connection: RawConnection) -> None:
    generator = random.Random(1)
    refused = (ErrorCode.INVALID_RECORD, TOO_LARGE)
    for number in range(rounds(small=25, full=500)):
        garbage = generator.randbytes(1 + number * 40)
        assert push(connection, garbage, number % 5) in (*refused, NONE)
    # As many fields as there may be, and more, all of them in order but for their number.
    fields = compress(Compression.ZSTD, b"\x10\x00" * (4 * MEBIBYTE))
    assert push(connection, fields, Compression.ZSTD) is ErrorCode.INVALID_RECORD
    points = pushed([gauge("a", 1)] * 20_000)
    assert push(connection, compress(Compression.ZSTD, points), Compression.ZSTD) in (
        NONE,
        ErrorCode.INVALID_RECORD,
    )


def _names(broker: AttackedBroker, connection: RawConnection) -> None:
    for number in range(2):
        metrics = [gauge(f"n{number}.{each}", 1, a="x" * 300) for each in range(1_500)]
        packed = compress(Compression.ZSTD, pushed(metrics))
        assert push(connection, packed, Compression.ZSTD) is NONE
    figures = read([broker.metrics_page()])
    assert figure(figures, "headwater_telemetry_series") == SERIES_MAX
    assert figure(figures, "headwater_telemetry_series_dropped_total") > 1_000


def _instances(broker: AttackedBroker, connection: RawConnection) -> None:
    count = rounds(small=100, full=INSTANCES_MAX + 3_000)
    for _ in range(count):
        request = GetTelemetrySubscriptionsRequest(client_instance_id=uuid.uuid4())
        assert connection.ask(request, 0).error_code == 0
    assert broker.figure("headwater_telemetry_instances") <= INSTANCES_MAX
