"""`headwater doctor`: look at a cluster, a data directory and this machine; say what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.options.cluster import BootstrapServer, RequestTimeout, bootstrap_servers
from headwater.cli.options.json_option import AsJson

if TYPE_CHECKING:
    from headwater.cli.doctor.findings import Finding

app = typer.Typer(pretty_exceptions_enable=False)

EXIT_PROBLEMS = 1
TIMEOUT_MS = 10_000

HELP = """\
Look at a broker, its cluster and this machine, and say in plain words what is wrong.

It checks whether brokers can be reached where they say they are, whether there is one controller, \
whether all replicas are in sync, how full and how fast the disks are, what an acknowledgement \
promises, how busy the brokers are, and whether clocks agree. Nothing is changed.

The exit code is 0 if all is well, and 1 if there is something to put right.

A cluster, from where its clients run:

    headwater doctor --bootstrap-server broker1:9092

Also, or only, the disk of a broker on this machine, running or not:

    headwater doctor --data-dir /var/lib/headwater
"""


@app.command(help=HELP)
def doctor(
    data_dir: Annotated[
        list[str] | None,
        typer.Option("--data-dir", metavar="DIR", help="A data directory; may be repeated."),
    ] = None,
    metrics_address: Annotated[
        str | None,
        typer.Option(
            "--metrics-address",
            metavar="HOST:PORT",
            help="Where the broker serves its metrics.",
            show_default="what the broker tells",
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only what is not well.")
    ] = False,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    from headwater.base.counted import counted
    from headwater.cli.doctor.examination import examine_machine
    from headwater.cli.doctor.findings import problem_count

    def show(finding: Finding) -> None:
        if not as_json and _is_shown(finding, quiet):
            print(_line(finding))

    findings: list[Finding] = []
    for finding in examine_machine(data_dir or []):
        show(finding)
        findings.append(finding)
    # Who names a directory and no cluster has a broker that is stopped, perhaps.
    if bootstrap_server is not None or not data_dir:
        servers = bootstrap_servers(bootstrap_server)
        findings += _examine_cluster(servers, metrics_address, timeout_ms, show)
    count = problem_count(findings)
    if as_json:
        _print_json([finding for finding in findings if _is_shown(finding, quiet)], count)
    elif count:
        print(f"\n{counted(count, 'problem')} found.")
    elif not quiet:
        print("\nAll is well.")
    if count:
        raise typer.Exit(EXIT_PROBLEMS)


def _examine_cluster(
    servers: str, metrics_address: str | None, timeout_ms: int, show: Callable[[Finding], None]
) -> list[Finding]:
    import asyncio

    from headwater.cli.doctor.examination import examine_cluster
    from headwater.cli.metrics.source import parse_address

    metrics = [] if metrics_address is None else [parse_address(metrics_address)]

    async def collect() -> list[Finding]:
        found = []
        async for finding in examine_cluster(servers, metrics, timeout_ms / 1000):
            show(finding)
            found.append(finding)
        return found

    return asyncio.run(collect())


def _is_shown(finding: Finding, quiet: bool) -> bool:
    from headwater.cli.doctor.findings import Verdict

    return not quiet or finding.verdict is not Verdict.GOOD


def _line(finding: Finding) -> str:
    from headwater.cli.doctor.findings import TONES
    from headwater.cli.output.colour import painted

    mark = painted(finding.verdict.value, TONES[finding.verdict])
    return f"{mark}  {finding.subject + ':':<12} {finding.sentence}"


def _print_json(findings: Sequence[Finding], count: int) -> None:
    from headwater.cli.doctor.findings import JSON_NAMES
    from headwater.cli.output.json_document import print_document

    entries = [
        {
            "verdict": JSON_NAMES[finding.verdict],
            "subject": finding.subject,
            "sentence": finding.sentence,
        }
        for finding in findings
    ]
    print_document({"findings": entries, "problem_count": count})
