"""`headwater groups`: list, describe and delete consumer groups, and reset their offsets.

Each command takes its groups as arguments or, as Kafka's own tool does, by `--group`. That tool's
form with a flag for the action is turned into words by `flag_form`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from headwater.cli.groups.reset_command import HELP as RESET_HELP
from headwater.cli.groups.reset_command import reset_offsets
from headwater.cli.options.choice import completed_by, did_you_mean
from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, on_cluster
from headwater.cli.options.group_argument import (
    AllGroups,
    GroupArgument,
    GroupOption,
    Timeout,
    TopicOptions,
    choose_groups,
    choose_one_group,
)
from headwater.cli.options.json_option import RowsAsJson

if TYPE_CHECKING:
    from headwater.client.connection.cluster_connection import ClusterConnection

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

STATES: Final = (
    "Empty",
    "Stable",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Dead",
)
KINDS: Final = ("classic", "consumer")

HELP = """\
List, describe and delete consumer groups, and reset their offsets.

In words, as the commands below:

    headwater groups list --state

    headwater groups describe billing

    headwater groups reset-offsets billing --topic orders --to-earliest --execute

Or with the flags of Kafka's kafka-consumer-groups.sh:

    headwater groups --describe --group billing --members --verbose

    headwater groups --reset-offsets --group billing --all-topics --shift-by -10 --dry-run
"""

DESCRIBE_HELP = """\
Show the committed offsets of groups and how far they are behind, or their members or states.

    headwater groups describe billing shipping

    headwater groups describe billing --isolation read_committed

LAG is the high watermark less the committed offset. For consumers that read committed records
only, --isolation read_committed counts from the last stable offset instead, where the oldest open
transaction begins. A dash stands for what is not there: a partition without a committed offset, or
one that no member reads.
"""


class Isolation(Enum):
    """Which records a group reads."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", help="Show more columns.")]


@app.callback(help=HELP)
def _groups() -> None:
    pass


@app.command("list")
def list_groups(
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="[STATE,...]",
            help=f"Show states, or only the groups in these: {', '.join(STATES)}.",
            autocompletion=completed_by(STATES),
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="[TYPE,...]",
            help=f"Show types, or only the groups of these: {', '.join(KINDS)}.",
            autocompletion=completed_by(KINDS),
        ),
    ] = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: Timeout = TIMEOUT_MS,
) -> None:
    """List the names of consumer groups, with their states and types if asked for."""
    from headwater.cli.groups import actions as group_actions

    states = _names(state, STATES, "--state")
    kinds = _names(kind, KINDS, "--type")
    on_cluster(
        bootstrap_server,
        lambda connection: group_actions.list_groups(connection, states, kinds, as_json=as_json),
        timeout_ms=timeout_ms,
    )


@app.command("describe", help=DESCRIBE_HELP)
def describe(
    group: GroupArgument = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Show offsets and lag; this is the default.")
    ] = False,
    members: Annotated[bool, typer.Option("--members", help="Show members.")] = False,
    state: Annotated[bool, typer.Option("--state", help="Show states.")] = False,
    verbose: Verbose = False,
    isolation: Annotated[
        Isolation, typer.Option("--isolation", help="Which records the consumers read.")
    ] = Isolation.READ_UNCOMMITTED,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: Timeout = TIMEOUT_MS,
) -> None:
    from headwater.cli.groups import actions as group_actions
    from headwater.client.fetch.isolation import IsolationLevel

    choice = choose_groups(group, group_option, all_groups)
    if offsets + members + state > 1:
        raise typer.BadParameter(
            "only one of these at a time", param_hint="--offsets, --members, --state"
        )
    form = group_actions.DescriptionForm(verbose, as_json)
    level = IsolationLevel[isolation.name]

    async def action(connection: ClusterConnection) -> None:
        if members:
            await group_actions.describe_members(connection, choice, form)
        elif state:
            await group_actions.describe_states(connection, choice, form)
        else:
            await group_actions.describe_offsets(connection, choice, form, level)

    on_cluster(bootstrap_server, action, timeout_ms=timeout_ms)


@app.command("members")
def members(
    group: GroupArgument = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    verbose: Verbose = False,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: Timeout = TIMEOUT_MS,
) -> None:
    """Show the members of groups; the same as describe --members."""
    from headwater.cli.groups.actions import DescriptionForm, describe_members

    choice = choose_groups(group, group_option, all_groups)
    form = DescriptionForm(verbose, as_json)
    on_cluster(
        bootstrap_server,
        lambda connection: describe_members(connection, choice, form),
        timeout_ms=timeout_ms,
    )


app.command("reset-offsets", help=RESET_HELP)(reset_offsets)


@app.command("delete-offsets")
def delete_offsets(
    group: GroupArgument = None,
    group_option: GroupOption = None,
    topic: TopicOptions = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: Timeout = TIMEOUT_MS,
) -> None:
    """Forget the offsets of a group in topics that none of its members reads.

    headwater groups delete-offsets billing --topic orders --topic payments:0,1
    """
    from headwater.cli.groups import actions as group_actions
    from headwater.cli.options.topic_partitions import find_scoped, parse_topic_scopes

    group_id = choose_one_group(group, group_option)
    scopes = parse_topic_scopes(topic or [])
    if not scopes:
        raise typer.BadParameter("name a topic", param_hint="--topic")

    async def action(connection: ClusterConnection) -> None:
        partitions = await find_scoped(connection, scopes)
        await group_actions.delete_offsets(connection, group_id, partitions)

    on_cluster(bootstrap_server, action, timeout_ms=timeout_ms)


@app.command("delete")
def delete(
    group: GroupArgument = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: Timeout = TIMEOUT_MS,
) -> None:
    """Delete groups that have no members, with their offsets."""
    from headwater.cli.groups.actions import delete_groups

    choice = choose_groups(group, group_option, all_groups)
    on_cluster(
        bootstrap_server,
        lambda connection: delete_groups(connection, choice),
        timeout_ms=timeout_ms,
    )


def _names(text: str | None, known: tuple[str, ...], option: str) -> list[str] | None:
    """Names with commas, spelled as Kafka does; none for an option without a value."""
    if text is None:
        return None
    by_lower = {name.lower(): name for name in known}
    chosen = [part.strip().lower() for part in text.split(",") if part.strip()]
    for name in chosen:
        if name not in by_lower:
            hint = did_you_mean(name.capitalize(), known)
            raise typer.BadParameter(
                f"{name!r} is not one of {', '.join(known)}{hint}", param_hint=option
            )
    return [by_lower[name] for name in chosen]
