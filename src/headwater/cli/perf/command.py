"""`headwater perf`: measure how fast a cluster takes and gives records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from headwater.cli.options.choice import one_of
from headwater.cli.options.cluster import BootstrapServer, bootstrap_servers
from headwater.cli.options.json_option import AsJson
from headwater.cli.options.topic_argument import TopicArgument, TopicOption, one_topic
from headwater.cli.perf import partitions_command

if TYPE_CHECKING:
    from headwater.cli.perf.report import PerfResult
    from headwater.cli.perf.runs import ProduceLoad
    from headwater.client.connection.cluster_connection import ClusterConnection

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

TIMEOUT_S = 30.0
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("all", "-1", "1", "0")

PRODUCE_HELP = """\
Send records as fast as possible, or at a given rate, until all are acknowledged.

    headwater perf produce perf --num-records 1000000 --record-size 100

    headwater perf produce perf --num-records 60000 --record-size 1000 --throughput 1000 --acks 1
"""

CONSUME_HELP = """\
Read a topic from its start as fast as possible.

    headwater perf consume perf --num-records 1000000
"""

LATENCY_HELP = """\
Send records at a steady rate, and time how long each takes to be acknowledged and consumed.

The clock starts when a record is due, not when it could be sent, so a program or a broker that \
falls behind does not look better for it.

    headwater perf latency perf --num-records 10000 --throughput 1000 --acks all
"""

RecordCount: TypeAlias = Annotated[
    int, typer.Option("--num-records", "--messages", metavar="N", min=1, help="How many records.")
]
RecordSize: TypeAlias = Annotated[
    int, typer.Option("--record-size", metavar="BYTES", min=1, help="The size of each value.")
]
Throughput: TypeAlias = Annotated[
    float,
    typer.Option("--throughput", metavar="N", help="Records a second; -1 for no limit."),
]
Acks: TypeAlias = Annotated[
    str, typer.Option("--acks", metavar="ACKS", help="all (or -1), 1 or 0.")
]
PartitionCount: TypeAlias = Annotated[
    int,
    typer.Option(
        "--partitions", metavar="N", min=1, help="How many a topic gets that is not there yet."
    ),
]


@app.callback()
def _perf() -> None:
    """Measure any Kafka-compatible cluster. Topics that are not there are created, and stay."""


@app.command(help=PRODUCE_HELP)
def produce(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    num_records: RecordCount = 1_000_000,
    record_size: RecordSize = 100,
    throughput: Throughput = -1,
    acks: Acks = "all",
    compression: Annotated[
        str,
        typer.Option(
            "--compression-codec",
            "--compression",
            metavar="CODEC",
            help=f"One of {', '.join(COMPRESSIONS)}.",
        ),
    ] = "none",
    batch_size: Annotated[
        int, typer.Option("--batch-size", metavar="BYTES", min=1, help="The size of a full batch.")
    ] = 256 << 10,
    linger_ms: Annotated[
        int,
        typer.Option("--linger-ms", metavar="MS", min=0, help="How long a batch may wait."),
    ] = 5,
    partitions: PartitionCount = 1,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    load = _load(
        one_topic(topic, topic_option),
        num_records,
        record_size,
        throughput,
        acks,
        compression,
        batch_size,
        linger_ms,
        partitions,
    )

    async def measure(connection: ClusterConnection) -> PerfResult:
        from headwater.cli.perf.runs import measure_produce

        servers = bootstrap_servers(bootstrap_server)
        return await measure_produce(connection, servers, load, show_bar=not as_json)

    _run(bootstrap_server, measure, times_singles=throughput > 0).show(as_json=as_json)


@app.command(help=CONSUME_HELP)
def consume(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    num_records: Annotated[
        int | None,
        typer.Option(
            "--num-records",
            "--messages",
            metavar="N",
            min=1,
            help="How many records.",
            show_default="until no more come",
        ),
    ] = None,
    from_latest: Annotated[
        bool, typer.Option("--from-latest", help="Begin with what is written from now on.")
    ] = False,
    timeout_ms: Annotated[
        int,
        typer.Option(
            "--timeout", metavar="MS", min=1, help="Stop when nothing comes for this long."
        ),
    ] = 10_000,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    name = one_topic(topic, topic_option)

    async def measure(connection: ClusterConnection) -> PerfResult:
        from headwater.cli.perf.runs import measure_consume

        return await measure_consume(
            connection,
            bootstrap_servers(bootstrap_server),
            name,
            num_records,
            from_latest=from_latest,
            quiet_s=timeout_ms / 1000,
            show_bar=not as_json,
        )

    result = _run(bootstrap_server, measure)
    result.show(as_json=as_json)
    if num_records is not None and result.record_count < num_records:
        raise typer.Exit(1)


@app.command(help=LATENCY_HELP)
def latency(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    num_records: RecordCount = 10_000,
    record_size: RecordSize = 100,
    throughput: Throughput = 1_000,
    acks: Acks = "all",
    partitions: PartitionCount = 1,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    if throughput <= 0:
        raise typer.BadParameter("latency needs a rate above 0", param_hint="--throughput")
    load = _load(
        one_topic(topic, topic_option),
        num_records,
        record_size,
        throughput,
        acks,
        "none",
        256 << 10,
        0,
        partitions,
    )

    async def measure(connection: ClusterConnection) -> PerfResult:
        from headwater.cli.perf.runs import measure_latency

        servers = bootstrap_servers(bootstrap_server)
        return await measure_latency(connection, servers, load, show_bar=not as_json)

    _run(bootstrap_server, measure, times_singles=True).show(as_json=as_json)


app.command("partitions", help=partitions_command.HELP)(partitions_command.partitions)


def _load(
    topic: str,
    record_count: int,
    record_size: int,
    throughput: float,
    acks: str,
    compression: str,
    batch_size: int,
    linger_ms: int,
    partition_count: int,
) -> ProduceLoad:
    one_of(acks, ACKS, "--acks")
    one_of(compression, COMPRESSIONS, "--compression-codec")
    from headwater.cli.perf.runs import ProduceLoad

    return ProduceLoad(
        topic=topic,
        record_count=record_count,
        record_size=record_size,
        records_per_second=throughput if throughput > 0 else None,
        acks=acks,
        compression=compression,
        batch_size_bytes=batch_size,
        linger_ms=linger_ms,
        partition_count=partition_count,
    )


def _run(
    bootstrap_server: str | None,
    measure: Callable[[ClusterConnection], Awaitable[PerfResult]],
    *,
    times_singles: bool = False,
) -> PerfResult:
    """The faster loop, or, where milliseconds are too coarse, the one with the finer clock."""
    import asyncio

    import uvloop

    from headwater.client.connection.cluster_connection import ClusterConnection

    async def connected() -> PerfResult:
        servers = bootstrap_servers(bootstrap_server)
        async with ClusterConnection(servers, timeout_s=TIMEOUT_S) as connection:
            return await measure(connection)

    factory = asyncio.new_event_loop if times_singles else uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(connected())
