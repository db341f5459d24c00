"""Transactions a second: small ones, of one client after the other, and of many at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

from bench.broker import librdkafka_client
from bench.broker.client_run import ClientRun, ServerRun, observe
from bench.broker.groups import add_rate_row
from bench.broker.run import Run, take_turns
from bench.broker.servers import Server
from bench.broker.transaction_load import run_transactions

SECTION = "Transactions"
TRANSACTIONS_TOPIC = "__transaction_state"
RECORD_COUNT = 10
RECORD_SIZE_BYTES = 100
PRODUCER_COUNT = 16
_PARTITION_COUNT = 1

_numbers = itertools.count(1)


def measure(run: Run, servers: tuple[Server, Server]) -> None:
    for durable in (False, True) if run.sizes.coordinates_durably else (False,):
        name = "on disk" if durable else "no fsync"
        if "librdkafka" in run.clients:
            what = f"1 producer, {RECORD_COUNT} records each, {name}, librdkafka"
            run.attempt(what, partial(_add_row, run, servers, _run_librdkafka, durable, what))
        what = f"{PRODUCER_COUNT} producers, 1 record each, {name}"
        run.attempt(what, partial(_add_row, run, servers, _run_bare, durable, what))


def _add_row(
    run: Run,
    servers: tuple[Server, Server],
    transact: Callable[[Run, Server, str], ClientRun],
    durable: bool,
    what: str,
) -> None:
    def work(server: Server) -> ServerRun:
        configs = server.durable_topic_configs if durable else {}
        topic_name = f"transactions-{next(_numbers)}"
        with (
            server.topic(topic_name, PRODUCER_COUNT, configs) as topic,
            server.durable([TRANSACTIONS_TOPIC], durable),
        ):
            return observe(server, lambda: transact(run, server, topic))

    for server in servers:
        _make_transactions_topic(server)
        work(server)
    measured = take_turns(servers, run.sizes.transaction_rounds, work)
    add_rate_row(run, SECTION, what, "transactions/s", measured)


def _make_transactions_topic(server: Server) -> None:
    """The first transaction makes it; its settings can be changed from then on."""
    with server.topic(f"transactions-{next(_numbers)}", _PARTITION_COUNT) as topic:
        run_transactions(server.port, topic, [f"bench-{next(_numbers)}"], 0.0)


def _run_librdkafka(run: Run, server: Server, topic: str) -> ClientRun:
    count = run.sizes.transaction_count
    seconds = librdkafka_client.run_job(
        "transact",
        bootstrap=server.bootstrap,
        topic=topic,
        transactional_id=f"bench-{next(_numbers)}",
        transaction_count=count,
        record_count=RECORD_COUNT,
        record_size_bytes=RECORD_SIZE_BYTES,
    )
    return ClientRun(count, count * RECORD_COUNT * RECORD_SIZE_BYTES, seconds)


def _run_bare(run: Run, server: Server, topic: str) -> ClientRun:
    ids = [f"bench-{next(_numbers)}" for _ in range(PRODUCER_COUNT)]
    count = run_transactions(server.port, topic, ids, run.sizes.transaction_s)
    return ClientRun(count.answer_count, 0, count.seconds)
