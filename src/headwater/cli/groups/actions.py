"""What `headwater groups` does but for resetting offsets, once for both forms of the command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import typer

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.printable import printable
from headwater.cli.options.group_argument import GroupChoice
from headwater.cli.options.nearest_name import nearest_group
from headwater.cli.output.plain_table import Column, Row, print_rows
from headwater.client.admin import (
    GroupDescription,
    GroupListing,
    GroupOffsetOperations,
    GroupOperations,
    OffsetOperations,
    OffsetTime,
    require_all,
)
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.errors import UnknownGroupError
from headwater.client.fetch.isolation import IsolationLevel

EXIT_FAILURE: Final = 1
#: What the members of a consumer group are; a group that only has offsets has no members to say.
_PROTOCOL_TYPES: Final = ("consumer", "")
_KINDS: Final = ("classic", "consumer", "")
_NAME_WIDTH_MIN: Final = 15
_NAME_PADDING: Final = 10


class DescriptionForm(NamedTuple):
    """How groups are shown."""

    verbose: bool = False
    as_json: bool = False


async def list_groups(
    connection: ClusterConnection,
    states: Collection[str] | None,
    kinds: Collection[str] | None,
    *,
    as_json: bool,
) -> None:
    """Names alone, or with what was asked for: None asks for nothing, an empty one for all."""
    from headwater.cli.groups.tables import state_tone

    groups = await _consumer_groups(connection, states or (), kinds or ())
    longest = max((len(group.group_id) for group in groups), default=0)
    columns = [Column("GROUP", "group", max(_NAME_WIDTH_MIN, longest) + _NAME_PADDING)]
    if kinds is not None or as_json:
        columns.append(Column("TYPE", "type", 20))
    if states is not None or as_json:
        columns.append(Column("STATE", "state", 20, tone=state_tone))
    rows = [
        {
            "group": group.group_id,
            "type": (group.kind if as_json else group.kind.capitalize()) or None,
            "state": group.state or None,
        }
        for group in groups
    ]
    if len(columns) > 1:
        print_rows(columns, rows, as_json=as_json)
    else:
        for group in groups:
            print(printable(group.group_id))


async def describe_offsets(
    connection: ClusterConnection,
    choice: GroupChoice,
    form: DescriptionForm,
    isolation_level: IsolationLevel,
) -> None:
    """Committed offsets, and how far they are behind."""
    from headwater.cli.groups.tables import offset_columns, offset_rows

    groups, failures = await _described(connection, choice)
    committed = require_all(
        await GroupOffsetOperations(connection).list_group_offsets(
            [group.group_id for group in groups]
        )
    )
    partitions = {key for offsets in committed.values() for key in offsets}
    partitions |= {key for group in groups for member in group.members for key in member.assignment}
    listed = await OffsetOperations(connection).list_offsets(
        dict.fromkeys(sorted(partitions), OffsetTime.LATEST), isolation_level=isolation_level
    )
    # Offsets may outlive their topic; such a partition has no end.
    ends = {key: found.offset for key, found in listed.items() if not isinstance(found, KafkaError)}
    columns = offset_columns(verbose=form.verbose or form.as_json)
    _show(groups, columns, lambda group: offset_rows(group, committed[group.group_id], ends), form)
    report_failures(failures)


async def describe_members(
    connection: ClusterConnection, choice: GroupChoice, form: DescriptionForm
) -> None:
    from headwater.cli.groups.tables import member_columns, member_rows

    groups, failures = await _described(connection, choice)
    columns = member_columns(groups, verbose=form.verbose or form.as_json)
    _show(groups, columns, member_rows, form)
    report_failures(failures)


async def describe_states(
    connection: ClusterConnection, choice: GroupChoice, form: DescriptionForm
) -> None:
    from headwater.cli.groups.tables import state_columns, state_row

    groups, failures = await _described(connection, choice)
    columns = state_columns(verbose=form.verbose or form.as_json)
    _show(groups, columns, lambda group: [state_row(group)], form)
    report_failures(failures)


async def delete_groups(connection: ClusterConnection, choice: GroupChoice) -> None:
    group_ids = await chosen_ids(connection, choice)
    outcomes = await GroupOperations(connection).delete_groups(group_ids, raise_errors=False)
    for group_id, outcome in outcomes.items():
        if outcome is None:
            print(f"Deleted group {group_id}.")
    report_failures(await _failures(connection, outcomes))


async def delete_offsets(
    connection: ClusterConnection, group_id: str, partitions: Sequence[TopicPartition]
) -> None:
    outcomes = await GroupOffsetOperations(connection).delete_group_offsets(
        group_id, partitions, raise_errors=False
    )
    columns = [Column("TOPIC", "topic", 15), Column("PARTITION", "partition", 10)]
    columns.append(Column("STATUS", "status", 15))
    rows = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "status": "Successful" if outcome is None else "Failed",
        }
        for key, outcome in sorted(outcomes.items(), key=lambda item: item[0])
    ]
    print_rows(columns, rows)
    report_failures(outcome for outcome in outcomes.values() if outcome is not None)


async def chosen_ids(connection: ClusterConnection, choice: GroupChoice) -> list[str]:
    """The names of the groups that are meant."""
    if not choice.is_all:
        return list(choice.group_ids)
    return [group.group_id for group in await _consumer_groups(connection)]


def report_failures(failures: Iterable[KafkaError]) -> None:
    """A sentence for each on standard error, and exit code 1 if there are any."""
    has_failed = False
    for failure in failures:
        has_failed = True
        print(f"headwater: {failure}", file=sys.stderr)
    if has_failed:
        raise typer.Exit(EXIT_FAILURE)


async def _consumer_groups(
    connection: ClusterConnection, states: Collection[str] = (), kinds: Collection[str] = ()
) -> list[GroupListing]:
    return [
        group
        for group in await GroupOperations(connection).list_groups(states=states, kinds=kinds)
        if group.protocol_type in _PROTOCOL_TYPES and group.kind.lower() in _KINDS
    ]


async def _described(
    connection: ClusterConnection, choice: GroupChoice
) -> tuple[list[GroupDescription], list[KafkaError]]:
    """The groups that are there, and what is wrong with the others."""
    group_ids = sorted(await chosen_ids(connection, choice))
    outcomes = await GroupOperations(connection).describe_groups(group_ids)
    groups = [outcome for outcome in outcomes.values() if not isinstance(outcome, KafkaError)]
    return groups, await _failures(connection, outcomes)


async def _failures(
    connection: ClusterConnection, outcomes: Mapping[str, object]
) -> list[KafkaError]:
    """What went wrong, by group; for one that is not there with the name that is nearest."""
    return [
        await nearest_group(connection, group_id, outcome)
        if isinstance(outcome, UnknownGroupError)
        else outcome
        for group_id, outcome in outcomes.items()
        if isinstance(outcome, KafkaError)
    ]


def _show(
    groups: Sequence[GroupDescription],
    columns: Sequence[Column],
    rows_of: Callable[[GroupDescription], Sequence[Row]],
    form: DescriptionForm,
) -> None:
    """A table for each group that has rows, or all rows as JSON."""
    from headwater.cli.groups.tables import state_notes

    is_first = True
    for group in groups:
        rows = rows_of(group)
        if not form.as_json:
            for note in state_notes(group):
                print(note, file=sys.stderr)
            if rows and not is_first:
                print()
        if rows:
            print_rows(columns, rows, as_json=form.as_json)
            is_first = False
