"""`headwater perf partitions`: how many partitions a topic should have, found by measuring."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.options.choice import one_of
from headwater.cli.options.cluster import BootstrapServer, bootstrap_servers, on_cluster
from headwater.cli.options.json_option import AsJson

if TYPE_CHECKING:
    from headwater.cli.perf.partition_counts import CountResult
    from headwater.client.connection.cluster_connection import ClusterConnection

HELP = """\
Measure what numbers of partitions bring and cost, and say which to take.

    headwater perf partitions --partitions 1,4,16,64

    headwater perf partitions --partitions 8,32,128 --record-size 200 --target 30 --chart curve.png

For each number a topic is made, written to, read, timed, led by other brokers, and deleted again. \
START is until every partition has a leader, FAILOVER until all have taken a record from another \
leader, STOP until the topic is gone. It loads the cluster: --seconds says for how long.
"""

_COUNTS_MAX = 20
_TIMEOUT_MS = 120_000
_ACKS = ("all", "-1", "1", "0")


def partitions(
    counts: Annotated[
        str, typer.Option("--partitions", metavar="N,...", help="The numbers to measure.")
    ] = "1,4,16,64",
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", min=0.1, max=600.0, help="How long to write, and to time, each number."
        ),
    ] = 3.0,
    record_size: Annotated[
        int, typer.Option("--record-size", metavar="BYTES", min=1, help="The size of each value.")
    ] = 1000,
    acks: Annotated[
        str, typer.Option("--acks", metavar="ACKS", help="all (or -1), 1 or 0.")
    ] = "all",
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor",
            metavar="N",
            min=1,
            help="Of the topics.",
            show_default="the cluster's",
        ),
    ] = None,
    target_mb: Annotated[
        float | None,
        typer.Option("--target", metavar="MB", help="What shall be written in a second."),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option("--chart", metavar="FILE", help="Draw the curves, as PNG or SVG.")
    ] = None,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    wanted = _counts(counts)
    one_of(acks, _ACKS, "--acks")
    if chart is not None and chart.suffix not in (".png", ".svg"):
        raise typer.BadParameter("it ends with .png or .svg", param_hint="--chart")

    async def measure(connection: ClusterConnection) -> list[CountResult]:
        import asyncio
        import contextlib

        from headwater.cli.interruption import cancelled_by_signals
        from headwater.cli.perf.partition_counts import CountLoad, measure_count

        load = CountLoad(seconds, record_size, acks, replication_factor)
        servers = bootstrap_servers(bootstrap_server)
        results: list[CountResult] = []
        # Ctrl-C leaves no topic behind, and shows what there is.
        with contextlib.suppress(asyncio.CancelledError), cancelled_by_signals():
            for count in wanted:
                tell = partial(_tell, count)
                results.append(await measure_count(connection, servers, count, load, tell))
        return results

    from headwater.cli.perf import partition_report

    if chart is not None:
        partition_report.require_matplotlib()
    results = on_cluster(bootstrap_server, measure, timeout_ms=_TIMEOUT_MS)
    if not results:
        raise typer.Exit(1)
    target_per_s = None if target_mb is None else target_mb * 1e6
    if as_json:
        from headwater.cli.output.json_document import print_document

        print_document(
            {
                "results": [each.as_dict() for each in results],
                "advice": partition_report.advice(results, target_per_s),
            }
        )
    else:
        partition_report.show(results, target_per_s)
    if chart is not None:
        partition_report.draw_chart(results, chart)


def _tell(count: int, what: str) -> None:
    """One line at a terminal that says what is done just now."""
    if sys.stderr.isatty():
        line = f"{count} partitions: {what} ..."
        print(f"\r{line:<60}\r", end="", file=sys.stderr, flush=True)


def _counts(text: str) -> list[int]:
    from headwater.cli.perf.partition_counts import PARTITIONS_MAX

    parts = [each.strip() for each in text.split(",")]
    if not all(each.isascii() and each.isdecimal() and len(each) <= 9 for each in parts):
        raise typer.BadParameter(f"{text!r} should be like 1,4,16", param_hint="--partitions")
    counts = sorted({int(each) for each in parts})
    if not 1 <= counts[0] <= counts[-1] <= PARTITIONS_MAX:
        raise typer.BadParameter(
            f"a topic has 1 to {PARTITIONS_MAX:,} partitions here", param_hint="--partitions"
        )
    if len(counts) > _COUNTS_MAX:
        raise typer.BadParameter(f"{_COUNTS_MAX} numbers at most", param_hint="--partitions")
    return counts
