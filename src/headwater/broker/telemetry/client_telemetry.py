"""The telemetry of clients (KIP-714) on one broker: they ask what to push, and push it.

    GetTelemetrySubscriptions -> Subscriptions -> which metrics, how often, how large at most
    PushTelemetry -> Instances: may it? -> decompressed and read, in a thread
                       -> ClientSeries, for the page of metrics
                       -> OtlpForwarder, if there is one

It is there only if somebody receives what is pushed: without the page and without an address to
pass it on to, no client is told of these APIs. Clients push values since the beginning, so that
nothing is lost with a push that is, and a client may go on at another broker.

Pushes come from strangers. One is read at a time, and few may wait: who comes then is told to wait
for its next interval. What a push may grow to is bounded (`EXPANSION_MAX`), and so is what is read
of it, shown of it and kept of it, each by its part.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import topic_id_to_text
from headwater.base.printable import shortened
from headwater.base.threads import RunInThread
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.telemetry.forwarding import OtlpForwarder
from headwater.broker.telemetry.instances import RESERVED_IDS, Instance, Instances, expiry_ms
from headwater.broker.telemetry.metrics_data import (
    MetricsData,
    MetricsDataError,
    read_metrics_data,
    with_resource,
)
from headwater.broker.telemetry.samples import Sample, info_of, samples_of
from headwater.broker.telemetry.series import ClientSeries
from headwater.broker.telemetry.subscriptions import Request, Subscriptions
from headwater.cluster.image.image import ClusterImage
from headwater.wire.records.compression import Compression, decompress
from headwater.wire.records.errors import DecompressedTooLargeError

#: How many times its size a push may have when it is decompressed, in `telemetry.max.bytes`.
EXPANSION_MAX: Final = 8
#: How many pushes may be read or wait for it.
WAITING_MAX: Final = 16
#: How often those that have stopped pushing are looked for, whether anybody reads the page or not.
_SWEEP_MS: Final = 60_000
#: What tells an instance on the page; what else is known of it stands in one line.
_SHOWN: Final = ("client_id", "client_instance_id")


class Push(NamedTuple):
    """What a client sends with PushTelemetry."""

    subscription_id: int
    compression: int
    is_last: bool
    metrics: bytes


class _Read(NamedTuple):
    """What a push holds, as it is shown and as it is passed on."""

    samples: list[Sample]
    refused_count: int
    payload: bytes | None


class ClientTelemetry:
    """See the module's text; its owner is the broker."""

    def __init__(
        self,
        settings: BrokerSettings,
        run_in_thread: RunInThread,
        draw_id: Callable[[], uuid.UUID],
        forwarder: OtlpForwarder | None = None,
        *,
        is_shown: bool = True,
    ) -> None:
        """`is_shown`: whether there is a page for what is pushed."""
        self._is_shown = is_shown
        self._settings = settings
        self._run_in_thread = run_in_thread
        self._draw_id = draw_id
        self.forwarder = forwarder
        self._subscriptions = Subscriptions(settings)
        self.instances = Instances(self._subscriptions)
        self.series = ClientSeries(lambda: settings.integer("telemetry.series.max"))
        self.push_count = 0
        self._swept_ms = float("-inf")
        self._reading = asyncio.Lock()
        self._waiting_count = 0

    @property
    def bytes_max(self) -> int:
        """How large a push may be as it is sent."""
        return self._settings.integer("telemetry.max.bytes")

    def ask(
        self, instance_id: uuid.UUID, client: Mapping[str, str], image: ClusterImage, now_ms: float
    ) -> tuple[uuid.UUID, Request]:
        """The client's id, given to it if it has none, and what it shall push."""
        self._subscriptions.follow(image)
        while instance_id in RESERVED_IDS:
            instance_id = self._draw_id()
        return instance_id, self.instances.ask(instance_id, _named(client, instance_id), now_ms)

    async def push(
        self,
        instance_id: uuid.UUID,
        client: Mapping[str, str],
        image: ClusterImage,
        now_ms: float,
        push: Push,
    ) -> None:
        """Take what a client pushes; raises `KafkaError`."""
        if instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "No client has this instance id.")
        self._subscriptions.follow(image)
        if now_ms - self._swept_ms >= _SWEEP_MS:
            for _ in self.forget_expired(now_ms):
                pass
        client = _named(client, instance_id)
        instance = self.instances.push(
            instance_id,
            client,
            now_ms,
            subscription_id=push.subscription_id,
            is_last=push.is_last,
        )
        try:
            await self._take(instance, client, now_ms, push)
        except KafkaError as error:
            instance.error = error.code
            raise

    def forget_expired(self, now_ms: float) -> Iterator[None]:
        """Let go of clients that have stopped pushing, an instance at a time."""
        self._swept_ms = now_ms
        self.instances.forget_expired(now_ms)
        return self.series.forget_expired(now_ms)

    def close(self) -> None:
        """Pass nothing on any more."""
        if self.forwarder is not None:
            self.forwarder.close()

    async def _take(
        self, instance: Instance, client: Mapping[str, str], now_ms: float, push: Push
    ) -> None:
        if push.compression not in list(Compression):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"There is no compression with the code {push.compression}.",
            )
        if len(push.metrics) > self.bytes_max:
            raise KafkaError(
                ErrorCode.TELEMETRY_TOO_LARGE, f"At most {self.bytes_max} bytes are taken at once."
            )
        if self._waiting_count >= WAITING_MAX:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Too many clients push now.")
        self.push_count += 1
        if not push.metrics:
            return
        self._waiting_count += 1
        try:
            # One at a time: what a push takes to read is then taken once.
            async with self._reading:
                read = await self._run_in_thread(lambda: self._read(push, client, instance.request))
        finally:
            self._waiting_count -= 1
        self.series.dropped_count += read.refused_count
        expires_ms = now_ms + expiry_ms(instance.request.interval_ms)
        self.series.take(client["client_instance_id"], read.samples, now_ms, expires_ms)
        if self.forwarder is not None and read.payload is not None:
            self.forwarder.offer(read.payload)

    def _read(self, push: Push, client: Mapping[str, str], request: Request) -> _Read:
        """In a thread."""
        client = {name: shortened(value) for name, value in client.items()}
        size_max = EXPANSION_MAX * self.bytes_max
        try:
            data = decompress(Compression(push.compression), push.metrics, size_max)
            found = read_metrics_data(data)
        except DecompressedTooLargeError:
            raise KafkaError(
                ErrorCode.TELEMETRY_TOO_LARGE, f"Decompressed it takes more than {size_max} bytes."
            ) from None
        except (KafkaError, MetricsDataError) as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
        samples, refused_count = _shown(found, client, request) if self._is_shown else ([], 0)
        return _Read(samples, refused_count, self._payload(data, found, client))

    def _payload(self, data: bytes, found: MetricsData, client: Mapping[str, str]) -> bytes | None:
        if self.forwarder is None or not found.points:
            return None
        known = {**client, "broker_id": str(self._settings.broker_id)}
        return with_resource(
            data, {name: known[name] for name in known if name not in found.resource}
        )


def _shown(
    found: MetricsData, client: Mapping[str, str], request: Request
) -> tuple[list[Sample], int]:
    wanted = [point for point in found.points if request.wants(point.name)]
    who = {name: client[name] for name in _SHOWN if name in client}
    samples, refused_count = samples_of(wanted, who)
    # The port is another one with each connection, and there would be a line for each.
    known = {name: value for name, value in client.items() if name != "client_source_port"}
    info = info_of(found.resource, known)
    if samples and info is not None:
        samples.insert(0, info)
    return samples, refused_count + found.omitted_count + len(found.points) - len(wanted)


def _named(client: Mapping[str, str], instance_id: uuid.UUID) -> dict[str, str]:
    """What is known of a client, with its id as Kafka's clients print it."""
    return {**client, "client_instance_id": topic_id_to_text(instance_id)}
