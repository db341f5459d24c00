"""`headwater dlq`: look after dead letters: list, show, export, send back, delete."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from headwater.cli.dlq.options import (
    DeadLetterTopic,
    FromTime,
    FromTopic,
    OfGroup,
    OfOrigin,
    ToTime,
    WithError,
    WithHeaders,
    WithKey,
    config_of,
    given_filter,
    on_redrives,
)
from headwater.cli.dlq.redrive_command import HELP as REDRIVE_HELP
from headwater.cli.dlq.redrive_command import redrive
from headwater.cli.options.cluster import BootstrapServer
from headwater.cli.options.cluster_names import complete_topics
from headwater.cli.options.delay_times import given_moment
from headwater.cli.options.json_option import AsJson, RowsAsJson

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

HELP = """\
Look after dead letters: what consumers, workers, pipelines or connectors could not handle.

    headwater dlq list

    headwater dlq show dlq.billing

    headwater dlq redrive dlq.billing --to retry --dry-run

Letters of Headwater, of Kafka's share groups, of Spring and of Connect are read alike, on any \
Kafka cluster.
"""

TaskId: TypeAlias = Annotated[
    str, typer.Argument(metavar="TASK", help="The task, as `headwater dlq tasks` names it.")
]


@app.callback(help=HELP)
def _dlq() -> None:
    pass


@app.command("list")
def list_topics(as_json: RowsAsJson = False, bootstrap_server: BootstrapServer = None) -> None:
    """List the dead-letter topics: how much is in them, since when, and what fails most.

    Those are the topics with errors.deadletterqueue.group.enable=true, and those named dlq.*,
    *.DLT, *-dlt, *.dlq or *-dlq. Of one with more than 10,000 letters the last ones are looked at.
    """
    from headwater.cli.dlq import looking

    on_redrives(bootstrap_server, lambda redrives: looking.list_topics(redrives, as_json=as_json))


@app.command("show")
def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ID|TOPIC",
            help="A letter, such as dlq.billing-0@17, or a topic, whose last letters are shown.",
            autocompletion=complete_topics,
        ),
    ],
    count: Annotated[
        int, typer.Option("--last", "-n", min=1, max=1000, help="So many letters of a topic.")
    ] = 10,
    group: OfGroup = None,
    origin_topic: FromTopic = None,
    origin: OfOrigin = None,
    error: WithError = None,
    key: WithKey = None,
    header: WithHeaders = None,
    from_time: FromTime = None,
    to_time: ToTime = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    """Show letters, with all that is known of how they failed."""
    from headwater.base.message_id import MessageId
    from headwater.cli.dlq import looking

    if "@" in what:
        try:
            MessageId.parse(what)
        except ValueError as problem:
            raise typer.BadParameter(str(problem).removesuffix("."), param_hint="ID") from None
    wanted = given_filter(group, origin_topic, origin, error, key, header, (from_time, to_time))
    config = config_of(bootstrap_server)
    on_redrives(
        bootstrap_server,
        lambda redrives: looking.show(redrives, config, what, wanted, count, as_json=as_json),
    )


@app.command("export")
def export(
    topic: DeadLetterTopic,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to.", show_default="standard output"
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over the file if it is there already.")
    ] = False,
    form: Annotated[
        str,
        typer.Option("--format", metavar="jsonl|parquet", help="Lines of JSON, or Parquet."),
    ] = "jsonl",
    group: OfGroup = None,
    origin_topic: FromTopic = None,
    origin: OfOrigin = None,
    error: WithError = None,
    key: WithKey = None,
    header: WithHeaders = None,
    from_time: FromTime = None,
    to_time: ToTime = None,
    bootstrap_server: BootstrapServer = None,
) -> None:
    """Write letters to a file, without loss: to keep, to look at with other tools, or to edit.

    A line of JSON has the key, the value and the headers as text, or {"base64": "..."} where they
    are not UTF-8. `headwater dlq redrive --edited FILE` sends what was edited.
    """
    from headwater.cli.dlq import files

    if form not in ("jsonl", "parquet"):
        raise typer.BadParameter(f"{form!r} is neither jsonl nor parquet", param_hint="--format")
    if form == "parquet" and output is None:
        raise typer.BadParameter("name a file for Parquet", param_hint="--output")
    # Letters that were exported before may be nowhere else by now. A device or a pipe has none.
    if output is not None and not force and Path(output).is_file():
        raise typer.BadParameter(
            f"{output} is there already: name another file, or add --force to write over it",
            param_hint="--output",
        )
    wanted = given_filter(group, origin_topic, origin, error, key, header, (from_time, to_time))
    on_redrives(
        bootstrap_server,
        lambda redrives: files.export(
            redrives, topic, wanted, output, is_parquet=form == "parquet"
        ),
    )


@app.command("import")
def import_letters(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What was exported: lines of JSON, or Parquet.")
    ],
    topic: Annotated[
        str,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="The topic to write to.",
            autocompletion=complete_topics,
        ),
    ],
    bootstrap_server: BootstrapServer = None,
) -> None:
    """Write the letters of a file to a topic as they are in the file, with all of their headers."""
    from headwater.cli.dlq import files

    on_redrives(bootstrap_server, lambda redrives: files.import_letters(redrives, file, topic))


app.command("redrive", help=REDRIVE_HELP)(redrive)


@app.command("tasks")
def tasks(
    topic: Annotated[
        str | None,
        typer.Argument(metavar="[TOPIC]", help="Only tasks of this dead-letter topic."),
    ] = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    """List redrives: those that run, and those that were. One that was killed is interrupted."""
    from headwater.cli.dlq import redriving

    on_redrives(
        bootstrap_server,
        lambda redrives: redriving.list_tasks(redrives, topic, as_json=as_json),
    )


@app.command("pause")
def pause(task: TaskId, as_json: AsJson = False, bootstrap_server: BootstrapServer = None) -> None:
    """Have a redrive wait, within a second or so."""
    from headwater.cli.dlq import redriving

    on_redrives(bootstrap_server, lambda redrives: redriving.pause(redrives, task, as_json=as_json))


@app.command("resume")
def resume(
    task: TaskId,
    edited: Annotated[
        str | None,
        typer.Option("--edited", metavar="FILE", help="The file that the task was begun with."),
    ] = None,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    """Let a paused redrive go on, or carry on with one that was interrupted, here."""
    from headwater.cli.dlq import redriving

    on_redrives(
        bootstrap_server,
        lambda redrives: redriving.resume(redrives, task, edited, as_json=as_json),
    )


@app.command("stop")
def stop(task: TaskId, as_json: AsJson = False, bootstrap_server: BootstrapServer = None) -> None:
    """End a redrive. What it has sent stays sent; another one sends the rest."""
    from headwater.cli.dlq import redriving

    on_redrives(bootstrap_server, lambda redrives: redriving.stop(redrives, task, as_json=as_json))


@app.command("purge")
def purge(
    topic: DeadLetterTopic,
    everything: Annotated[bool, typer.Option("--all", help="All letters that are there.")] = False,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="TIME", help="Letters that were written before."),
    ] = None,
    before_offset: Annotated[
        int | None,
        typer.Option("--before-offset", min=0, help="Letters of --partition before this offset."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="The partition of --before-offset.")
    ] = None,
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    """Delete the oldest letters of a topic. They cannot be brought back: see `export`."""
    from headwater.base.message_id import MessageId
    from headwater.cli.dlq import purging

    if (everything, before is not None, before_offset is not None).count(True) != 1:
        raise typer.BadParameter(
            "say what to delete: --all, --before TIME, or --partition with --before-offset",
            param_hint="--all",
        )
    if (before_offset is None) != (partition is None):
        raise typer.BadParameter(
            "the two go together", param_hint="--partition and --before-offset"
        )
    place = None
    if before_offset is not None and partition is not None:
        place = MessageId(topic, partition, before_offset)
    before_ms = given_moment(before, "--before")
    on_redrives(
        bootstrap_server,
        lambda redrives: purging.purge(redrives, topic, before_ms, place, is_sure=is_sure),
    )
