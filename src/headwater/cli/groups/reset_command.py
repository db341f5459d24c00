"""`headwater groups reset-offsets`: set the offsets of groups that have no members."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, on_cluster
from headwater.cli.options.group_argument import (
    AllGroups,
    GroupArgument,
    GroupOption,
    Timeout,
    TopicOptions,
    choose_groups,
)
from headwater.cli.options.json_option import RowsAsJson

HELP = """\
Set the committed offsets of groups that have no members.

Without --execute it only shows what it would set:

    headwater groups reset-offsets billing --topic orders --to-earliest

    headwater groups reset-offsets billing --topic orders:0,1 --to-offset 42 --execute

    headwater groups reset-offsets billing --all-topics --to-datetime 2026-01-31T06:00:00 --execute

    headwater groups reset-offsets billing --all-topics --by-duration PT1H30M --execute

Save where a group is, and bring it back there later:

    headwater groups reset-offsets billing --all-topics --to-current --export > billing.csv

    headwater groups reset-offsets billing --from-file billing.csv --execute
"""


def reset_offsets(
    group: GroupArgument = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    topic: TopicOptions = None,
    all_topics: Annotated[
        bool,
        typer.Option("--all-topics", help="All partitions in which the group has an offset."),
    ] = False,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="To the oldest records.")
    ] = False,
    to_latest: Annotated[
        bool, typer.Option("--to-latest", help="To the end, so that only new records are read.")
    ] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To where they are now; for --export.")
    ] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", metavar="N", help="To this offset.")
    ] = None,
    shift_by: Annotated[
        int | None,
        typer.Option(
            "--shift-by", metavar="N", help="Forward by N offsets, or back if N is negative."
        ),
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            "--to-datetime",
            metavar="TIME",
            help="To the first records since then: 2026-01-31T06:00:00, in UTC or with +01:00.",
        ),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(
            "--by-duration",
            metavar="DURATION",
            help="To the first records of the last days or hours, as in P7D or PT1H30M.",
        ),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option(
            "--from-file", metavar="FILE", help="To the offsets that --export has written."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the new offsets; this is the default.")
    ] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Set the new offsets.")] = False,
    export: Annotated[
        bool, typer.Option("--export", help="Print the new offsets as CSV, for --from-file.")
    ] = False,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: Timeout = TIMEOUT_MS,
) -> None:
    from headwater.cli.groups.reset_actions import ResetForm, ResetOrder
    from headwater.cli.groups.reset_actions import reset_offsets as reset
    from headwater.cli.groups.reset_file import read_reset_file
    from headwater.cli.groups.reset_options import parse_reset
    from headwater.cli.options.topic_partitions import parse_topic_scopes

    if dry_run and execute:
        raise typer.BadParameter("choose one of the two", param_hint="--dry-run and --execute")
    choice = choose_groups(group, group_option, all_groups)
    scopes = parse_topic_scopes(topic or [])
    rule = parse_reset(
        to_earliest, to_latest, to_current, to_offset, shift_by, to_datetime, by_duration, from_file
    )
    if bool(scopes) + all_topics + (from_file is not None) != 1:
        raise typer.BadParameter(
            "say which partitions, in one way", param_hint="--topic, --all-topics or --from-file"
        )
    planned = None if from_file is None else read_reset_file(from_file, choice.group_ids)
    order = ResetOrder(choice, scopes, all_topics, rule, planned)
    form = ResetForm(execute, export, as_json)
    on_cluster(
        bootstrap_server,
        lambda connection: reset(connection, order, form),
        timeout_ms=timeout_ms,
    )
    if not execute and not dry_run and not export:
        print("Nothing was changed; --execute sets these offsets.", file=sys.stderr)
