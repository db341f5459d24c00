"""What `headwater groups reset-offsets` does: work out new offsets, show them, and commit them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from headwater.base.counted import counted
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.groups.actions import chosen_ids, report_failures
from headwater.cli.groups.offset_reset import (
    NothingCommittedError,
    OffsetReset,
    PartitionPlace,
    ResetKind,
)
from headwater.cli.groups.reset_file import ResetOffsets, reset_file_text
from headwater.cli.options.group_argument import GroupChoice
from headwater.cli.options.topic_partitions import TopicScope, find_scoped
from headwater.cli.output.plain_table import Column, print_rows
from headwater.client.admin import (
    CommittedOffset,
    GroupOffsetOperations,
    GroupOperations,
    OffsetOperations,
    OffsetTime,
    require_all,
)
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.errors import UnknownGroupError
from headwater.client.kafka_errors import InvalidRequestError, NonEmptyGroupError

_COLUMNS: Final = (
    Column("GROUP", "group", 15),
    Column("TOPIC", "topic", 15),
    Column("PARTITION", "partition", 10),
    Column("NEW-OFFSET", "new_offset"),
)
_NO_OFFSET: Final = -1
_EMPTY: Final = "Empty"


class ResetOrder(NamedTuple):
    """What is to be reset, and where to: by one rule, or as a file says."""

    choice: GroupChoice
    scopes: Sequence[TopicScope] = ()
    is_all_topics: bool = False
    reset: OffsetReset | None = None
    from_file: ResetOffsets | None = None


class ResetForm(NamedTuple):
    """Whether offsets are really changed, and how they are shown."""

    execute: bool = False
    export: bool = False
    as_json: bool = False


async def reset_offsets(connection: ClusterConnection, order: ResetOrder, form: ResetForm) -> None:
    group_ids = await chosen_ids(connection, order.choice)
    idle, failures = await _without_members(connection, group_ids)
    prepared: ResetOffsets = {}
    for group_id in idle:
        prepared[group_id] = await _prepare(connection, order, group_id)
    if form.execute:
        for group_id, offsets in prepared.items():
            failures += await _commit(connection, group_id, offsets)
    if form.export:
        print(reset_file_text(prepared), end="")
    else:
        rows = [
            {"group": group_id, "topic": key.topic, "partition": key.partition, "new_offset": new}
            for group_id, offsets in prepared.items()
            for key, new in offsets.items()
        ]
        if rows or not failures:
            print_rows(_COLUMNS, rows, as_json=form.as_json)
    report_failures(failures)


async def _without_members(
    connection: ClusterConnection, group_ids: Sequence[str]
) -> tuple[list[str], list[KafkaError]]:
    """The groups whose offsets may be changed, and why the others must wait."""
    idle: list[str] = []
    failures: list[KafkaError] = []
    described = await GroupOperations(connection).describe_groups(group_ids)
    for group_id, outcome in described.items():
        if isinstance(outcome, UnknownGroupError):
            # Committing for a group that does not exist yet makes it.
            idle.append(group_id)
        elif isinstance(outcome, KafkaError):
            failures.append(outcome)
        elif outcome.state == _EMPTY:
            idle.append(group_id)
        else:
            failures.append(
                NonEmptyGroupError(
                    f"The offsets of group {group_id!r} can only be reset while it has no members: "
                    f"it is {outcome.state} and has {counted(len(outcome.members), 'member')}.",
                )
            )
    return idle, failures


async def _prepare(
    connection: ClusterConnection, order: ResetOrder, group_id: str
) -> dict[TopicPartition, int]:
    """The new offsets of one group."""
    offsets = GroupOffsetOperations(connection)
    committed = require_all(await offsets.list_group_offsets([group_id]))[group_id]
    resets: dict[TopicPartition, OffsetReset]
    if order.from_file is not None:
        wanted = order.from_file.get(group_id)
        if wanted is None:
            raise InvalidRequestError(f"The file has no offsets for group {group_id!r}.")
        resets = {key: OffsetReset(ResetKind.OFFSET, offset) for key, offset in wanted.items()}
    else:
        if order.is_all_topics:
            partitions = sorted(committed)
        else:
            partitions = await find_scoped(connection, order.scopes)
        resets = dict.fromkeys(partitions, order.reset or OffsetReset(ResetKind.CURRENT))
    places = await _places(connection, resets, committed)
    return {key: _new_offset(key, reset, places[key]) for key, reset in resets.items()}


async def _places(
    connection: ClusterConnection,
    resets: dict[TopicPartition, OffsetReset],
    committed: dict[TopicPartition, CommittedOffset],
) -> dict[TopicPartition, PartitionPlace]:
    """What the partitions hold, and what of it is needed of the group."""
    earliest = await _list_offsets(connection, dict.fromkeys(resets, int(OffsetTime.EARLIEST)))
    latest = await _list_offsets(connection, dict.fromkeys(resets, int(OffsetTime.LATEST)))
    times = {key: reset.value for key, reset in resets.items() if reset.kind is ResetKind.TIME}
    at_time = await _list_offsets(connection, times)
    return {
        key: PartitionPlace(
            earliest[key],
            latest[key],
            committed[key].offset if key in committed else None,
            # Where nothing is as late as the time, there is no offset for it.
            None if at_time.get(key, _NO_OFFSET) == _NO_OFFSET else at_time[key],
        )
        for key in resets
    }


async def _list_offsets(
    connection: ClusterConnection, times: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    listed = require_all(await OffsetOperations(connection).list_offsets(times))
    return {key: found.offset for key, found in listed.items()}


def _new_offset(key: TopicPartition, reset: OffsetReset, place: PartitionPlace) -> int:
    try:
        wanted, offset = reset.wanted(place), reset.apply(place)
    except NothingCommittedError as error:
        raise NothingCommittedError(f"{key} cannot be reset: {error}.") from None
    if offset != wanted:
        print(
            f"{key} holds offsets {place.earliest} to {place.latest}, so {offset} is used instead "
            f"of {wanted}.",
            file=sys.stderr,
        )
    return offset


async def _commit(
    connection: ClusterConnection, group_id: str, offsets: dict[TopicPartition, int]
) -> Iterable[KafkaError]:
    """Commit the new offsets; what went wrong."""
    if not offsets:
        return ()
    outcomes = await GroupOffsetOperations(connection).alter_group_offsets(
        group_id,
        {key: CommittedOffset(offset) for key, offset in offsets.items()},
        raise_errors=False,
    )
    return [outcome for outcome in outcomes.values() if outcome is not None]
