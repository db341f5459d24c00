"""`headwater retry`: give consumer groups a retry topic and a dead-letter topic, and list them."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.cluster_names import complete_groups, complete_topics
from headwater.cli.options.json_option import RowsAsJson

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

HELP = """\
Give a consumer group a way to put aside what it cannot handle.

    headwater retry enable billing --topics orders

makes the topic retry.billing, where records wait 5 s, 10 s, 30 s, a minute and two minutes, by \
how often they failed, and dlq.billing, where they go in the end. A consumer of the group that \
cannot handle a record produces it to retry.billing as it came, with the header headwater-origin \
(where it read the record, such as orders-0@1234), and subscribes to that topic beside its own.

    headwater retry enable billing --topics orders --queues

makes a queue for each delay instead: retry.billing.5s, retry.billing.10s and so on.

    headwater retry list

Only brokers of Headwater have such topics. For others it makes plain ones, and says which service \
has to run beside them: headwater retry-service.
"""


@app.callback(help=HELP)
def _retry() -> None:
    pass


@app.command("enable")
def enable(
    group: Annotated[
        str,
        typer.Argument(metavar="GROUP", help="The consumer group.", autocompletion=complete_groups),
    ],
    topics: Annotated[
        list[str],
        typer.Option(
            "--topics",
            metavar="TOPIC,...",
            help="The topics that the group reads: the new ones get as many partitions.",
            autocompletion=complete_topics,
        ),
    ],
    delays: Annotated[
        str, typer.Option("--delays", metavar="TIME,...", help="How long to wait, by attempt.")
    ] = "5s,10s,30s,1m,2m",
    attempts: Annotated[
        int,
        typer.Option(
            "--attempts",
            min=0,
            help="How often a record is shown again.",
            show_default="once for each of --delays",
        ),
    ] = 0,
    jitter: Annotated[
        float,
        typer.Option(
            "--jitter", min=0, max=1, help="By how much of itself a delay may be longer, at random."
        ),
    ] = 0.0,
    max_delay: Annotated[
        str | None,
        typer.Option(
            "--max-delay",
            metavar="TIME",
            help="No record waits longer, with its jitter or where a handler asks for a time.",
            show_default="delay.max.ms of the brokers, 40 days",
        ),
    ] = None,
    queues: Annotated[
        bool, typer.Option("--queues", help="Make a topic for each delay, and not one for all.")
    ] = False,
    dead_letter_topic: Annotated[
        str | None,
        typer.Option(
            "--dead-letter-topic",
            metavar="TOPIC",
            help="Where records go that are given up.",
            show_default="dlq.GROUP",
        ),
    ] = None,
    dead_letter_retention: Annotated[
        str | None,
        typer.Option(
            "--dead-letter-retention",
            metavar="TIME",
            help="How long dead letters are kept.",
            show_default="for ever in a new topic",
        ),
    ] = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Make the topics of a group, or change the policy of those that are there."""
    from headwater.base.durations import parse_duration_ms
    from headwater.cli.retry import actions
    from headwater.delivery.worker.policy import RetryPolicy

    try:
        policy = RetryPolicy(_names(delays), attempts, jitter, queues, max_delay)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--delays") from None
    retention_ms = None
    if dead_letter_retention is not None:
        try:
            retention_ms = parse_duration_ms(dead_letter_retention)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--dead-letter-retention") from None
    sources = [name for each in topics for name in _names(each)]
    if not sources:
        raise typer.BadParameter("name the topics that the group reads", param_hint="--topics")
    on_cluster(
        bootstrap_server,
        lambda connection: actions.enable(
            connection, group, sources, policy, dead_letter_topic, retention_ms
        ),
        timeout_ms=timeout_ms,
    )


@app.command("list")
def list_groups(
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """List the groups that have a retry topic, with its policy and what waits there."""
    from headwater.cli.retry import actions

    on_cluster(
        bootstrap_server,
        lambda connection: actions.list_groups(connection, as_json=as_json),
        timeout_ms=timeout_ms,
    )


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
