"""`headwater metrics`: show what a broker counts, as tables or as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.json_option import AsJson

if TYPE_CHECKING:
    from headwater.cli.metrics.source import MetricsAddress
    from headwater.cli.metrics.table import Readings

app = typer.Typer(pretty_exceptions_enable=False)

HELP = """\
Show the metrics of brokers: traffic, idle time, replication, request latencies, topics.

Brokers serve metrics if the setting metrics.listen says where, and tell the address when they are \
asked. To start one that does:

    headwater serve --set metrics.listen=127.0.0.1:9404

All brokers of a cluster, with rates over five seconds:

    headwater metrics --bootstrap-server broker1:9092 --interval 5

The same as JSON, or the page in Prometheus' format as the broker sends it:

    headwater metrics --bootstrap-server broker1:9092 --json

    headwater metrics --metrics-address 127.0.0.1:9404 --raw
"""


@app.command(help=HELP)
def metrics(
    metrics_address: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics-address",
            metavar="HOST:PORT",
            help="Where a broker serves its metrics; may be repeated.",
            show_default="what the brokers tell",
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print the page as the broker sends it.")] = (
        False
    ),
    interval_s: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            min=0.0,
            help="Read twice, this long apart, and show rates; 0 reads once and shows totals.",
        ),
    ] = 1.0,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    if raw and as_json:
        raise typer.BadParameter("choose one of the two", param_hint="--raw and --json")
    addresses = _addresses(metrics_address, bootstrap_server, timeout_ms)
    if raw:
        _print_raw(addresses)
    else:
        _print_readings(addresses, interval_s, as_json=as_json)


def _addresses(
    given: list[str] | None, bootstrap_server: str | None, timeout_ms: int
) -> list[MetricsAddress]:
    from headwater.cli.metrics.source import NoMetricsError, parse_address

    if given:
        return [parse_address(text) for text in given]
    from headwater.cli.metrics.source import find_addresses

    found = on_cluster(bootstrap_server, find_addresses, timeout_ms=timeout_ms)
    silent = sorted(broker_id for broker_id, address in found.items() if address is None)
    if silent:
        brokers = f"broker{'' if len(silent) == 1 else 's'} {', '.join(map(str, silent))}"
        raise NoMetricsError(
            f"No metrics are served by {brokers}: "
            f"start {'it' if len(silent) == 1 else 'them'} with --set metrics.listen=HOST:9404."
        )
    return [address for _, address in sorted(found.items()) if address is not None]


def _print_raw(addresses: list[MetricsAddress]) -> None:
    from headwater.cli.metrics.source import fetch_page
    from headwater.cli.output.standard_output import standard_output

    with standard_output():
        for address in addresses:
            print(fetch_page(address), end="")


def _print_readings(addresses: list[MetricsAddress], interval_s: float, *, as_json: bool) -> None:
    from headwater.cli.metrics.document import broker_document
    from headwater.cli.metrics.table import print_tables
    from headwater.cli.output.json_document import print_document
    from headwater.cli.output.standard_output import standard_output

    brokers = []
    with standard_output():
        for address, readings in _readings(addresses, interval_s):
            [info] = readings.now.samples("headwater_build_info")[:1]
            broker_id = info.labels.get("node_id", "?")
            if as_json:
                brokers.append(broker_document(broker_id, str(address), readings))
            else:
                print_tables(f"Broker {broker_id} at {address}", readings)
        if as_json:
            print_document({"brokers": brokers})


def _readings(
    addresses: list[MetricsAddress], interval_s: float
) -> Iterator[tuple[MetricsAddress, Readings]]:
    """What each broker shows, twice unless the interval is 0."""
    import time

    from headwater.cli.metrics.page import MetricsPage
    from headwater.cli.metrics.source import NoMetricsError, fetch_page
    from headwater.cli.metrics.table import Readings

    started_s = time.monotonic()
    first = [MetricsPage(fetch_page(address)) for address in addresses]
    for address, page in zip(addresses, first, strict=True):
        if "headwater_build_info" not in page:
            raise NoMetricsError(
                f"What {address} shows are not the metrics of Headwater; --raw prints them."
            )
    if interval_s:
        time.sleep(interval_s)
    for address, earlier in zip(addresses, first, strict=True):
        readings = Readings(earlier)
        if interval_s:
            page = MetricsPage(fetch_page(address))
            readings = Readings(page, earlier, time.monotonic() - started_s)
        yield address, readings
