"""The topic on a command line: an argument, or `--topic` as in Kafka's tools."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from headwater.cli.options.cluster_names import complete_topics

TopicArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC", show_default=False, help="The topic.", autocompletion=complete_topics
    ),
]
TopicOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="The same as the argument.",
        autocompletion=complete_topics,
    ),
]


def any_topic(argument: str | None, option: str | None) -> str | None:
    """The topic that was named in either way, if any."""
    if argument is not None and option is not None:
        raise typer.BadParameter("name the topic once", param_hint="TOPIC and --topic")
    return option if argument is None else argument


def one_topic(argument: str | None, option: str | None) -> str:
    """The topic that was named in either way."""
    name = any_topic(argument, option)
    if name is None:
        raise typer.BadParameter("name a topic", param_hint="TOPIC or --topic")
    return name
