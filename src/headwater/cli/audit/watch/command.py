"""`headwater audit watch`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.audit.metrics_page import MetricsListen, given_address
from headwater.cli.options.cluster import BootstrapServer, bootstrap_servers, on_cluster
from headwater.cli.options.cluster_names import complete_topics
from headwater.cli.options.delay_times import given_delay
from headwater.cli.options.json_option import AsJson

if TYPE_CHECKING:
    from headwater.cli.audit.watch.rules import Rule
    from headwater.client.connection.cluster_connection import ClusterConnection

#: With `--once`, when a rule fires.
EXIT_FIRING = 3

HELP = """\
Look at the audit again and again, and say when a rule begins to fire and when it ceases to.

    headwater audit watch

    headwater audit watch orders --rule 'behind > 1000' --rule 'latency > 30s group=billing'

    headwater audit watch --rules rules.properties --to-topic audit-alarms

A rule is a figure, a limit and, if it is not about all, a topic or a group. Figures are missing, \
doubled, latency, behind (of groups) and lost, gaps, late, uncounted (of topics). Without any rule \
given missing, doubled, lost, gaps and uncounted are watched, which should always be 0.
"""


def watch(
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC...",
            help="The topics.",
            show_default="all that are audited",
            autocompletion=complete_topics,
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="RULE", help="Such as 'late > 1%'; may be repeated."),
    ] = None,
    rules_file: Annotated[
        Path | None,
        typer.Option(
            "--rules", metavar="FILE", help="Rules by name: a properties file, slow=latency > 30s."
        ),
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="How often to look.")
    ] = "1m",
    last: Annotated[
        str,
        typer.Option("--last", metavar="TIME", help="Records of how long ago count, such as 30m."),
    ] = "1h",
    buffer: Annotated[
        str,
        typer.Option(
            "--buffer",
            metavar="TIME",
            help="What came so lately is neither late nor behind yet.",
        ),
    ] = "2m",
    to_topic: Annotated[
        str | None,
        typer.Option(
            "--to-topic", metavar="TOPIC", help="Also write what begins and ends to this topic."
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="Look once; the exit code is 3 if a rule fires."),
    ] = False,
    metrics_listen: MetricsListen = None,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    import asyncio

    from headwater.cli.audit.watch.watcher import Watcher, WatchOptions
    from headwater.cli.interruption import cancelled_by_signals

    every_ms = given_delay(every, "--every")
    last_ms = given_delay(last, "--last")
    if not every_ms or not last_ms:
        raise typer.BadParameter("it must be more than 0", param_hint="--every and --last")
    options = WatchOptions(
        topics or [],
        _rules(rule or [], rules_file),
        every_ms / 1000,
        last_ms,
        given_delay(buffer, "--buffer") or 0,
        to_topic,
        given_address(metrics_listen),
        as_json,
        once,
    )
    servers = bootstrap_servers(bootstrap_server)

    async def run(connection: ClusterConnection) -> bool:
        watcher = Watcher(connection, servers, options)
        try:
            with cancelled_by_signals():
                await watcher.run()
        except asyncio.CancelledError:
            return False  # Somebody has seen enough.
        return bool(watcher.board.since_ms)

    if on_cluster(bootstrap_server, run):
        raise typer.Exit(EXIT_FIRING)


def _rules(texts: list[str], file: Path | None) -> dict[str, Rule]:
    """By name; an option that makes no sense is told as such."""
    from headwater.base.setting import SettingError
    from headwater.cli.audit.watch.rules import DEFAULT_RULES, parse_rule, read_rules_file

    try:
        rules = [parse_rule(text) for text in texts]
    except SettingError as error:
        raise typer.BadParameter(str(error).removesuffix("."), param_hint="--rule") from None
    try:
        if file is not None:
            rules += read_rules_file(file.read_text(), str(file))
    except OSError as error:
        sentence = f"{file} cannot be read: {error.strerror}"
        raise typer.BadParameter(sentence, param_hint="--rules") from None
    except (SettingError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error).removesuffix("."), param_hint="--rules") from None
    if not rules and file is None:
        rules = list(DEFAULT_RULES)
    return {each.name: each for each in rules}
