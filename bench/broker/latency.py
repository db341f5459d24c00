"""How long a record takes from the producer's call to the consumer's hands, at a modest rate.

A producer and a consumer on librdkafka, each in a process of its own; a record carries the moment
at which it was sent. The first second is left out: connections are made in it.
"""

from __future__ import annotations

import itertools

from bench.broker.librdkafka_client import start_job
from bench.broker.results import LATENCY, Row
from bench.broker.run import Run, take_turns
from bench.broker.servers import Server
from bench.job_process import finish_job
from bench.rounds import Comparison, percentile
from headwater.java.processes import kill_process

SECTION = "Latency, produce to consume"
RATE_PER_S = 1_000
RECORD_SIZE_BYTES = 100
_LEFT_OUT_S = 1.0

_topic_numbers = itertools.count(1)


def measure(run: Run, servers: tuple[Server, Server]) -> None:
    run.attempt(f"Latency at {RATE_PER_S:,} records/s", lambda: _add_rows(run, servers))


def _add_rows(run: Run, servers: tuple[Server, Server]) -> None:
    def latencies(server: Server) -> list[float]:
        return measure_latencies_ms(server, run.sizes.latency_s)

    for server in servers:
        measure_latencies_ms(server, min(1.0, run.sizes.latency_s))
    ours, peer = take_turns(servers, run.sizes.latency_rounds, latencies)
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        values = Comparison(
            [percentile(one, share) for one in ours], [percentile(one, share) for one in peer]
        )
        what = f"{name} at {RATE_PER_S:,} records/s"
        run.results.rows.append(Row(SECTION, what, "ms", values, LATENCY))


def measure_latencies_ms(server: Server, seconds: float) -> list[float]:
    """Latencies of so many seconds, once all is going."""
    left_out_count = int(_LEFT_OUT_S * RATE_PER_S)
    record_count = left_out_count + int(seconds * RATE_PER_S)
    with server.topic(f"latency-{next(_topic_numbers)}", 1) as topic:
        common = {"bootstrap": server.bootstrap, "topic": topic, "record_count": record_count}
        receiver = start_job("receive_latencies", **common)
        try:
            sender = start_job(
                "send_at_rate",
                record_size_bytes=RECORD_SIZE_BYTES,
                rate_per_s=RATE_PER_S,
                **common,
            )
            if finish_job(sender) != 0:
                raise RuntimeError(f"{server.name} has not acknowledged all records")
            latencies: list[float] = finish_job(receiver)
        except BaseException:
            kill_process(receiver)
            raise
    return latencies[left_out_count:]
