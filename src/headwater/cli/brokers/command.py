"""`headwater brokers`: list brokers, give a new one its share, empty one, even the load out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from headwater.cli.brokers import upkeep_commands
from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.json_option import RowsAsJson
from headwater.cli.options.pace import PER_BROKER, PerBroker, Throttle, throttle_or_default

if TYPE_CHECKING:
    from headwater.cli.brokers.actions import PlanOptions

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

EXIT_HURTS: Final = 1
_MB: Final = 1_000_000

HELP = """\
The brokers of a cluster: who holds what, and moving it.

    headwater brokers list

A new broker is given its share of what the others hold; one that shall go is emptied, and may \
then be stopped for good. Both show the plan first, with what it copies and how long that may \
take, and ask:

    headwater brokers add-share 4

    headwater brokers drain 2

One that came alone has one replica of everything. When others have joined it:

    headwater brokers raise-factor 3

To even out what has become uneven, or only to see what that would take:

    headwater brokers balance --dry-run

Plans keep replicas in different racks, leave room on disks, and move as few bytes as they can. \
They are carried out in steps, throttled, and can be ended at any time: `headwater reassign \
status` shows what is under way, `headwater reassign throttle` makes it slower or faster, and \
`headwater reassign cancel` takes it back. A broker that is being emptied \
still gets replicas of new topics, unless cordoned.log.dirs of it is '*'.

Before a broker is restarted, and to restart all of them:

    headwater brokers restart-check 2

    headwater brokers rolling-restart --command 'ssh {host} systemctl restart headwater'

When one was drained and stopped for good:

    headwater brokers unregister 2
"""

BrokerId: TypeAlias = Annotated[
    int, typer.Argument(metavar="BROKER", min=0, help="The broker's id.", show_default=False)
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Watch: TypeAlias = Annotated[
    float,
    typer.Option("--watch-seconds", min=0, help="How long to watch what is written, before."),
]
Rate: TypeAlias = Annotated[
    int,
    typer.Option(
        "--rate",
        min=1,
        metavar="MB",
        help="What a broker receives in a second without a throttle, to foretell.",
    ),
]


@app.callback(help=HELP)
def _brokers() -> None:
    pass


@app.command("list")
def list_brokers(
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """List brokers: address, rack, replicas, leaders, disk."""
    from headwater.cli.brokers import actions

    on_cluster(
        bootstrap_server,
        lambda connection: actions.list_brokers(connection, as_json=as_json),
        timeout_ms=timeout_ms,
    )


@app.command("drain")
def drain(
    broker_id: BrokerId,
    yes: Yes = False,
    watch_seconds: Watch = 2.0,
    throttle: Throttle = None,
    rate: Rate = 50,
    moves_per_broker: PerBroker = PER_BROKER,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Move everything off a broker, also off one that is gone."""
    from headwater.cli.brokers import actions

    options = _options(watch_seconds, rate, moves_per_broker, throttle)
    on_cluster(
        bootstrap_server,
        lambda connection: actions.drain(connection, broker_id, options, is_sure=yes),
        timeout_ms=timeout_ms,
    )


@app.command("add-share")
def add_share(
    broker_id: BrokerId,
    yes: Yes = False,
    watch_seconds: Watch = 2.0,
    throttle: Throttle = None,
    rate: Rate = 50,
    moves_per_broker: PerBroker = PER_BROKER,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Give a new broker its share of what the others hold."""
    from headwater.cli.brokers import actions

    options = _options(watch_seconds, rate, moves_per_broker, throttle)
    on_cluster(
        bootstrap_server,
        lambda connection: actions.add_share(connection, broker_id, options, is_sure=yes),
        timeout_ms=timeout_ms,
    )


@app.command("balance")
def balance(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
    yes: Yes = False,
    watch_seconds: Watch = 2.0,
    throttle: Throttle = None,
    rate: Rate = 50,
    moves_per_broker: PerBroker = PER_BROKER,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Even out replicas, disk, traffic and leaders over all brokers."""
    from headwater.cli.brokers import actions

    options = _options(watch_seconds, rate, moves_per_broker, throttle)
    on_cluster(
        bootstrap_server,
        lambda connection: actions.balance(connection, options, is_sure=yes, is_trial=dry_run),
        timeout_ms=timeout_ms,
    )


@app.command("raise-factor")
def raise_factor(
    factor: Annotated[
        int,
        typer.Argument(metavar="REPLICAS", min=2, help="How many.", show_default=False),
    ],
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC...", help="Of these.", show_default="all"),
    ] = None,
    yes: Yes = False,
    watch_seconds: Watch = 2.0,
    throttle: Throttle = None,
    rate: Rate = 50,
    moves_per_broker: PerBroker = PER_BROKER,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Give topics more replicas, all topics if none is named."""
    from headwater.cli.brokers import actions

    options = _options(watch_seconds, rate, moves_per_broker, throttle)
    on_cluster(
        bootstrap_server,
        lambda connection: actions.raise_factor(
            connection, factor, topics or None, options, is_sure=yes
        ),
        timeout_ms=timeout_ms,
    )


@app.command("restart-check")
def restart_check(
    broker_id: BrokerId,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Say whether stopping a broker now would hurt; exit code 1 if so."""
    from headwater.cli.brokers import actions

    hurts = on_cluster(
        bootstrap_server,
        lambda connection: actions.restart_check(connection, broker_id),
        timeout_ms=timeout_ms,
    )
    if hurts:
        raise typer.Exit(EXIT_HURTS)


upkeep_commands.add_to(app)


def _options(watch_s: float, rate: int, per_broker: int, throttle: str | None) -> PlanOptions:
    throttle_bytes = throttle_or_default(throttle)
    from headwater.cli.brokers.actions import PlanOptions

    return PlanOptions(watch_s, rate * _MB, per_broker, throttle_bytes, throttle is not None)
