"""Many connections at once, and one that does not read what it asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from headwater.testing.broker_process import BrokerProcess, wait_until
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.records import Record, encode_batch
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.crowd import ROUNDS
from tests.support.other_clients.raw import RawConnection, fetch_topic, records_in

CONNECTIONS = 2_000
#: What a connection that waits may cost the broker.
BYTES_PER_CONNECTION_MAX = 20_000


def test_two_thousand_connections_all_at_work(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        ConfluentClient(broker.bootstrap).create_topic("crowded")
        before_bytes = broker.resident_bytes()
        descriptors = broker.descriptor_count()
        command = [sys.executable, "-m", "tests.support.other_clients.crowd"]
        command += [broker.bootstrap, "crowded", str(CONNECTIONS)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as crowd:
            try:
                assert crowd.stdin and crowd.stdout
                report = json.loads(crowd.stdout.readline())
                assert report["open_count"] == CONNECTIONS
                assert broker.descriptor_count() >= CONNECTIONS
                crowd.stdin.write("work\n")
                crowd.stdin.flush()
                report = json.loads(crowd.stdout.readline())
                # They were really all there at the same time, until the last was done.
                assert broker.descriptor_count() >= CONNECTIONS
                grown_bytes = broker.resident_bytes() - before_bytes
                crowd.stdin.write("close\n")
                crowd.stdin.flush()
                assert crowd.wait(60) == 0
            finally:
                crowd.kill()
        assert report["error_count"] == 0
        assert report["acknowledged_count"] == CONNECTIONS // 2 * ROUNDS
        assert report["fetched_count"] == CONNECTIONS // 2 * ROUNDS
        assert grown_bytes < CONNECTIONS * BYTES_PER_CONNECTION_MAX
        wait_until(
            lambda: broker.descriptor_count() <= descriptors + 10, "their descriptors are closed"
        )
        end = ConfluentClient(broker.bootstrap).end_offsets("crowded")
        assert end == (0, report["acknowledged_count"])


def test_a_slow_reader_delays_nobody(tmp_path: Path) -> None:
    """It asks for 200 MB and reads none of it; others produce and fetch as if it were not there."""
    with BrokerProcess(tmp_path) as broker:
        client = ConfluentClient(broker.bootstrap)
        for topic in ("large", "small"):
            client.create_topic(topic)
        batch = encode_batch([Record(0, int(time.time() * 1000), None, b"x" * 1_000_000)])
        with RawConnection(broker.bootstrap) as writer:
            for _ in range(20):
                assert writer.produce("large", batch).error_code == 0
        before_bytes = broker.resident_bytes()
        request = FetchRequest(
            topics=[fetch_topic("large", 0, partition_bytes_max=25_000_000)], session_epoch=-1
        )
        with (
            RawConnection(broker.bootstrap) as slow,
            RawConnection(broker.bootstrap) as quick,
        ):
            asked = [slow.send(request, 12) for _ in range(10)]
            small = encode_batch([Record(0, int(time.time() * 1000), None, b"v")])
            latencies_s = []
            for number in range(300):
                started_s = time.monotonic()
                assert quick.produce("small", small, acks=1).base_offset == number
                answer = quick.fetch(
                    FetchRequest(topics=[fetch_topic("small", number)], session_epoch=-1)
                )
                latencies_s.append(time.monotonic() - started_s)
                assert len(records_in(answer.responses[0].partitions[0].records)) == 1
            latencies_s.sort()
            # Generous, because the machine may be busy with something else; stuck is seconds.
            assert latencies_s[len(latencies_s) // 2] < 0.1
            assert latencies_s[-1] < 2
            assert broker.resident_bytes() - before_bytes < 60_000_000
            # When it reads at last, all of it is there.
            for correlation_id in asked:
                received, answer = slow.receive(FetchRequest.API_KEY, 12)
                assert received == correlation_id
                assert len(records_in(answer.responses[0].partitions[0].records)) == 20


def test_a_slow_sender_delays_nobody(tmp_path: Path) -> None:
    """Requests that trickle in, a byte at a time or never whole, hold nobody up."""
    with BrokerProcess(tmp_path) as broker:
        client = ConfluentClient(broker.bootstrap)
        client.create_topic("small")
        stop = threading.Event()

        def trickle() -> None:
            with RawConnection(broker.bootstrap) as connection:
                # Announces 50 MB and brings ever so little of it.
                connection.send_bytes((50_000_000).to_bytes(4, "big"))
                while not stop.wait(0.01):
                    connection.send_bytes(b"\0")

        before_bytes = broker.resident_bytes()
        threads = [threading.Thread(target=trickle) for _ in range(20)]
        for thread in threads:
            thread.start()
        try:
            with RawConnection(broker.bootstrap) as quick:
                batch = encode_batch([Record(0, int(time.time() * 1000), None, b"v")])
                started_s = time.monotonic()
                for number in range(200):
                    assert quick.produce("small", batch, acks=1).base_offset == number
                assert time.monotonic() - started_s < 10
            # What is announced is not memory yet.
            assert broker.resident_bytes() - before_bytes < 60_000_000
        finally:
            stop.set()
            for thread in threads:
                thread.join()
