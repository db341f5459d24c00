"""A running broker serves its metrics, and they tell what clients did."""

import asyncio
import urllib.request
from pathlib import Path

import uvloop
from prometheus_client.parser import text_string_to_metric_families

from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.net.endpoint import split_address
from headwater.net.peer_channel import PeerChannel
from headwater.wire.messages.metadata import MetadataRequest


def scrape(address: str) -> dict[tuple[str, tuple[str, ...]], float]:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_of_a_running_broker(tmp_path: Path) -> None:
    texts = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "metrics.listen": "127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "broker.id": "0",
    }

    async def run() -> None:
        server = BrokerServer(static_of(texts))
        await server.start()
        assert server.metrics_address is not None
        try:
            host, port = split_address(server.addresses[0])
            channel = await PeerChannel.connect(host, port, client_id="test", timeout_s=10)
            for _ in range(3):
                await channel.send(MetadataRequest(topics=None), timeout_s=10)
            figures = await asyncio.to_thread(scrape, server.metrics_address)
            await channel.close()
        finally:
            await server.stop()
        assert figures["headwater_request_seconds_count", ("Metadata",)] == 3
        assert 0 < figures["headwater_request_seconds_sum", ("Metadata",)] < 10
        assert figures["headwater_connections", ()] == 1
        assert figures["headwater_network_received_bytes_total", ()] > 50
        assert figures["headwater_network_sent_bytes_total", ()] > 50
        assert figures["headwater_active_controller_count", ()] == 1
        for name in ("network_processor", "request_handler"):
            assert 0 <= figures[f"headwater_{name}_avg_idle_percent", ()] <= 1

    uvloop.run(run())
