"""The options that the commands of `headwater groups` share.

Groups are arguments, or come by `--group` and `--all-groups` as in Kafka's tools.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import typer

from headwater.cli.options.cluster_names import complete_groups, complete_topics

GroupArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[GROUP]...",
        show_default=False,
        help="The groups.",
        autocompletion=complete_groups,
    ),
]
GroupOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="GROUP",
        help="The same as an argument; may be repeated.",
        autocompletion=complete_groups,
    ),
]
AllGroups: TypeAlias = Annotated[
    bool, typer.Option("--all-groups", help="All consumer groups of the cluster.")
]
TopicOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC[:N,...]",
        help="A topic, or some of its partitions; may be repeated.",
        autocompletion=complete_topics,
    ),
]
Timeout: TypeAlias = Annotated[
    int,
    typer.Option(
        "--timeout",
        "--request-timeout-ms",
        metavar="MS",
        min=1,
        help="How long to try before giving up.",
    ),
]


class GroupChoice(NamedTuple):
    """Which groups are meant: those named, or all."""

    group_ids: tuple[str, ...]
    is_all: bool = False


def choose_groups(
    argument: list[str] | None, option: list[str] | None, is_all: bool = False
) -> GroupChoice:
    """The groups that were named in either way, or all."""
    named = tuple(dict.fromkeys([*(argument or []), *(option or [])]))
    if is_all and named:
        raise typer.BadParameter("name groups, or take all", param_hint="--all-groups")
    if not is_all and not named:
        raise typer.BadParameter("name a group", param_hint="GROUP, --group or --all-groups")
    return GroupChoice(named, is_all)


def choose_one_group(argument: list[str] | None, option: list[str] | None) -> str:
    """The one group that was named in either way."""
    group_ids = choose_groups(argument, option).group_ids
    if len(group_ids) > 1:
        raise typer.BadParameter("one group at a time", param_hint="GROUP")
    return group_ids[0]
