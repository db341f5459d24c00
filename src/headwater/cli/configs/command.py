"""`headwater configs`: show and change the settings of topics, brokers, groups and the like.

In words or with the flags of Kafka's own tool, which `flag_form` turns into words.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from headwater.cli.configs.arguments import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    ENTITY_TYPES,
    GROUPS,
    TOPICS,
    Entity,
    choose_entity,
    parse_changes,
    parse_names,
)
from headwater.cli.options.choice import completed_by
from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.cluster_names import complete_topics
from headwater.cli.options.json_option import AsJson

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

HELP = """\
Show and change the settings of topics, brokers, groups and client metrics.

In words, as the commands below:

    headwater configs describe --topic orders --all

    headwater configs alter --topic orders --add-config retention.ms=3600000

    headwater configs alter --group billing --add-config consumer.session.timeout.ms=60000

Or with the flags of Kafka's kafka-configs.sh:

    headwater configs --describe --entity-type topics --entity-name orders

    headwater configs --alter --entity-type brokers --entity-default \
--add-config log.cleaner.threads=2
"""

EntityType: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--entity-type",
        metavar="TYPE",
        help=f"What the settings belong to: {', '.join(ENTITY_TYPES)}.",
        autocompletion=completed_by(ENTITY_TYPES),
    ),
]
EntityName: TypeAlias = Annotated[
    str | None,
    typer.Option("--entity-name", metavar="NAME", help="A name, or a broker's number."),
]
EntityDefault: TypeAlias = Annotated[
    bool, typer.Option("--entity-default", help="The defaults of all brokers of the cluster.")
]
Topic: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--topic", metavar="NAME", help="A topic's settings.", autocompletion=complete_topics
    ),
]
Broker: TypeAlias = Annotated[
    str | None, typer.Option("--broker", metavar="ID", help="A broker's settings.")
]
BrokerDefaults: TypeAlias = Annotated[
    bool,
    typer.Option("--broker-defaults", help="The same as --entity-type brokers --entity-default."),
]
BrokerLogger: TypeAlias = Annotated[
    str | None, typer.Option("--broker-logger", metavar="ID", help="A broker's log levels.")
]
Group: TypeAlias = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="A consumer group's settings.")
]
ClientMetrics: TypeAlias = Annotated[
    str | None,
    typer.Option("--client-metrics", metavar="NAME", help="A subscription to clients' metrics."),
]


@app.callback(help=HELP)
def _configs() -> None:
    pass


@app.command("describe")
def describe(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", show_default=False, help="Only these settings."),
    ] = None,
    entity_type: EntityType = None,
    entity_name: EntityName = None,
    entity_default: EntityDefault = False,
    topic: Topic = None,
    broker: Broker = None,
    broker_defaults: BrokerDefaults = False,
    broker_logger: BrokerLogger = None,
    group: Group = None,
    client_metrics: ClientMetrics = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show settings that were never changed, too.")
    ] = False,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Show settings, with where each value comes from."""
    entity = choose_entity(
        entity_type,
        entity_name,
        entity_default,
        {
            TOPICS: topic,
            BROKERS: broker,
            BROKER_LOGGERS: broker_logger,
            GROUPS: group,
            CLIENT_METRICS: client_metrics,
        },
        broker_defaults,
    )
    from headwater.cli.configs.actions import describe_configs

    wanted = names or []
    on_cluster(
        bootstrap_server,
        lambda connection: describe_configs(
            connection, entity, show_all=show_all or bool(wanted), names=wanted, as_json=as_json
        ),
        timeout_ms=timeout_ms,
    )


@app.command("alter")
def alter(
    add_config: Annotated[
        list[str] | None,
        typer.Option(
            "--add-config",
            metavar="NAME=VALUE,...",
            help="Set these; put a value with commas in brackets.",
        ),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(
            "--delete-config", metavar="NAME,...", help="Go back to the defaults of these."
        ),
    ] = None,
    entity_type: EntityType = None,
    entity_name: EntityName = None,
    entity_default: EntityDefault = False,
    topic: Topic = None,
    broker: Broker = None,
    broker_defaults: BrokerDefaults = False,
    broker_logger: BrokerLogger = None,
    group: Group = None,
    client_metrics: ClientMetrics = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Change settings of one topic, broker, group or the like, or the default of all brokers."""
    entity = choose_entity(
        entity_type,
        entity_name,
        entity_default,
        {
            TOPICS: topic,
            BROKERS: broker,
            BROKER_LOGGERS: broker_logger,
            GROUPS: group,
            CLIENT_METRICS: client_metrics,
        },
        broker_defaults,
    )
    _require_one(entity)
    added = {
        name: value for text in add_config or [] for name, value in parse_changes(text).items()
    }
    deleted = [name for text in delete_config or [] for name in parse_names(text)]
    if not added and not deleted:
        raise typer.BadParameter("say what to change", param_hint="--add-config or --delete-config")
    from headwater.cli.configs.actions import alter_configs

    on_cluster(
        bootstrap_server,
        lambda connection: alter_configs(connection, entity, added, deleted),
        timeout_ms=timeout_ms,
    )


def _require_one(entity: Entity) -> None:
    if entity.name is None and not entity.is_default:
        raise typer.BadParameter(
            "name one, or say --entity-default for all brokers", param_hint="--entity-name"
        )
